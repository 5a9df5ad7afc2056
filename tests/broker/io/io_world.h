/*
 * io_world.h - a broker in a process of its own that may be killed, a client, and
 * workers that are made of messages. Nothing here sleeps: `world_until` polls all sockets
 * and lets workers beat and answer until what is waited for is true, or fails.
 *
 * The broker is this program again, started with its own command line (world_is_broker).
 */
#ifndef SLUICE_TESTS_BROKER_IO_IO_WORLD_H
#define SLUICE_TESTS_BROKER_IO_IO_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <zmq.h>

#include <cmocka.h>

#include "broker/program.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/net/bundle.h"
#include "schemas/messages/message.h"

#define S(text) slice_from_str(text)

enum { WAIT_MS = 20000, BEAT_MS = 100, HELD_MAX = 64, FAKES_MAX = 4 };

struct held {
    char job[141];
    uint64_t token;
    bool answered;
    struct buffer result;
};

/* A worker: takes jobs, answers at most `allowance` of them, keeps each result until it is acknowledged. */
struct fake {
    char id[32], lane[128];
    enum stage stage;
    void *pull, *push;
    bool silent;        /* beats no more */
    const char *offers; /* of its handlers, or NULL */
    bool fails;         /* its jobs end as infra */
    char record[160];   /* that it was sent last with a job */
    uint64_t epoch;
    struct held held[HELD_MAX];
    size_t held_count;
    uint64_t started, allowance;
    unsigned watches;    /* times it was told that somebody watches */
    size_t record_bytes; /* of what a run leaves; 0: its name */
    bool bundles;        /* it says so: several messages may come as one ... */
    bool may_bundle;     /* ... and the broker that it reads such */
    unsigned bundled;    /* results that it sent so */
    bool shares_tasks;   /* it says so: what jobs of a group share may come once in a bundle */
    unsigned shared;     /* jobs that came without a task of their own ... */
    unsigned tasks;      /* ... and what they shared */
    char task_group[97]; /* whose job.task came last in the bundle in hand; "": none did */
};

struct world {
    char dir[64], data[80], front[96], sink[96], feed[96];
    const char *options[8]; /* of the broker, beside the usual ones */
    pid_t broker;
    bool keeps_words;
    int words; /* where they are kept: what it says from when it is ready */
    void *context, *client, *subscriber;
    struct fake fakes[FAKES_MAX];
    size_t fake_count;
    int64_t beat_ms;
    uint64_t tag;
    zmq_msg_t answer; /* the last one from FRONT, decoded on demand */
    bool has_answer;
    struct buffer out;
};

/* ---- sockets ---------------------------------------------------------------------------------- */

static inline void *world_socket(struct world *world, int type, const char *endpoint, bool binds)
{
    void *socket = zmq_socket(world->context, type);
    int none = 0, soon_ms = 10;
    assert_non_null(socket);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &soon_ms, sizeof(soon_ms));
    if (type == ZMQ_SUB)
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "t/", 2);
    assert_int_equal(binds ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint), 0);
    return socket;
}

static inline void world_send(struct world *world, void *socket, enum message_id id, const void *message)
{
    struct refusal no;
    buffer_clear(&world->out);
    if (!message_encode(id, message, &world->out, &no))
        fail_msg("%s", no.text);
    assert_true(zmq_send(socket, world->out.data, world->out.len, ZMQ_DONTWAIT) >= 0);
}

static inline bool world_decode(zmq_msg_t *frame, enum message_id id, void *ret)
{
    struct refusal no;
    return message_decode(id, slice_of(zmq_msg_data(frame), zmq_msg_size(frame)), ret, &no);
}

/* ---- the broker as a process --------------------------------------------------------------------- */

static const char world_broker_mark[] = "--as-broker";

static inline bool world_is_broker(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], world_broker_mark) == 0;
}

static inline int world_be_broker(int argc, char **argv)
{
    argv[1] = argv[0];
    return program_main(argc - 1, argv + 1);
}

/* Runs the broker with these arguments, stdout and stderr into one pipe; the pid. */
static inline pid_t world_spawn(const char *const *arguments, int *ret_fd)
{
    const char *argv[48] = {"sluice-broker", world_broker_mark};
    size_t count = 2;
    for (; *arguments && count < 47; arguments++)
        argv[count++] = *arguments;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        execv("/proc/self/exe", (char **)argv);
        _exit(127);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

/* Reads until `word` or the end; false at the end. */
static inline bool world_read_until(int fd, const char *word, char *text, size_t size)
{
    size_t len = 0;
    int64_t until_ms = clock_ms() + WAIT_MS;
    text[0] = '\0';
    for (;;) {
        struct pollfd item = {fd, POLLIN, 0};
        assert_true(poll(&item, 1, (int)(until_ms - clock_ms())) > 0);
        ssize_t got = read(fd, text + len, size - 1 - len);
        if (got <= 0)
            return false;
        len += (size_t)got;
        text[len] = '\0';
        if (word && strstr(text, word))
            return true;
    }
}

/* Runs the broker to its end; its exit status, its words in `text`. */
static inline int world_run(const char *const *arguments, char *text, size_t size)
{
    int fd, status;
    pid_t pid = world_spawn(arguments, &fd);
    world_read_until(fd, NULL, text, size);
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void world_start(struct world *world)
{
    const char *arguments[32] = {"--data",         world->data, "--ipc",         world->dir, "--log",         "error",
                                 "--hold-grace",   "500ms",     "--adopt-grace", "500ms",    "--head-period", "50ms",
                                 "--beat-timeout", "1m"};
    char text[8192];
    int fd;
    for (size_t i = 0; world->options[i]; i++)
        arguments[14 + i] = world->options[i];
    world->broker = world_spawn(arguments, &fd);
    if (!world_read_until(fd, "broker ready", text, sizeof(text)))
        fail_msg("the broker did not start: %s", text);
    if (world->words)
        close(world->words);
    world->words = world->keeps_words ? fd : 0;
    if (!world->keeps_words)
        close(fd);
}

static inline int world_stop(struct world *world, int signal_number)
{
    int status;
    kill(world->broker, signal_number);
    assert_int_equal(waitpid(world->broker, &status, 0), world->broker);
    world->broker = 0;
    return status;
}

/* A world with its directory, and no broker yet. */
static inline struct world *world_create(void)
{
    struct world *world = calloc(1, sizeof(*world));
    strcpy(world->dir, "/tmp/sluice-io-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    snprintf(world->data, sizeof(world->data), "%s/data", world->dir);
    snprintf(world->front, sizeof(world->front), "ipc://%s/front", world->dir);
    snprintf(world->sink, sizeof(world->sink), "ipc://%s/sink", world->dir);
    snprintf(world->feed, sizeof(world->feed), "ipc://%s/feed", world->dir);
    return world;
}

static inline void world_connect(struct world *world)
{
    world->context = zmq_ctx_new();
    world->client = world_socket(world, ZMQ_DEALER, world->front, false);
    world->subscriber = world_socket(world, ZMQ_SUB, world->feed, false);
    zmq_msg_init(&world->answer);
}

static inline int world_set_up(void **state)
{
    struct world *world = world_create();
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

static inline void fake_finish(struct fake *fake)
{
    for (size_t i = 0; i < fake->held_count; i++)
        buffer_finish(&fake->held[i].result);
    if (fake->pull)
        zmq_close(fake->pull);
    zmq_close(fake->push);
}

static inline int world_tear_down(void **state)
{
    struct world *world = *state;
    if (world->broker)
        world_stop(world, SIGKILL);
    for (size_t i = 0; i < world->fake_count; i++)
        fake_finish(&world->fakes[i]);
    if (world->words)
        close(world->words);
    zmq_msg_close(&world->answer);
    zmq_close(world->client);
    zmq_close(world->subscriber);
    zmq_ctx_term(world->context);
    buffer_finish(&world->out);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world->dir);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

/* ---- workers made of messages ------------------------------------------------------------------------ */

static inline struct fake *fake_add(struct world *world, enum stage stage)
{
    assert_true(world->fake_count < FAKES_MAX);
    struct fake *fake = &world->fakes[world->fake_count++];
    *fake = (struct fake){.stage = stage, .allowance = UINT64_MAX, .bundles = true, .shares_tasks = true};
    snprintf(fake->id, sizeof(fake->id), "fake-%s-%zu", stage_wire(stage), world->fake_count);
    char lane[sizeof(fake->lane)];
    snprintf(lane, sizeof(lane), "ipc://%s/lane-%zu", world->dir, world->fake_count);
    memcpy(fake->lane, lane, sizeof(lane));
    fake->pull = world_socket(world, ZMQ_PULL, fake->lane, true);
    fake->push = world_socket(world, ZMQ_PUSH, world->sink, false);
    world->beat_ms = 0;
    return fake;
}

/* One of each stage. */
static inline void fakes_add(struct world *world)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        fake_add(world, stage);
}

static inline int world_set_up_fakes(void **state)
{
    world_set_up(state);
    fakes_add(*state);
    return 0;
}

static inline void fake_beat(struct world *world, struct fake *fake)
{
    AUTO_BUFFER packed = {0};
    for (size_t i = 0; i < fake->held_count; i++)
        assert_true(jobs_append(&packed, S(fake->held[i].job), fake->held[i].token));
    struct msg_worker_beat beat = {.worker = S(fake->id),
                                   .stage = S(stage_wire(fake->stage)),
                                   .slots = 8,
                                   .lane = S(fake->lane),
                                   .host = S("here"),
                                   .progress = (uint64_t)clock_ms(),
                                   .epoch = fake->epoch,
                                   .offers = S(fake->offers),
                                   .has_offers = fake->offers,
                                   .has_bundles = fake->bundles,
                                   .bundles = true,
                                   .has_shares_tasks = fake->shares_tasks,
                                   .shares_tasks = true,
                                   .jobs = {buffer_peek(&packed), (uint32_t)fake->held_count}};
    world_send(world, fake->push, MSG_worker_beat, &beat);
    for (size_t i = 0; i < fake->held_count; i++)
        if (fake->held[i].answered) /* the broker may have died with it */
            zmq_send(fake->push, fake->held[i].result.data, fake->held[i].result.len, ZMQ_DONTWAIT);
}

static inline struct held *fake_find(struct fake *fake, struct slice job)
{
    for (size_t i = 0; i < fake->held_count; i++)
        if (slice_is(job, fake->held[i].job))
            return &fake->held[i];
    return NULL;
}

static inline void fake_forget(struct fake *fake, struct slice job)
{
    struct held *held = fake_find(fake, job);
    if (!held)
        return;
    buffer_finish(&held->result);
    *held = fake->held[--fake->held_count];
    fake->held[fake->held_count] = (struct held){0};
}

/* A cancel or an acknowledgement may come when the job has been handed out again. */
static inline void fake_let_go(struct fake *fake, struct slice job, uint64_t token)
{
    const struct held *held = fake_find(fake, job);
    if (held && held->token <= token)
        fake_forget(fake, job);
}

/* What each stage must have been given, and what it gives: init a layer, run a record, eval a reward. */
static inline void fake_make_result(const struct fake *fake, const struct msg_job_start *job, struct buffer *out)
{
    static const uint8_t large[1 << 20];
    char answer[160], record[160];
    snprintf(answer, sizeof(answer), "answer %.*s/%u", SLICE_ARG(job->group), (unsigned)job->sample);
    snprintf(record, sizeof(record), "record %.*s/%u", SLICE_ARG(job->group), (unsigned)job->sample);
    struct msg_job_result result = {.worker = S(fake->id),
                                    .job = job->job,
                                    .token = job->token,
                                    .outcome = S(fake->fails ? "infra" : "ok"),
                                    .ms = 1};
    if (fake->stage == STAGE_INIT) {
        result.has_layer_digest = result.has_layer = true;
        result.layer_digest = S("sha256:init");
        result.layer = S("init layer");
    } else if (fake->stage == STAGE_RUN) {
        assert_true(slice_is(job->init_layer, "init layer"));
        result.has_answer = result.has_record = true;
        result.answer = S(answer);
        result.record = S(record);
        if (fake->record_bytes)
            result.record = slice_of(large, fake->record_bytes);
    } else {
        assert_true(slice_is(job->init_layer, "init layer") && slice_is(job->answer, answer));
        result.has_reward = true;
        result.reward = 1.0;
    }
    struct refusal no;
    if (!message_encode(MSG_job_result, &result, out, &no))
        fail_msg("%s", no.text);
}

/* One whose result it keeps is answered by that, as workers do; otherwise the new token is the one to answer. */
static inline void fake_take(struct fake *fake, const struct msg_job_start *job)
{
    assert_true(fake->held_count < HELD_MAX);
    struct held *held = fake_find(fake, job->job);
    if (held && held->answered) {
        zmq_send(fake->push, held->result.data, held->result.len, ZMQ_DONTWAIT);
        return;
    }
    fake_forget(fake, job->job);
    held = &fake->held[fake->held_count++];
    *held = (struct held){.token = job->token};
    snprintf(held->job, sizeof(held->job), "%.*s", SLICE_ARG(job->job));
    snprintf(fake->record, sizeof(fake->record), "%.*s", SLICE_ARG(job->record));
    fake_make_result(fake, job, &held->result);
    fake->started++;
}

static inline void fake_hear_hello(struct fake *fake, const struct msg_lane_hello *hello)
{
    fake->epoch = hello->epoch;
    fake->may_bundle = hello->has_bundles && hello->bundles;
}

static inline void fake_hear_task(struct fake *fake, const struct msg_job_task *task)
{
    assert_true(fake->shares_tasks && slice_is(task->init_layer, "init layer"));
    snprintf(fake->task_group, sizeof(fake->task_group), "%.*s", SLICE_ARG(task->group));
    fake->tasks++;
}

/* As a worker does that takes such: with the task that came before it, which must be its group's. */
static inline void fake_hear_start(struct fake *fake, struct msg_job_start *start)
{
    if (!start->has_task) {
        assert_true(slice_is(start->group, fake->task_group) && !start->has_init_layer);
        start->init_layer = S("init layer");
        fake->shared++;
    }
    fake_take(fake, start);
}

static inline void fake_obey(struct fake *fake, struct slice bytes)
{
    struct msg_job_task task;
    struct msg_lane_hello hello;
    struct msg_job_start start;
    struct msg_job_cancel cancel;
    struct msg_result_ack ack;
    struct msg_lane_watch watch;
    if (message_decode(MSG_lane_hello, bytes, &hello, NULL))
        fake_hear_hello(fake, &hello);
    else if (message_decode(MSG_job_task, bytes, &task, NULL))
        fake_hear_task(fake, &task);
    else if (message_decode(MSG_job_start, bytes, &start, NULL))
        fake_hear_start(fake, &start);
    else if (message_decode(MSG_job_cancel, bytes, &cancel, NULL))
        fake_let_go(fake, cancel.job, cancel.token ? cancel.token : UINT64_MAX);
    else if (message_decode(MSG_result_ack, bytes, &ack, NULL))
        fake_let_go(fake, ack.job, ack.token);
    else if (message_decode(MSG_lane_watch, bytes, &watch, NULL))
        fake->watches++;
    else
        fail_msg("a lane carried something else");
}

static inline void fake_read(struct fake *fake, zmq_msg_t *frame)
{
    const struct slice bytes = slice_of(zmq_msg_data(frame), zmq_msg_size(frame));
    struct slice message;
    size_t at = 0;
    if (!is_bundle(bytes)) {
        fake_obey(fake, bytes);
        return;
    }
    assert_true(fake->bundles);
    while (bundle_next(bytes, &at, &message) == 1)
        fake_obey(fake, message);
    fake->task_group[0] = '\0';
    assert_int_equal(at, bytes.len);
}

static inline void fake_work(struct fake *fake)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (fake->pull && zmq_msg_recv(&frame, fake->pull, ZMQ_DONTWAIT) >= 0)
        fake_read(fake, &frame);
    zmq_msg_close(&frame);
    AUTO_BUFFER bundle = {0};
    for (size_t i = 0; i < fake->held_count; i++) {
        struct held *held = &fake->held[i];
        if (held->answered || fake->allowance == 0)
            continue;
        held->answered = true;
        fake->allowance--;
        if (!fake->may_bundle)
            zmq_send(fake->push, held->result.data, held->result.len, ZMQ_DONTWAIT);
        else
            fake->bundled += bundle_add(&bundle, buffer_peek(&held->result));
    }
    if (bundle.len)
        zmq_send(fake->push, bundle.data, bundle.len, ZMQ_DONTWAIT);
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

static inline void world_step(struct world *world)
{
    zmq_pollitem_t items[FAKES_MAX + 1] = {{world->client, 0, ZMQ_POLLIN, 0}};
    int count = 1;
    for (size_t i = 0; i < world->fake_count; i++)
        if (world->fakes[i].pull)
            items[count++] = (zmq_pollitem_t){world->fakes[i].pull, 0, ZMQ_POLLIN, 0};
    int64_t wait_ms = world->beat_ms - clock_ms();
    zmq_poll(items, count, wait_ms < 0 ? 0 : wait_ms > 20 ? 20 : wait_ms);
    for (size_t i = 0; i < world->fake_count; i++)
        fake_work(&world->fakes[i]);
    if (clock_ms() < world->beat_ms)
        return;
    world->beat_ms = clock_ms() + BEAT_MS;
    for (size_t i = 0; i < world->fake_count; i++)
        if (!world->fakes[i].silent)
            fake_beat(world, &world->fakes[i]);
}

/* Waits, with everything going on, until the expression is true. */
#define world_until(world, expression)                                                                                 \
    do {                                                                                                               \
        int64_t until_ms_ = clock_ms() + WAIT_MS;                                                                      \
        while (!(expression)) {                                                                                        \
            if (clock_ms() > until_ms_)                                                                                \
                fail_msg("waited too long for %s", #expression);                                                       \
            world_step(world);                                                                                         \
        }                                                                                                              \
    } while (0)

static inline bool world_take_answer(struct world *world)
{
    return zmq_msg_recv(&world->answer, world->client, ZMQ_DONTWAIT) >= 0;
}

/* Waits for the next answer and reads it as `id`; fails with a refusal's words. */
static inline void world_expect(struct world *world, enum message_id id, void *ret)
{
    struct msg_refused refused;
    world_until(world, world_take_answer(world));
    if (world_decode(&world->answer, id, ret))
        return;
    if (world_decode(&world->answer, MSG_refused, &refused))
        fail_msg("refused: %.*s", SLICE_ARG(refused.text));
    fail_msg("not the answer that was expected");
}

static inline void world_ask(struct world *world, enum message_id request, const void *message, enum message_id answer,
                             void *ret)
{
    world_send(world, world->client, request, message);
    world_expect(world, answer, ret);
}

/* ---- a submit ---------------------------------------------------------------------------- */

static const char task_json[] = "{\"task\":\"add\",\"kind\":\"noop\"}";

static inline struct msg_group_submit submit_of(struct world *world, const char *group, unsigned samples)
{
    return (struct msg_group_submit){
        .tag = ++world->tag, .group = S(group), .stream = S("train"), .samples = samples, .task = S(task_json)};
}

static inline void submit(struct world *world, const char *group, unsigned samples, bool known)
{
    struct msg_group_submit message = submit_of(world, group, samples);
    struct msg_group_accepted accepted;
    world_ask(world, MSG_group_submit, &message, MSG_group_accepted, &accepted);
    assert_int_equal(accepted.tag, message.tag);
    assert_true(slice_is(accepted.group, group));
    assert_int_equal(accepted.samples, samples);
    assert_int_equal(accepted.known, known);
}

#endif
