/*
 * hook.h - an operator's hooks between a harness and its model, as the proxy asks them: in words alone, as JSON. What
 * answers is a handler's (handlers/roles/hook.h).
 */
#ifndef SLUICE_WORKERS_AGENTS_HOOK_H
#define SLUICE_WORKERS_AGENTS_HOOK_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

/* What passes: a request, or a turn that was sampled. Borrowed. */
struct hook_asking {
    uint64_t turn;                       /* from 1 on */
    struct slice messages, tools, reply; /* JSON; `reply` empty: of a request */
};

struct hook_answer { /* hook_answer_finish it */
    enum { HOOK_PASS, HOOK_CHANGE, HOOK_REFUSE } action;
    struct buffer words; /* refuse */
    struct buffer json;  /* change: messages, or a reply */
};

struct hook_source {
    size_t count;
    /* Awaits. -EOWNERDEAD with a sentence: it is not there, died, broke its protocol, or did not answer in time. */
    int (*ask)(struct hook_source *source, size_t which, const struct hook_asking *asking, struct hook_answer *ret,
               struct fail *fail);
    const char *(*name)(const struct hook_source *source, size_t which);
};

static inline void hook_answer_finish(struct hook_answer *answer)
{
    buffer_finish(&answer->words);
    buffer_finish(&answer->json);
}

#endif
