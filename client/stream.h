/*
 * stream.h - reading one stream: each trajectory once, in order, whatever is lost on the way.
 *
 * FEED is a SUB on t/<stream>: fast, and free to drop. `next` is the number wanted. From FEED, a
 * number below next is a duplicate and dropped; next itself is taken; one above it shows a gap.
 * A gap, or a stream.head that has passed what arrived, starts a stream.fetch on FRONT; until its
 * answer has ended FEED is left unread, so that nothing has to be put in order. What the fetch
 * left behind FEED then repeats, as duplicates. So memory is bounded by one fetch's answer (at
 * most FETCH_LIMIT trajectories, 8 MiB beyond the first) and FEED's queue.
 */
#ifndef SLUICE_CLIENT_STREAM_H
#define SLUICE_CLIENT_STREAM_H

#include "client/client.h"

enum {
    FETCH_LIMIT = 64,
    FETCH_PAUSE_MS = 250, /* after a fetch that brought nothing although there is more */
    SILENCE_MS = 2000     /* FEED says heads every second: after so long without, ask FRONT */
};

struct stream {
    char name[65], topic[68];
    void *feed;
    uint64_t next;            /* the number to give out next */
    uint64_t head, pending, epoch;
    struct answer ready[FETCH_LIMIT]; /* trajectories, in order from next */
    size_t ready_at, ready_end;
    struct request fetch;
    bool fetching, wanted;    /* wanted: something is missing, fetch it */
    uint64_t fetched;         /* how many the running fetch brought */
    int64_t not_before_ms;    /* of the next fetch */
    int64_t heard_ms;         /* when FEED or FRONT last told of this stream */
    uint64_t first;           /* the oldest number kept, as last heard */
    int failed;               /* what the next sluice_next returns, and its sentence */
    char failed_text[2304];
    struct trajectory_view view;
};

#endif
