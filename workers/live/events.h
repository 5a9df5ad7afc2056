/*
 * events.h - events of docs/live.md as JSON: each function appends one object, of at most LIVE_EVENT_BYTES, to a list
 * that has begun. What is longer is cut, and says so. Text of models, tools and tasks may be anything: what is no UTF-8
 * becomes U+FFFD. Pure.
 */
#ifndef SLUICE_WORKERS_LIVE_EVENTS_H
#define SLUICE_WORKERS_LIVE_EVENTS_H

#include "common/base/buffer.h"
#include "workers/live/turns.h"
#include "workers/runtime/activity.h"

enum {
    LIVE_EVENT_BYTES = 56 << 10,
    LIVE_TOKENS = 1024,           /* of one event, ... */
    LIVE_TURN_TOKENS = 16 * 1024, /* ... and of one turn */
    LIVE_CONTENT_BYTES = 12 << 10 /* of a message */
};

/* A list of events as it grows: what stands between its brackets. */
struct live_list {
    struct buffer json;
    size_t count;
};

void live_put_left_out(struct live_list *list, size_t messages, size_t turns);
/* Of phases before those that are kept, and these. */
void live_put_times(struct live_list *list, const struct activity *activity);
void live_put_past(struct live_list *list, const struct activity *activity);
void live_put_phase(struct live_list *list, const struct activity *activity);
void live_put_message(struct live_list *list, size_t index, const struct record_message *message);
void live_put_trace(struct live_list *list, const struct live_turn *turn);
void live_put_turn(struct live_list *list, size_t number, const struct live_turn *turn);
/* Up to LIVE_TOKENS of the turn from `offset` on; how many. */
size_t live_put_tokens(struct live_list *list, size_t number, const struct live_turn *turn, size_t offset);
/* A beginning of the text; how much. */
size_t live_put_delta(struct live_list *list, uint32_t sampling, struct slice text);
void live_put_heard(struct live_list *list, uint32_t sampling, bool stands);
void live_put_end(struct live_list *list, const struct activity *activity, int64_t now_ms, const char *outcome,
                  const char *detail);

#endif
