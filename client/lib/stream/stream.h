/*
 * stream.h - reading one stream: each trajectory once, in order, whatever is lost on the way.
 *
 * FEED is a SUB on t/<stream>/: fast, and free to drop. `next` is the number wanted. From FEED, a
 * number below next is a duplicate and dropped; next itself is taken; one above it shows a gap.
 * A gap, or a stream.head that has passed what arrived, starts a stream.fetch on FRONT; until its
 * answer has ended FEED is left unread, so that nothing has to be put in order, and what it
 * brought is not given out: the head that ends it says whose numbers these are. What the fetch
 * left behind FEED then repeats, as duplicates. So memory is bounded by one fetch's answer (at
 * most FETCH_LIMIT trajectories, 8 MiB beyond the first) and FEED's queue.
 *
 * A broker that was started again may have another ledger, an older back-up or an empty one, in which
 * the numbers after some point are other rollouts. Heads tell (seen.h); where the stream has grown
 * again meanwhile, the number before `next` does: after each new start it is fetched too, and must be
 * the one that was given out.
 *
 * stream.c works; subscribe.c is what sluice.h says of streams; cursor.h keeps positions in files.
 */
#ifndef SLUICE_CLIENT_LIB_STREAM_STREAM_H
#define SLUICE_CLIENT_LIB_STREAM_STREAM_H

#include "client/lib/request.h"
#include "client/lib/stream/seen.h"
#include "schemas/messages/message_max.h"

enum {
    FETCH_LIMIT = 64,
    FETCH_PAUSE_MS = 250, /* after a fetch that brought nothing although there is more */
    SILENCE_MS = 2000,    /* FEED says heads every second: after so long without, ask FRONT */
    RENEW_MS = 5000       /* how often a reader says that it is alive, for leases */
};

/* What was given out last, the number before `next`. */
struct given {
    char rollout[MESSAGE_MAX(trajectory, rollout) + 1]; /* "" when nothing was */
    uint64_t ended_ms;
};

struct stream {
    char name[MESSAGE_MAX(stream_fetch, stream) + 1], topic[MESSAGE_MAX(stream_fetch, stream) + sizeof("t//")];
    void *feed;
    uint64_t made; /* FRONT's count when feed was made (link.h) */
    uint64_t next; /* the number to give out next */
    uint64_t head, pending;
    struct seen seen; /* of the ledger that is read */
    uint64_t first;   /* the oldest number kept, as last heard */
    struct given last;
    struct answer ready[FETCH_LIMIT]; /* trajectories, in order from next */
    size_t ready_at, ready_end;
    struct request fetch;
    bool fetching, wanted;  /* wanted: something is missing, fetch it */
    bool asks_head;         /* the next fetch asks only where the stream stands */
    bool checks;            /* the next fetch begins one earlier, with what was given out last */
    bool differs;           /* ... and it was another */
    uint64_t submits;       /* to it, by this client ... */
    uint64_t fetch_submits; /* ... when the running fetch began */
    uint64_t fetched;       /* how many the running fetch brought */
    int64_t asked_ms;       /* when the running fetch began */
    int64_t not_before_ms;  /* of the next fetch */
    int64_t heard_ms;       /* when FEED or FRONT last told of this stream */
    int64_t renew_ms;       /* when to renew its leases */
    int failed;             /* what the next sluice_next returns, and its sentence */
    char failed_text[2304];
    struct trajectory_view view;
    char *cursor_path; /* NULL: none */
    bool moved;        /* since the cursor was written */
};

/* Works until something is ready, the stream failed or deadline_ms (-1: never) has passed. */
int stream_await(struct sluice_client *client, int64_t deadline_ms);
/* This client has submitted so many rollouts to it: what was heard of it before counts no longer. */
void stream_expect_more(struct stream *stream, uint64_t samples);
/* What the head of a fetch's answer says is so. */
void stream_end_fetch(struct sluice_client *client, const struct msg_stream_head *head);

/* FEED, or FEED again: what was not read of the old socket is fetched. */
int stream_open_feed(struct sluice_client *client);

/* The client's `offer_stream`: takes the answers to the stream's fetch. */
answer_offer stream_offer;
void stream_close(struct stream **stream);

#endif
