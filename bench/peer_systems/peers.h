/*
 * peers.h - other systems' queues, spoken over plain sockets so that no client library is measured with
 * them. Each carries the same jobs through the same three stages, in batches of what has come, at most
 * BATCH: a job is done with at its stage only when the next one has confirmed that it has it.
 *
 * A link is one process's way to a server, with one connection for what it takes and one for what it
 * gives, where the server lets one wait for the other. Whatever goes wrong ends the process with a
 * sentence; nothing is retried, as nothing may go wrong while one measures.
 */
#ifndef SLUICE_BENCH_PEERS_H
#define SLUICE_BENCH_PEERS_H

#include "common/base/buffer.h"

enum { STAGES = 3, DONE = STAGES, BATCH = 64, AHEAD = 1 << 16 };

/* A connection. What is read stays where it is until wire_forget. */
struct wire {
    int fd;
    uint8_t *in;
    size_t at, len; /* of `in`: what is not yet read, and all of it */
    struct buffer out;
};

void wire_open(struct wire *wire, int port);
void wire_flush(struct wire *wire);
/* The next `len` bytes, or the next line without its CRLF; wait until they are there. */
struct slice wire_take(struct wire *wire, size_t len);
struct slice wire_line(struct wire *wire);
/* Whether there is more to read now. */
bool wire_pending(struct wire *wire);
/* Until there is more to read, or so long. */
bool wire_await(struct wire *wire, int timeout_ms);
/* What was read may be overwritten. */
void wire_forget(struct wire *wire);

struct job {
    struct slice body;   /* in the link's `take`, until the next take */
    struct slice handle; /* what the server calls it: a number or a text */
    uint64_t number;
};

struct link {
    struct wire take, give; /* fd 0: not yet open */
    int stage, port;
    char name[64]; /* this process's, of no other */
    /* A peer's own: */
    size_t asked;       /* beanstalkd: how many it asks for next; NATS: how many are still to come */
    uint64_t confirmed; /* RabbitMQ: all up to this number are, and */
    bool ahead[AHEAD];  /* these beyond it, by number % AHEAD */
    int64_t claimed_ms; /* Redis streams: when it last looked for jobs of the dead */
    char script[48];    /* Redis lists: its name there */
};

/*
 * prepare  makes the peer's queues, empty; once, before all else
 * attend   from now on this link takes of link->stage; of DONE: results, as the client does
 * take     waits for one job at least and takes what else is there
 * submit   puts a job into the stage's queue, on link->give; nothing is sent before a flush
 * confirm  how many submits have been confirmed since the last call; waits for one, or does not
 * finish   is done with jobs that were taken
 * pass     submits to the next stage and finishes in one step, where the peer has such a step; or NULL
 */
struct peer {
    const char *name;
    void (*prepare)(struct link *link);
    void (*attend)(struct link *link);
    size_t (*take)(struct link *link, struct job jobs[BATCH]);
    void (*submit)(struct link *link, int stage, struct slice body);
    size_t (*confirm)(struct link *link, bool waits);
    void (*finish)(struct link *link, const struct job jobs[], size_t count);
    void (*pass)(struct link *link, const struct job jobs[], size_t count);
};

extern const struct peer peer_redis_lists, peer_redis_streams, peer_beanstalkd, peer_nats, peer_rabbitmq,
    peer_rabbitmq_quorum;

extern const char *const stage_names[STAGES + 1];

_Noreturn void die(const char *what, struct slice said);

#endif
