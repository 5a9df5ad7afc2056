/*
 * rollouts - a client that only measures: no-op rollouts through a running broker.
 *
 *     rollouts flow  FRONT FEED COUNT WINDOW BYTES [SAMPLES [prompt]]   WINDOW in flight until COUNT have ended,
 *                                                    in groups of SAMPLES (else of one): rollouts per second,
 *                                                    and from submit to published trajectory p50, p99 and
 *                                                    p99.9 in milliseconds
 *     rollouts queue FRONT FEED COUNT WINDOW BYTES   COUNT groups of one rollout are accepted and no
 *                                                    end is awaited, WINDOW not answered: accepted
 *                                                    per second
 *     rollouts paced FRONT FEED COUNT RATE BYTES     COUNT groups of one rollout are submitted, RATE a second, however
 *                                                    soon they end: each one's microseconds from when it was to be
 *                                                    submitted to its published trajectory, a line each
 *
 * A task's BYTES are in its metadata, which comes back with the trajectory; with `prompt` they are what its workers are
 * given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

#include "bench/service/raw.h"
#include "common/base/clock.h"
#include "schemas/messages/message.h"

enum { PATIENCE_MS = 60000, AGAIN_MS = 2000 };

struct bench {
    void *front, *feed;
    char *task, prefix[64], stream[64];
    long samples; /* of a group */
    struct buffer out;
};

static void die(const char *what)
{
    fprintf(stderr, "rollouts: %s\n", what);
    exit(1);
}

static void *open_socket(void *context, int type, const char *endpoint)
{
    void *socket = raw_unbounded_socket(context, type);
    if (zmq_connect(socket, endpoint))
        die(endpoint);
    return socket;
}

static char *make_task(size_t bytes, bool in_prompt)
{
    static const char of_metadata[] = "{\"task\":\"noop\",\"kind\":\"noop\",\"metadata\":{\"pad\":\"%s\"}}",
                      of_prompt[] = "{\"task\":\"noop\",\"kind\":\"noop\",\"prompt\":\"%s\"}";
    const char *format = in_prompt ? of_prompt : of_metadata;
    size_t fixed = strlen(format) - 2;
    size_t pad = bytes > fixed + 1 ? bytes - fixed : 1;
    char *filler = calloc(1, pad + 1), *task = malloc(fixed + pad + 1);
    if (!filler || !task)
        die("out of memory");
    memset(filler, 'x', pad);
    snprintf(task, fixed + pad + 1, format, filler);
    free(filler);
    return task;
}

static void submit(struct bench *bench, uint64_t number)
{
    char group[96];
    snprintf(group, sizeof(group), "%s-%llu", bench->prefix, (unsigned long long)number);
    struct msg_group_submit message = {.tag = number,
                                       .group = slice_from_str(group),
                                       .stream = slice_from_str(bench->stream),
                                       .samples = (uint64_t)bench->samples,
                                       .task = slice_from_str(bench->task)};
    struct refusal no;
    buffer_clear(&bench->out);
    if (!message_encode(MSG_group_submit, &message, &bench->out, &no))
        die(no.text);
    if (zmq_send(bench->front, bench->out.data, bench->out.len, 0) < 0)
        die("cannot send");
}

/*
 * How many replies came on FRONT; each may only be an acceptance. `has_answer`, by number, notes of which, and counts
 * each once; or NULL.
 */
static long read_replies(struct bench *bench, bool *has_answer)
{
    long count = 0;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, bench->front, ZMQ_DONTWAIT) >= 0) {
        struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
        struct msg_group_accepted accepted;
        struct msg_refused refused;
        struct refusal no;
        if (!message_decode(MSG_group_accepted, bytes, &accepted, &no)) {
            if (message_decode(MSG_refused, bytes, &refused, &no))
                fprintf(stderr, "%.*s\n", SLICE_ARG(refused.text));
            die("a submit was refused");
        }
        count += !has_answer || !has_answer[accepted.tag];
        if (has_answer)
            has_answer[accepted.tag] = true;
    }
    zmq_msg_close(&frame);
    return count;
}

static void await(struct bench *bench)
{
    zmq_pollitem_t items[2] = {{bench->front, 0, ZMQ_POLLIN, 0}, {bench->feed, 0, ZMQ_POLLIN, 0}};
    if (zmq_poll(items, 2, PATIENCE_MS) <= 0)
        die("nothing came for 60 s; is the broker up with init, run and eval workers?");
}

/* ---- flow ---------------------------------------------------------------------------- */

/* Its group's among all that were submitted; -1: it is not ours. */
static long number_of(const struct bench *bench, struct slice group)
{
    size_t len = strlen(bench->prefix);
    char digits[24] = "";
    if (group.len <= len + 1 || group.len - len - 1 >= sizeof(digits) || memcmp(group.data, bench->prefix, len) != 0)
        return -1;
    memcpy(digits, group.data + len + 1, group.len - len - 1);
    return atol(digits);
}

/* The trajectories that came: from times of submits, times taken. Returns how many. */
static long read_feed(struct bench *bench, int64_t *us, long count)
{
    long ended = 0;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, bench->feed, ZMQ_DONTWAIT) >= 0) {
        struct slice bytes = slice_of(zmq_msg_data(&frame), zmq_msg_size(&frame));
        struct msg_trajectory trajectory;
        enum message_id id;
        struct refusal no;
        bool is_topic = zmq_msg_more(&frame);
        if (is_topic || !message_peek(bytes, &id, &no) || id != MSG_trajectory ||
            !message_decode(id, bytes, &trajectory, &no))
            continue;
        long group = number_of(bench, trajectory.group);
        long rollout = group * bench->samples + (long)trajectory.sample;
        if (group < 0 || rollout >= count)
            die("a trajectory of another group came");
        us[rollout] = clock_us() - us[rollout];
        ended++;
    }
    zmq_msg_close(&frame);
    return ended;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure_flow(struct bench *bench, long count, long window)
{
    int64_t *us = calloc((size_t)count, sizeof(*us)), start_us = clock_us();
    if (!us)
        die("out of memory");
    for (long sent = 0, ended = 0; ended < count;) {
        while (sent < count && sent - ended < window) {
            uint64_t group = (uint64_t)(sent / bench->samples);
            int64_t now_us = clock_us();
            for (long k = 0; k < bench->samples; k++)
                us[sent++] = now_us;
            submit(bench, group);
        }
        await(bench);
        read_replies(bench, NULL);
        ended += read_feed(bench, us, count);
    }
    double took_us = (double)(clock_us() - start_us);
    qsort(us, (size_t)count, sizeof(*us), compare);
    printf("%.0f %.2f %.2f %.2f\n", (double)count * 1e6 / took_us, (double)us[count / 2] / 1000,
           (double)us[count * 99 / 100] / 1000, (double)us[count * 999 / 1000] / 1000);
    free(us);
}

/* ---- queue --------------------------------------------------------------------------- */

/* The broker drops answers to a client that it takes for one that does not read: they are asked for again. */
static void await_reply(struct bench *bench, const bool *has_answer, long sent)
{
    zmq_pollitem_t item = {bench->front, 0, ZMQ_POLLIN, 0};
    for (int tries = 0; zmq_poll(&item, 1, AGAIN_MS) == 0; tries++) {
        if (tries == PATIENCE_MS / AGAIN_MS)
            die("nothing came for 60 s; is the broker up?");
        for (long i = 0; i < sent; i++)
            if (!has_answer[i])
                submit(bench, (uint64_t)i);
    }
}

static void measure_queue(struct bench *bench, long count, long window)
{
    bool *has_answer = calloc((size_t)count, sizeof(*has_answer));
    int64_t start_us = clock_us();
    if (!has_answer)
        die("out of memory");
    for (long sent = 0, accepted = 0; accepted < count;) {
        while (sent < count && sent - accepted < window)
            submit(bench, (uint64_t)sent++);
        await_reply(bench, has_answer, sent);
        accepted += read_replies(bench, has_answer);
    }
    printf("%.0f\n", (double)count * 1e6 / (double)(clock_us() - start_us));
    free(has_answer);
}

/* ---- paced --------------------------------------------------------------------------- */

static void measure_paced(struct bench *bench, long count, long rate)
{
    const int timer = raw_timer(rate);
    int64_t *us = calloc((size_t)count, sizeof(*us)), start_us = clock_us();
    zmq_pollitem_t items[] = {
        {bench->front, 0, ZMQ_POLLIN, 0}, {bench->feed, 0, ZMQ_POLLIN, 0}, {NULL, timer, ZMQ_POLLIN, 0}};
    uint64_t due = 0, ticks;
    if (!us)
        die("out of memory");
    for (long sent = 0, ended = 0; ended < count; ended += read_feed(bench, us, count)) {
        items[2].events = sent < count ? ZMQ_POLLIN : 0;
        if (zmq_poll(items, 3, PATIENCE_MS) <= 0)
            die("nothing came for 60 s");
        if (sent < count && read(timer, &ticks, sizeof(ticks)) == sizeof(ticks))
            due += ticks;
        for (; sent < count && (uint64_t)sent < due; sent++) {
            us[sent] = start_us + (sent + 1) * 1000000LL / rate;
            submit(bench, (uint64_t)sent);
        }
        read_replies(bench, NULL);
    }
    for (long i = 0; i < count; i++)
        printf("%lld\n", (long long)us[i]);
    free(us);
    close(timer);
}

static void (*find_measure(const char *mode))(struct bench *, long, long)
{
    static const struct {
        const char *name;
        void (*measure)(struct bench *, long, long);
    } modes[] = {{"flow", measure_flow}, {"queue", measure_queue}, {"paced", measure_paced}};
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        if (strcmp(mode, modes[i].name) == 0)
            return modes[i].measure;
    return NULL;
}

int main(int argc, char **argv)
{
    void (*measure)(struct bench *, long, long) = argc > 1 ? find_measure(argv[1]) : NULL;
    bool in_prompt = argc == 9 && strcmp(argv[8], "prompt") == 0;
    bool has_words = argc == 7 || (measure == measure_flow && (argc == 8 || in_prompt));
    long samples = argc >= 8 ? atol(argv[7]) : 1;
    if (!measure || !has_words || samples < 1 || atol(argv[4]) % samples || atol(argv[5]) < 1) {
        fprintf(stderr, "usage: rollouts flow FRONT FEED COUNT WINDOW BYTES [SAMPLES [prompt]], COUNT a "
                        "multiple of SAMPLES\n"
                        "       rollouts queue FRONT FEED COUNT WINDOW BYTES\n"
                        "       rollouts paced FRONT FEED COUNT RATE BYTES\n");
        return 2;
    }
    void *context = zmq_ctx_new();
    struct bench bench = {.front = open_socket(context, ZMQ_DEALER, argv[2]),
                          .feed = open_socket(context, ZMQ_SUB, argv[3]),
                          .task = make_task((size_t)atol(argv[6]), in_prompt),
                          .samples = samples};
    snprintf(bench.prefix, sizeof(bench.prefix), "b%lld-%d", (long long)clock_wall_ms(), getpid());
    snprintf(bench.stream, sizeof(bench.stream), "bench-%d", getpid());
    char topic[80];
    snprintf(topic, sizeof(topic), "t/%s/", bench.stream);
    if (zmq_setsockopt(bench.feed, ZMQ_SUBSCRIBE, topic, strlen(topic)))
        die("cannot subscribe");
    usleep(300000); /* a PUB drops what it sends before the subscription has arrived */
    measure(&bench, atol(argv[4]), atol(argv[5]));
    buffer_finish(&bench.out);
    free(bench.task);
    zmq_close(bench.front);
    zmq_close(bench.feed);
    zmq_ctx_term(context);
    return 0;
}
