/* The ledger: what is committed is there again, in the words of a restore, whatever happened. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "broker/ledger.h"
#include "common/cleanup.h"

#define S(text) slice_from_str(text)

static const char task_json[] = "{\"task\":\"add\",\"kind\":\"noop\"}";

struct world {
    char dir[64];
    struct ledger *ledger;
    struct buffer told; /* a restore, as text */
};

/* ---- the world -------------------------------------------------------------------------- */

static void open_ledger(struct world *world)
{
    struct fail fail = {0};
    if (ledger_open(&world->ledger, world->dir, &fail) != 0)
        fail_msg("%s", fail.text);
}

static void reopen(struct world *world)
{
    ledger_close(&world->ledger);
    open_ledger(world);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    strcpy(world->dir, "/tmp/sluice-ledger-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    open_ledger(world);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    ledger_close(&world->ledger);
    buffer_finish(&world->told);
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world->dir);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

static int commit_all(struct ledger *ledger, const struct effect *effects, size_t count,
                      struct fail *fail)
{
    int code = ledger_begin(ledger, fail);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = ledger_apply(ledger, &effects[i], fail);
    return code ? code : ledger_commit(ledger, fail);
}

static void commit(struct world *world, const struct effect *effects, size_t count)
{
    struct fail fail = {0};
    if (commit_all(world->ledger, effects, count, &fail) != 0)
        fail_msg("%s", fail.text);
}

static void commit_one(struct world *world, struct effect effect) { commit(world, &effect, 1); }

/* ---- effects, short --------------------------------------------------------------------------- */

static struct effect group(const char *id, const char *stream, unsigned samples)
{
    return (struct effect){.kind = PERSIST_GROUP,
                           .group = S(id),
                           .stream = S(stream),
                           .samples = samples,
                           .task = S(task_json)};
}

static struct effect init_of(const char *id, struct slice digest, struct slice layer)
{
    return (struct effect){.kind = PERSIST_INIT, .group = S(id), .layer_digest = digest,
                           .layer = layer, .ms = 35};
}

static struct effect run_of(const char *rollout, struct slice record)
{
    return (struct effect){.kind = PERSIST_RUN,
                           .rollout = S(rollout),
                           .outcome = OUTCOME_AGENT,
                           .detail = S("3 turns"),
                           .layer_digest = S("sha256:run"),
                           .layer = S("run bytes"),
                           .answer = S("\\boxed{2}"),
                           .record = record,
                           .engine = S("http://e:1"),
                           .ms = 5100};
}

static struct effect end_of(const char *stream, uint64_t seq, const char *group_id,
                            const char *rollout)
{
    return (struct effect){.kind = PERSIST_END,
                           .end = {.stream = S(stream),
                                   .seq = seq,
                                   .rollout = S(rollout),
                                   .group = S(group_id),
                                   .task = S("add"),
                                   .attempt = 2,
                                   .outcome = OUTCOME_OK,
                                   .trainable = true,
                                   .has_reward = true,
                                   .reward = 0.5,
                                   .detail = S("half"),
                                   .init_layer = S("sha256:init"),
                                   .engine = S("http://e:1"),
                                   .wait_ms = 1,
                                   .init_ms = 2,
                                   .run_ms = 3,
                                   .eval_ms = 4,
                                   .ended_ms = 5}};
}

static struct effect ack(const char *stream, uint64_t seq)
{
    return (struct effect){.kind = PERSIST_ACK, .stream = S(stream), .seq = seq};
}

/* ---- a restore as text -------------------------------------------------------------------------- */

static bool tell_stream(void *context, struct slice name, uint64_t first, uint64_t head)
{
    return buffer_printf(context, "stream %.*s %llu..%llu\n", SLICE_ARG(name),
                         (unsigned long long)first, (unsigned long long)head);
}

static bool tell_engine(void *context, struct slice url)
{
    return buffer_printf(context, "engine %.*s\n", SLICE_ARG(url));
}

static bool tell_group(void *context, const struct core_group_row *row)
{
    assert_true(row->task_hash != 0);
    return buffer_printf(context, "group %.*s %.*s x%llu task=%.*s init=%d %.*s %llu\n",
                         SLICE_ARG(row->group), SLICE_ARG(row->stream),
                         (unsigned long long)row->samples, SLICE_ARG(row->task.id), row->init_done,
                         SLICE_ARG(row->init_layer), (unsigned long long)row->init_ms);
}

static bool tell_rollout(void *context, const struct core_rollout_row *row)
{
    if (row->ended)
        return buffer_printf(context, " %.*s ended %.*s %llu\n", SLICE_ARG(row->rollout),
                             SLICE_ARG(row->stream), (unsigned long long)row->seq);
    if (row->run_done)
        return buffer_printf(context, " %.*s run %s '%.*s' %llu %.*s\n", SLICE_ARG(row->rollout),
                             outcome_wire(row->run_outcome), SLICE_ARG(row->run_detail),
                             (unsigned long long)row->run_ms, SLICE_ARG(row->engine));
    return buffer_printf(context, " %.*s open\n", SLICE_ARG(row->rollout));
}

static const char *restored(struct world *world)
{
    buffer_clear(&world->told);
    struct ledger_reader reader = {&world->told, tell_stream, tell_engine, tell_group,
                                   tell_rollout};
    struct fail fail = {0};
    if (ledger_restore(world->ledger, &reader, &fail) != 0)
        fail_msg("%s", fail.text);
    assert_true(buffer_append(&world->told, "", 1));
    return (const char *)world->told.data;
}

/* ---- tests: round trips ----------------------------------------------------------------------------- */

static void a_new_ledger_restores_nothing(void **state)
{
    assert_string_equal(restored(*state), "");
}

static void every_effect_is_there_after_reopening(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {
        {.kind = PERSIST_EPOCH, .seq = 7},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = true},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:2"), .present = true},
        {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = false},
        group("a", "train", 3),
        group("b", "valid", 1),
        init_of("a", S("sha256:init"), S("init bytes")),
        run_of("a/0", S("record 0")),
        end_of("train", 1, "a", "a/0"),
        run_of("a/2", S("record 2")),
    };
    commit(world, effects, sizeof(effects) / sizeof(*effects));
    reopen(world);
    assert_string_equal(restored(world), "stream train 1..1\n"
                                         "stream valid 1..0\n"
                                         "engine http://e:2\n"
                                         "group a train x3 task=add init=1 sha256:init 35\n"
                                         " a/0 ended train 1\n"
                                         " a/1 open\n"
                                         " a/2 run agent '3 turns' 5100 http://e:1\n"
                                         "group b valid x1 task=add init=0  0\n"
                                         " b/0 open\n");
    uint64_t epoch;
    assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
    assert_int_equal(epoch, 8);
}

static void each_start_has_a_greater_epoch(void **state)
{
    struct world *world = *state;
    for (uint64_t wanted = 1; wanted <= 3; wanted++) {
        uint64_t epoch;
        assert_int_equal(ledger_next_epoch(world->ledger, &epoch, NULL), 0);
        assert_int_equal(epoch, wanted);
        reopen(world);
    }
}

static void a_trajectory_comes_back_with_every_field(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), run_of("a/1", S("the record")),
                                     end_of("train", 1, "a", "a/1")};
    commit(world, effects, 3);
    reopen(world);
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.rollout, "a/1") && slice_is(got.group, "a"));
    assert_true(slice_is(got.task, "add") && slice_is(got.outcome, "ok"));
    assert_true(slice_is(got.stream, "train") && slice_is(got.detail, "half") && got.has_detail);
    assert_true(slice_is(got.init_layer, "sha256:init") && got.has_init_layer);
    assert_true(slice_is(got.engine, "http://e:1") && got.has_engine);
    assert_true(slice_is(got.record, "the record") && got.has_record);
    assert_true(got.trainable && got.has_reward && got.reward == 0.5);
    assert_int_equal(got.seq, 1);
    assert_int_equal(got.sample, 1);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(got.wait_ms, 1);
    assert_int_equal(got.init_ms, 2);
    assert_int_equal(got.run_ms, 3);
    assert_int_equal(got.eval_ms, 4);
    assert_int_equal(got.ended_ms, 5);
    assert_false(got.has_tag);
    struct fail fail;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 2, &got, &fail), -ENOENT);
    assert_int_equal(ledger_load_trajectory(world->ledger, S("none"), 1, &got, &fail), -ENOENT);
}

static void a_record_given_with_the_end_is_kept(void **state)
{
    struct world *world = *state;
    struct effect end = end_of("train", 1, "a", "a/0");
    end.record = S("what there was");
    const struct effect effects[] = {group("a", "train", 1), end};
    commit(world, effects, 2);
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 1, &got, NULL), 0);
    assert_true(slice_is(got.record, "what there was"));
}

static struct effect job_of(enum stage stage)
{
    return (struct effect){.kind = LANE_JOB, .stage = stage, .group = S("a"), .rollout = S("a/1"),
                           .job = S("job"), .sample = 1, .token = 9, .attempt = 1,
                           .engine = S("http://e:1")};
}

static void check_jobs(struct world *world, struct slice layer)
{
    struct msg_job_start got;
    struct effect job = job_of(STAGE_INIT);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task_json) && slice_is(got.stage, "init") && got.token == 9);
    assert_false(got.has_init_layer || got.has_run_layer || got.has_answer);
    job = job_of(STAGE_RUN);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task_json) && slice_equal(got.init_layer, layer));
    assert_true(slice_is(got.init_layer_digest, "sha256:init") && got.has_engine);
    assert_false(got.has_run_layer || got.has_answer);
    job = job_of(STAGE_EVAL);
    assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), 0);
    assert_true(slice_is(got.task, task_json) && slice_equal(got.init_layer, layer));
    assert_true(slice_is(got.run_layer, "run bytes") && slice_is(got.run_layer_digest, "sha256:run"));
    assert_true(slice_is(got.answer, "\\boxed{2}"));
}

static void a_jobs_payload_is_the_same_from_the_cache_and_from_the_file(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2),
                                     init_of("a", S("sha256:init"), S("init bytes")),
                                     run_of("a/1", S("record"))};
    commit(world, effects, 3);
    check_jobs(world, S("init bytes"));
    reopen(world);
    check_jobs(world, S("init bytes"));
}

static void a_layer_too_large_for_the_cache_is_read_each_time(void **state)
{
    struct world *world = *state;
    AUTO_FREE uint8_t *bytes = malloc(1 << 20);
    memset(bytes, 'x', 1 << 20);
    struct slice layer = slice_of(bytes, 1 << 20);
    const struct effect effects[] = {group("a", "train", 2), init_of("a", S("sha256:init"), layer),
                                     run_of("a/1", S("record"))};
    commit(world, effects, 3);
    check_jobs(world, layer);
    check_jobs(world, layer);
}

static void a_job_that_cannot_be_is_not_found(void **state)
{
    struct world *world = *state;
    static const char *const rollouts[] = {"a/7", "a/", "/1", "a/1024", "a/1x", "nothing", "b/1"};
    commit_one(world, group("a", "train", 2));
    commit_one(world, init_of("a", S(""), S("")));
    for (size_t i = 0; i < sizeof(rollouts) / sizeof(*rollouts); i++) {
        struct effect job = job_of(STAGE_EVAL);
        job.rollout = S(rollouts[i]);
        struct msg_job_start got;
        assert_int_equal(ledger_load_job(world->ledger, &job, &got, NULL), -ENOENT);
    }
}

/* ---- tests: forgetting ------------------------------------------------------------------------------ */

/* `count` groups of one, all ended as 1..count of "train". */
static void commit_ended(struct world *world, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char id[16], rollout[32];
        snprintf(id, sizeof(id), "g%u", i);
        snprintf(rollout, sizeof(rollout), "g%u/0", i);
        const struct effect effects[] = {group(id, "train", 1), run_of(rollout, S("r")),
                                         end_of("train", i, id, rollout)};
        commit(world, effects, 3);
    }
}

static void do_all_chores(struct world *world)
{
    struct fail fail;
    for (int i = 0; i < 1000 && ledger_has_chores(world->ledger); i++)
        assert_int_equal(ledger_do_chores(world->ledger, &fail), 0);
    assert_false(ledger_has_chores(world->ledger));
}

static void what_is_acknowledged_is_forgotten_at_once_and_swept_in_slices(void **state)
{
    struct world *world = *state;
    commit_ended(world, 600);
    do_all_chores(world);
    commit_one(world, ack("train", 599));
    assert_true(ledger_has_chores(world->ledger)); /* one commit does not sweep 599 */
    const char *told = restored(world);
    assert_non_null(strstr(told, "stream train 600..600\n"));
    assert_null(strstr(told, "g1/0"));
    assert_non_null(strstr(told, " g600/0 ended train 600\n"));
    do_all_chores(world);
    reopen(world);
    told = restored(world);
    assert_null(strstr(told, "g599/0"));
    assert_non_null(strstr(told, "group g599 train x1 task= init=0  0\n")); /* the id is known */
    assert_non_null(strstr(told, " g600/0 ended train 600\n"));
    struct msg_trajectory got;
    assert_int_equal(ledger_load_trajectory(world->ledger, S("train"), 5, &got, NULL), -ENOENT);
}

static void the_head_is_remembered_when_everything_is_forgotten(void **state)
{
    struct world *world = *state;
    commit_ended(world, 3);
    commit_one(world, ack("train", 3));
    do_all_chores(world);
    reopen(world);
    assert_non_null(strstr(restored(world), "stream train 4..3\n"));
}

static void a_group_half_acknowledged_keeps_its_other_rollouts(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 3), end_of("train", 1, "a", "a/2"),
                                     end_of("train", 2, "a", "a/0"), ack("train", 1)};
    commit(world, effects, 4);
    do_all_chores(world);
    reopen(world);
    assert_string_equal(restored(world), "stream train 2..2\n"
                                         "group a train x3 task=add init=0  0\n"
                                         " a/0 ended train 2\n"
                                         " a/1 open\n");
}

static void an_id_taken_again_before_the_sweep_is_the_new_group(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 2), end_of("train", 1, "a", "a/0"),
                                     end_of("train", 2, "a", "a/1"), ack("train", 2)};
    commit(world, effects, 3);
    const struct effect again[] = {effects[3], group("a", "train", 1)};
    commit(world, again, 2);
    do_all_chores(world);
    reopen(world);
    assert_string_equal(restored(world), "stream train 3..2\n"
                                         "group a train x1 task=add init=0  0\n"
                                         " a/0 open\n");
}

/* ---- tests: what may happen to a process, a directory, a disk ----------------------------------------- */

static void what_was_not_committed_is_not_there(void **state)
{
    struct world *world = *state;
    struct effect effect = group("a", "train", 1);
    assert_int_equal(ledger_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_apply(world->ledger, &effect, NULL), 0);
    reopen(world);
    assert_string_equal(restored(world), "");
}

/* In a child: a group, its run and its end per transaction, each told of once it is committed. */
static void write_until_killed(const char *dir, unsigned round, int told_fd)
{
    struct ledger *ledger = NULL;
    char record[20000];
    memset(record, 'r', sizeof(record));
    if (ledger_open(&ledger, dir, NULL) != 0)
        _exit(1);
    for (unsigned i = 1;; i++) {
        char id[32], rollout[40], stream[32];
        snprintf(id, sizeof(id), "g%u-%u", round, i);
        snprintf(rollout, sizeof(rollout), "g%u-%u/0", round, i);
        snprintf(stream, sizeof(stream), "s%u", round);
        const struct effect effects[] = {group(id, stream, 1),
                                         run_of(rollout, slice_of(record, sizeof(record))),
                                         end_of(stream, i, id, rollout)};
        if (commit_all(ledger, effects, 3, NULL) != 0 || write(told_fd, &i, sizeof(i)) != sizeof(i))
            _exit(1);
        if (i % 50 == 0 && ledger_has_chores(ledger) && ledger_do_chores(ledger, NULL) != 0)
            _exit(1);
    }
}

static unsigned kill_a_writer(const char *dir, unsigned round)
{
    int told[2];
    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_until_killed(dir, round, told[1]);
    close(told[1]);
    unsigned last = 0, at;
    while (last < 40 + round * 37 && read(told[0], &at, sizeof(at)) == sizeof(at))
        last = at;
    kill(pid, SIGKILL);
    while (read(told[0], &at, sizeof(at)) == sizeof(at)) /* what it told before it died */
        last = at;
    close(told[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    return last;
}

static void a_writer_killed_at_any_moment_leaves_whole_transactions(void **state)
{
    struct world *world = *state;
    for (unsigned round = 1; round <= 5; round++) {
        ledger_close(&world->ledger);
        unsigned last = kill_a_writer(world->dir, round);
        open_ledger(world);
        assert_null(strstr(restored(world), "open")); /* a group without its end is half a cycle */
        char stream[32];
        snprintf(stream, sizeof(stream), "s%u", round);
        for (unsigned i = 1; i <= last; i++) {
            struct msg_trajectory got;
            assert_int_equal(ledger_load_trajectory(world->ledger, S(stream), i, &got, NULL), 0);
            assert_int_equal(got.record.len, 20000);
        }
    }
}

static void a_second_broker_is_refused_and_told_the_firsts_pid(void **state)
{
    struct world *world = *state;
    struct ledger *second = NULL;
    struct fail fail;
    char pid[32];
    snprintf(pid, sizeof(pid), "(pid %d)", getpid());
    assert_int_equal(ledger_open(&second, world->dir, &fail), -EBUSY);
    assert_null(second);
    assert_non_null(strstr(fail.text, pid));
    assert_non_null(strstr(fail.text, world->dir));
}

static void a_directory_that_cannot_be_made_is_named(void **state)
{
    (void)state;
    struct ledger *ledger = NULL;
    struct fail fail;
    assert_int_equal(ledger_open(&ledger, "/dev/null/data", &fail), -ENOTDIR);
    assert_non_null(strstr(fail.text, "/dev/null/data"));
}

/* Writes over `len` bytes of the closed ledger's file. */
static void damage(struct world *world, off_t at, size_t len)
{
    char path[96];
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    AUTO_FREE char *junk = malloc(len);
    memset(junk, 0x5a, len);
    assert_int_equal(pwrite(fd, junk, len, at), (ssize_t)len);
}

static void a_file_that_is_no_database_is_named(void **state)
{
    struct world *world = *state;
    struct fail fail;
    commit_ended(world, 3);
    damage(world, 0, 100);
    assert_int_equal(ledger_open(&world->ledger, world->dir, &fail), -EBADMSG);
    assert_non_null(strstr(fail.text, world->dir));
    assert_non_null(strstr(fail.text, "not a ledger"));
}

static void a_damaged_page_is_a_sentence_that_says_what_to_do(void **state)
{
    struct world *world = *state;
    struct fail fail = {0};
    commit_ended(world, 300);
    damage(world, 8192, 60 * 8192);
    int code = ledger_open(&world->ledger, world->dir, &fail);
    struct ledger_reader reader = {&world->told, tell_stream, tell_engine, tell_group,
                                   tell_rollout};
    if (code == 0)
        code = ledger_restore(world->ledger, &reader, &fail);
    assert_int_equal(code, -EBADMSG);
    assert_non_null(strstr(fail.text, world->dir));
    assert_non_null(strstr(fail.text, "backup"));
    struct effect effect = group("late", "train", 1);
    if (world->ledger) /* and it takes nothing any more */
        assert_int_equal(commit_all(world->ledger, &effect, 1, &fail), -EBADMSG);
}

static void a_ledger_of_another_version_is_left_alone(void **state)
{
    struct world *world = *state;
    struct fail fail;
    char path[96];
    ledger_close(&world->ledger);
    snprintf(path, sizeof(path), "%s/ledger.db", world->dir);
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    const uint8_t version_99[] = {0, 0, 0, 99}; /* user_version is the word at 60 */
    assert_int_equal(pwrite(fd, version_99, 4, 60), 4);
    assert_int_equal(ledger_open(&world->ledger, world->dir, &fail), -EPROTO);
    assert_non_null(strstr(fail.text, "version 99"));
}

static bool write_text(const char *path, const char *format, unsigned id)
{
    AUTO_CLOSE int fd = open(path, O_WRONLY);
    return fd >= 0 && dprintf(fd, format, id) > 0;
}

/* A mount namespace of the calling process alone, in a user namespace if it must be. */
static bool enter_namespace(void)
{
    unsigned uid = getuid(), gid = getgid();
    if (unshare(CLONE_NEWNS) == 0)
        return true;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny", 0) &&
           write_text("/proc/self/uid_map", "0 %u 1", uid) &&
           write_text("/proc/self/gid_map", "0 %u 1", gid);
}

/* Makes `dir` a disk of 1 MiB. */
static bool enter_small_disk(const char *dir)
{
    if (!enter_namespace())
        return false;
    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    return mount("tmpfs", dir, "tmpfs", 0, "size=1m") == 0;
}

enum { SMALL_DISK_GOOD = 0, SMALL_DISK_BAD = 1, SMALL_DISK_IMPOSSIBLE = 2 };

/* In a child: fills the disk; then all that was acknowledged must still be readable. */
static int fill_small_disk(const char *dir)
{
    struct ledger *ledger = NULL;
    struct fail fail = {0};
    uint64_t kept = 0;
    char record[50000] = "";
    if (!enter_small_disk(dir))
        return SMALL_DISK_IMPOSSIBLE;
    int code = ledger_open(&ledger, dir, &fail);
    while (code == 0 && kept < 1000) {
        char id[32], rollout[40];
        snprintf(id, sizeof(id), "g%llu", (unsigned long long)kept);
        snprintf(rollout, sizeof(rollout), "%s/0", id);
        const struct effect effects[] = {group(id, "train", 1),
                                         run_of(rollout, slice_of(record, sizeof(record))),
                                         end_of("train", kept + 1, id, rollout)};
        code = commit_all(ledger, effects, 3, &fail);
        kept += code == 0;
    }
    fprintf(stderr, "after %llu: %s\n", (unsigned long long)kept, fail.text);
    struct effect one = group("more", "train", 1);
    bool good = code == -ENOSPC && kept > 0 && strstr(fail.text, "disk is full") &&
                commit_all(ledger, &one, 1, NULL) == -ENOSPC;
    ledger_close(&ledger);
    code = ledger_open(&ledger, dir, &fail);
    struct msg_trajectory got;
    for (uint64_t seq = 1; code == 0 && seq <= kept; seq++)
        code = ledger_load_trajectory(ledger, S("train"), seq, &got, &fail);
    ledger_close(&ledger);
    return good && code == 0 ? SMALL_DISK_GOOD : SMALL_DISK_BAD;
}

static void a_full_disk_ends_the_taking_and_loses_nothing(void **state)
{
    struct world *world = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fill_small_disk(world->dir));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SMALL_DISK_IMPOSSIBLE) {
        print_message("no small disk can be mounted here: not tested\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), SMALL_DISK_GOOD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_new_ledger_restores_nothing),
        TEST(every_effect_is_there_after_reopening),
        TEST(each_start_has_a_greater_epoch),
        TEST(a_trajectory_comes_back_with_every_field),
        TEST(a_record_given_with_the_end_is_kept),
        TEST(a_jobs_payload_is_the_same_from_the_cache_and_from_the_file),
        TEST(a_layer_too_large_for_the_cache_is_read_each_time),
        TEST(a_job_that_cannot_be_is_not_found),
        TEST(what_is_acknowledged_is_forgotten_at_once_and_swept_in_slices),
        TEST(the_head_is_remembered_when_everything_is_forgotten),
        TEST(a_group_half_acknowledged_keeps_its_other_rollouts),
        TEST(an_id_taken_again_before_the_sweep_is_the_new_group),
        TEST(what_was_not_committed_is_not_there),
        TEST(a_writer_killed_at_any_moment_leaves_whole_transactions),
        TEST(a_second_broker_is_refused_and_told_the_firsts_pid),
        TEST(a_directory_that_cannot_be_made_is_named),
        TEST(a_file_that_is_no_database_is_named),
        TEST(a_damaged_page_is_a_sentence_that_says_what_to_do),
        TEST(a_ledger_of_another_version_is_left_alone),
        TEST(a_full_disk_ends_the_taking_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
