/*
 * live.h - what a job does, told to who watches it (docs/live.md). There is one for each job that is watched, made when
 * somebody begins to, and none else. It keeps nothing of what is to be told but how far it was: the messages and turns
 * are read from the record as it grows, so who comes late is told them from their beginning, and who is slow costs
 * nothing. Only what is in no record is noted meanwhile, in LIVE_OWN_BYTES: phases, and what became of turns that were
 * heard. Events have numbers, and those that are dropped have theirs.
 *
 * All on the loop's thread; nothing awaits.
 */
#ifndef SLUICE_WORKERS_LIVE_LIVE_H
#define SLUICE_WORKERS_LIVE_LIVE_H

#include <sys/queue.h>

#include "workers/live/events.h"

enum {
    LIVE_BATCH_BYTES = MESSAGE_MAX(rollout_live, events),
    LIVE_OWN_BYTES = 16 << 10,
    LIVE_PAST_BYTES = 256 << 10, /* of messages, and of turns, that are told to who begins to watch */
    LIVE_REST_BYTES = 512 << 10, /* of what is told when the record has gone */
    LIVE_ANEW_MS = 1000          /* from one beginning to the next */
};

/* Some of them: rollout.live. */
struct live_batch { /* live_batch_destroy it */
    STAILQ_ENTRY(live_batch) links;
    uint64_t number;
    size_t count;
    struct buffer json;
};
STAILQ_HEAD(live_batches, live_batch);

struct live {
    int64_t until_ms; /* somebody watches */
    int64_t anew_ms;  /* when it began from the beginning last */
    bool wants_anew, wants_head;
    bool is_over;                   /* the record has gone: it cannot begin again */
    uint64_t number;                /* the next event's */
    size_t messages, turns, tokens; /* told; tokens: of the turn behind those */
    bool has_begun_turn;            /* that one's other events */
    const struct live_turns *source;
    struct live_list own; /* noted */
    size_t past_messages, past_turns;
    struct live_batches rest; /* made before the record went */
    size_t rest_bytes;
};

/* Watched until then; makes what is needed for it. False when out of memory. */
bool live_watch(struct activity *activity, int64_t until_ms, bool anew, int64_t now_ms);
/* Nobody watches (any more). */
void live_end(struct activity *activity);

/* What there is to tell now, at most a batch; NULL: nothing, or no memory. */
struct live_batch *live_take(struct activity *activity, int64_t now_ms);
/* The last of all, behind all that was not told. */
struct live_batch *live_take_last(struct activity *activity, int64_t now_ms, const char *outcome, const char *detail);
void live_batch_destroy(struct live_batch *batch);

/* The current fiber's job writes this record from now on; what it wrote is made before it goes. */
void live_show(const struct record *record);
void live_hide(void);
/* The same of turns that are not in the record yet. */
void live_show_turns(const struct live_turns *turns);

/* What became of a turn that was heard. `live` may be NULL: nobody watches. */
void live_note_heard(struct live *live, uint32_t sampling, bool stands);

#endif
