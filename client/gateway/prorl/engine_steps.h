/*
 * engine_steps.h - several requests to the broker one after the other for one call: engines are added, paused, given a
 * version. One that is refused ends them, and is the call's answer; an engine that the broker does not know is passed
 * over.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_ENGINE_STEPS_H
#define SLUICE_CLIENT_GATEWAY_PRORL_ENGINE_STEPS_H

#include "client/gateway/http_call.h"
#include "common/base/url.h"

enum { STEP_VERSION_SIZE = 31, STEP_FINISH_MS = 20000 /* calls in flight are awaited at most so long */ };

struct engine_step {
    enum message_id id; /* engine_add, engine_remove, policy_pause, policy_set or policy_resume */
    char url[URL_MAX + 1];
    char version[STEP_VERSION_SIZE]; /* policy_set's */
    bool waits;                      /* policy_pause, again and again until calls in flight have finished */
};

struct engine_steps {
    struct engine_step *of;
    size_t count, at;
    struct loop_timer *again;
    int64_t ends_ms;
    void (*done)(struct http_call *call);
    void (*refused)(struct http_call *call); /* before the call is answered so; may be NULL */
    void *user;                              /* the caller's */
    char shown[URL_MAX + 1];                 /* likewise */
};

/* Whose call->state it is from then on; freed with the call. NULL: out of memory, which is answered. */
struct engine_steps *engine_steps_begin(struct http_call *call, void (*done)(struct http_call *call), void *user);
void engine_steps_add(struct engine_steps *steps, enum message_id id, const char *url, const char *version);
/* Until no call of this engine, which is paused, is in flight. */
void engine_steps_add_wait(struct engine_steps *steps, const char *url);
/* `done` is called at once where there is none. */
void engine_steps_run(struct http_call *call);

/* What they hold, of those that are a part of something else. */
void engine_steps_finish(struct engine_steps *steps, struct loop *loop);

#endif
