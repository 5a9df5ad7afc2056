/*
 * peers - another system's worker, or the client of its pipeline of no-op jobs: init, run, eval, done.
 *
 *     peers PEER PORT prepare                    its queues, empty
 *     peers PEER PORT work STAGE                 a worker, until it is killed
 *     peers PEER PORT hold STAGE COUNT           a worker that takes COUNT jobs, says so and keeps them
 *     peers PEER PORT flow COUNT WINDOW BYTES    WINDOW in flight until COUNT have ended: jobs per second,
 *                                                and from submit to result p50 and p99 in milliseconds
 *     peers PEER PORT ask COUNT BYTES            COUNT at once; how many have been answered, a line each time
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/peer_systems/peers.h"
#include "common/base/clock.h"

enum { TIMEOUT_S = 120 };

const char *const stage_names[STAGES + 1] = {"init", "run", "eval", "done"};

static const struct peer *const peers[] = {&peer_redis_lists, &peer_redis_streams, &peer_beanstalkd,
                                           &peer_nats,        &peer_rabbitmq,      &peer_rabbitmq_quorum};

static struct link self;

static const struct peer *find_peer(const char *name)
{
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
        if (strcmp(peers[i]->name, name) == 0)
            return peers[i];
    die("no such peer", slice_from_str(name));
}

static int find_stage(const char *name)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (strcmp(stage_names[stage], name) == 0)
            return stage;
    die("no such stage", slice_from_str(name));
}

/* ---- a worker ----------------------------------------------------------------------------------------- */

static void pass(const struct peer *peer, const struct job jobs[], size_t count)
{
    if (peer->pass) {
        peer->pass(&self, jobs, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        peer->submit(&self, self.stage + 1, jobs[i].body);
    wire_flush(&self.give);
    for (size_t confirmed = 0; confirmed < count;)
        confirmed += peer->confirm(&self, true);
    peer->finish(&self, jobs, count);
}

static void work(const struct peer *peer)
{
    struct job jobs[BATCH];
    peer->attend(&self);
    for (;;)
        pass(peer, jobs, peer->take(&self, jobs));
}

static void hold(const struct peer *peer, size_t count)
{
    struct job jobs[BATCH];
    peer->attend(&self);
    for (size_t held = 0; held < count;)
        held += peer->take(&self, jobs);
    puts("holds");
    fflush(stdout);
    for (;;)
        pause();
}

/* ---- the client --------------------------------------------------------------------------------------- */

/* What a job's body begins with. */
struct stamp {
    int64_t client;
    uint64_t number;
};

struct asked {
    int64_t *us; /* by number: when it was submitted, then what it took */
    bool *is_answered;
    uint8_t *body;
    size_t body_len, sent, answered, confirmed;
};

static void asked_init(struct asked *asked, size_t count, size_t body_len)
{
    *asked = (struct asked){.us = calloc(count, sizeof(*asked->us)),
                            .is_answered = calloc(count, sizeof(bool)),
                            .body = calloc(1, body_len),
                            .body_len = body_len};
    if (!asked->us || !asked->is_answered || !asked->body || body_len < sizeof(struct stamp))
        die("flow", slice_from_str("out of memory, or too short a job"));
    memset(asked->body, 'x', body_len);
}

static void asked_finish(struct asked *asked)
{
    free(asked->us);
    free(asked->is_answered);
    free(asked->body);
}

static void submit(const struct peer *peer, struct asked *asked)
{
    struct stamp stamp = {.client = getpid(), .number = asked->sent++};
    memcpy(asked->body, &stamp, sizeof(stamp));
    asked->us[stamp.number] = clock_us();
    peer->submit(&self, 0, slice_of(asked->body, asked->body_len));
}

/* What came; a job that was done twice counts once, and one of an earlier client not at all. */
static void take_results(const struct peer *peer, struct asked *asked)
{
    struct job jobs[BATCH];
    size_t count = peer->take(&self, jobs);
    for (size_t i = 0; i < count; i++) {
        struct stamp stamp = {0};
        if (jobs[i].body.len == asked->body_len)
            memcpy(&stamp, jobs[i].body.data, sizeof(stamp));
        if (stamp.client != getpid() || asked->is_answered[stamp.number])
            continue;
        asked->is_answered[stamp.number] = true;
        asked->us[stamp.number] = clock_us() - asked->us[stamp.number];
        asked->answered++;
    }
    peer->finish(&self, jobs, count);
}

static void await_confirms(const struct peer *peer, struct asked *asked)
{
    while (asked->confirmed < asked->sent)
        asked->confirmed += peer->confirm(&self, true);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void flow(const struct peer *peer, size_t count, size_t window, size_t body_len)
{
    struct asked asked;
    asked_init(&asked, count, body_len);
    self.stage = DONE;
    peer->attend(&self);
    int64_t start_us = clock_us();
    while (asked.answered < count) {
        while (asked.sent < count && asked.sent - asked.answered < window)
            submit(peer, &asked);
        wire_flush(&self.give);
        take_results(peer, &asked);
        if (asked.confirmed < asked.sent)
            asked.confirmed += peer->confirm(&self, false);
    }
    double took_us = (double)(clock_us() - start_us);
    await_confirms(peer, &asked);
    qsort(asked.us, count, sizeof(*asked.us), compare);
    printf("%.0f %.3f %.3f\n", (double)count * 1e6 / took_us, (double)asked.us[count / 2] / 1000,
           (double)asked.us[count * 99 / 100] / 1000);
    asked_finish(&asked);
}

static void ask(const struct peer *peer, size_t count, size_t body_len)
{
    struct asked asked;
    asked_init(&asked, count, body_len);
    self.stage = DONE;
    peer->attend(&self);
    while (asked.sent < count)
        submit(peer, &asked);
    wire_flush(&self.give);
    await_confirms(peer, &asked);
    while (asked.answered < count) {
        printf("%zu\n", asked.answered);
        fflush(stdout);
        take_results(peer, &asked);
    }
    printf("%zu\n", asked.answered);
    asked_finish(&asked);
}

int main(int argc, char **argv)
{
    const char *role = argc > 3 ? argv[3] : "";
    if (argc < 4) {
        fprintf(stderr, "usage: peers PEER PORT prepare|work|hold|flow|ask ...\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it ends with the bench, however that ends */
    const struct peer *peer = find_peer(argv[1]);
    self.port = atoi(argv[2]);
    snprintf(self.name, sizeof(self.name), "bench-%s-%d", role, getpid());
    if (strcmp(role, "prepare") == 0 && argc == 4) {
        peer->prepare(&self);
    } else if (strcmp(role, "work") == 0 && argc == 5) {
        self.stage = find_stage(argv[4]);
        work(peer);
    } else if (strcmp(role, "hold") == 0 && argc == 6) {
        self.stage = find_stage(argv[4]);
        hold(peer, (size_t)atol(argv[5]));
    } else if (strcmp(role, "flow") == 0 && argc == 7) {
        alarm(TIMEOUT_S);
        flow(peer, (size_t)atol(argv[4]), (size_t)atol(argv[5]), (size_t)atol(argv[6]));
    } else if (strcmp(role, "ask") == 0 && argc == 6) {
        alarm(TIMEOUT_S);
        ask(peer, (size_t)atol(argv[4]), (size_t)atol(argv[5]));
    } else {
        die("no such role", slice_from_str(role));
    }
    return 0;
}
