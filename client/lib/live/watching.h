/*
 * watching.h - rollouts that a client watches (docs/live.md): what is heard of them, as batches that wait to be given
 * out. Pure but for the clock that is told; watch.c asks and waits.
 *
 * Batches come over FRONT, with the tag of the watch. The number of each says whether some before it were dropped; then
 * that is said in a batch of ours, and the rollout is to be told anew. At most READY_MAX batches wait: what comes
 * beyond is dropped likewise.
 */
#ifndef SLUICE_CLIENT_LIB_LIVE_WATCHING_H
#define SLUICE_CLIENT_LIB_LIVE_WATCHING_H

#include "client/lib/client.h"

enum {
    WATCHES_MAX = 256,
    READY_MAX = 64,
    ASK_MS = 5000,         /* how often a watch is renewed, ... */
    ASK_SOON_MS = 500,     /* ... while no worker has it, or it may have ended, ... */
    ASK_UNHEARD_MS = 2000, /* ... and while no answer comes */
    BEGIN_MS = 2000,       /* for so long what was told to others is passed over: the beginning comes */
    ANEW_MS = 1000         /* between two wishes to be told anew */
};

struct watch {
    struct watch *next;
    uint64_t tag;
    int64_t ask_ms;      /* when to ask next */
    int64_t unheard_ms;  /* since when no answer has come; 0: none is awaited */
    int64_t begin_by_ms; /* it is told from its beginning by then */
    int64_t anew_ms;     /* when it was last asked anew */
    bool wants_anew, is_ended;
    char stage[MESSAGE_MAX(rollout_events, stage) + 1]; /* the part that is heard; "": none yet */
    uint64_t attempt, expected;                         /* the next number */
    uint64_t dropped;                                   /* events, and not told of yet */
    char *state;                                        /* as it was told last; NULL: not yet */
    char rollout[];
};

struct watching {
    struct watch *first;
    size_t count;
    struct buffer ready[READY_MAX]; /* a ring of texts that end in NUL */
    size_t ready_at, ready_count;
    int refused;            /* a watch that was: its errno, ... */
    char refused_text[512]; /* ... and why */
    struct buffer given;    /* the one that was given out last */
};

struct watch *watching_find(const struct watching *watching, const char *rollout);
/* Zeroed but for its rollout; NULL when out of memory. */
struct watch *watching_add(struct watching *watching, const char *rollout);
void watching_remove(struct watching *watching, struct watch *watch);
void watching_finish(struct watching *watching);

/* What asks for it, and that it was asked now: `ask_ms` is when to ask again. */
struct msg_rollout_watch watching_message(const struct watch *watch);
void watching_note_asked(struct watch *watch, int64_t now_ms);
/* What came with a watch's tag, which is one of ours: false. Takes nothing over. */
bool watching_hear(struct watching *watching, const struct answer *answer, int64_t now_ms);
/* The next batch, good until the next call; NULL: none waits. A rollout that has ended is watched no more then. */
const char *watching_take(struct watching *watching);

#endif
