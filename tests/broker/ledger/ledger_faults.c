/*
 * A scenario through all of the ledger, with the first, the second, the third ... write, sync,
 * truncation, opening or allocation failing until one run passes without. Whatever failed:
 * opened again, the ledger holds what was committed before, or that and the commit in hand, and
 * nothing else; what it said was committed is there; nothing leaks (the address sanitizer looks
 * on). A back-up that fails leaves no file and the ledger goes on.
 *
 * SLUICE_FAULT_STRIDE=1 tries every one; by default it is every third operation of the disk and
 * every 97th allocation.
 */
#include "tests/broker/ledger/failing_disk.h"
#include "tests/broker/ledger/ledger_world.h"

#include <sys/stat.h>

#include "broker/ledger/files/backup.h"

enum { STEPS_MAX = 64, GROUPS = 40 };

/* ---- allocations: ours by the linker, SQLite's by its own hook ------------------------------ */

static struct {
    bool armed;
    atomic_uint left;
    atomic_bool has_failed;
} failing_memory;

static bool memory_fails(void)
{
    if (!failing_memory.armed || atomic_load(&failing_memory.has_failed) ||
        atomic_fetch_sub(&failing_memory.left, 1) != 1)
        return false;
    atomic_store(&failing_memory.has_failed, true);
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size) { return memory_fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return memory_fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return memory_fails() ? NULL : __real_realloc(memory, size); }

static sqlite3_mem_methods real_memory;

static void *sqlite_malloc(int size) { return memory_fails() ? NULL : real_memory.xMalloc(size); }
static void *sqlite_realloc(void *memory, int size)
{
    return memory_fails() ? NULL : real_memory.xRealloc(memory, size);
}

/* Before SQLite is used. */
static bool failing_memory_install(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real_memory) != SQLITE_OK)
        return false;
    sqlite3_mem_methods ours = real_memory;
    ours.xMalloc = sqlite_malloc;
    ours.xRealloc = sqlite_realloc;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) == SQLITE_OK;
}

/* ---- the scenario: steps, each of which is committed whole or not at all ----------------------- */

struct scene {
    char dir[64];
    struct ledger *ledger;
    struct buffer told;
    uint64_t epoch;         /* the last that was acknowledged */
    char *after[STEPS_MAX]; /* what a restore told after each step of a run without failures */
};

static int step_open(struct scene *scene) { return open_dir(&scene->ledger, scene->dir, NULL); }

static int step_epoch(struct scene *scene) { return ledger_next_epoch(scene->ledger, &scene->epoch, NULL); }

static int step_close(struct scene *scene)
{
    ledger_close(&scene->ledger);
    return 0;
}

static int commit_effects(struct scene *scene, const struct effect *effects, size_t count)
{
    return commit_all(scene->ledger, effects, count, NULL);
}
#define COMMIT(scene, ...)                                                                                             \
    commit_effects(scene, (const struct effect[]){__VA_ARGS__},                                                        \
                   sizeof((const struct effect[]){__VA_ARGS__}) / sizeof(struct effect))

static char large[20000]; /* of several pages */

static int step_groups(struct scene *scene)
{
    struct effect owned = group("b", "valid", 2);
    owned.owner = S("ann");
    return COMMIT(scene, group("a", "train", 3), owned,
                  {.kind = PERSIST_ENGINE, .engine = S("http://e:1"), .present = true});
}

static int step_init(struct scene *scene) { return COMMIT(scene, init_of("a", S("sha256:init"), S("init bytes"))); }

static int step_run(struct scene *scene)
{
    return COMMIT(scene, run_of("a/0", slice_of(large, sizeof(large))), run_of("a/1", S("r")));
}

static int step_failures(struct scene *scene)
{
    return COMMIT(scene,
                  {.kind = PERSIST_FAILURES, .failures = {.job = S("run:a/2"), .infras = 1, .history = S("it failed")}},
                  {.kind = PERSIST_LEASE, .lease = {.job = S("run:a/2"), .token = 9, .worker = S("r1"), .key = S("k")}},
                  {.kind = PERSIST_EARLY_CANCEL,
                   .present = true,
                   .early_cancel = {.name = S("never"), .owner = S("ann"), .clock_ms = 7}});
}

static int step_end(struct scene *scene)
{
    static const struct core_sampler sampler = {
        .trainer = {(const uint8_t *)"t", 1}, .rule = {.groups = 8}, .batch = 2};
    static const struct core_sampled sampled = {.group = {(const uint8_t *)"a", 1}, .number = 1, .ended = 2};
    return COMMIT(scene, end_of("train", 1, "a", "a/0"), end_of("train", 2, "a", "a/1"),
                  {.kind = PERSIST_SAMPLED, .present = true, .stream = S("train"), .seq = 1, .sampled = &sampled},
                  {.kind = PERSIST_BATCH, .stream = S("train"), .detail = slice_of(large, sizeof(large) / 2)},
                  {.kind = PERSIST_SAMPLER, .present = true, .stream = S("train"), .sampler = &sampler});
}

static int step_many(struct scene *scene)
{
    struct effect effects[3 * GROUPS];
    static char ids[GROUPS][16], rollouts[GROUPS][16];
    for (unsigned i = 0; i < GROUPS; i++) {
        snprintf(ids[i], sizeof(ids[i]), "g%u", i);
        snprintf(rollouts[i], sizeof(rollouts[i]), "g%u/0", i);
        effects[3 * i] = group(ids[i], "train", 1);
        effects[3 * i + 1] = run_of(rollouts[i], slice_of(large, 9000));
        effects[3 * i + 2] = end_of("train", 3 + i, ids[i], rollouts[i]);
    }
    return commit_effects(scene, effects, 3 * GROUPS);
}

/* What is loaded is right, or not loaded. */
static int step_load(struct scene *scene)
{
    struct effect job = {.kind = LANE_JOB,
                         .stage = STAGE_EVAL,
                         .group = S("a"),
                         .rollout = S("a/0"),
                         .job = S("eval:a/0"),
                         .token = 1,
                         .attempt = 1};
    struct msg_job_start start;
    struct msg_trajectory trajectory;
    int code = ledger_read_begin(scene->ledger, NULL);
    if (code == 0)
        code = ledger_load_job(scene->ledger, &job, &start, NULL);
    if (code == 0)
        assert_true(slice_is(start.task, task_json) && slice_is(start.init_layer, "init bytes") &&
                    slice_is(start.answer, "\\boxed{2}"));
    if (code == 0)
        code = ledger_load_trajectory(scene->ledger, S("train"), 1, &trajectory, NULL);
    if (code == 0)
        assert_true(slice_equal(trajectory.record, slice_of(large, sizeof(large))));
    return code ? code : ledger_read_end(scene->ledger, NULL);
}

static int step_load_late(struct scene *scene)
{
    struct msg_trajectory trajectory;
    int code = ledger_load_trajectory(scene->ledger, S("train"), 40, &trajectory, NULL);
    assert_true(code != 0 || slice_equal(trajectory.record, slice_of(large, 9000)));
    return code;
}

static int step_ack(struct scene *scene) { return COMMIT(scene, ack("train", 30)); }

static int step_chore(struct scene *scene)
{
    return ledger_has_chores(scene->ledger) ? ledger_do_chores(scene->ledger, NULL) : 0;
}

/* Not made is no failure of the ledger's: it goes on, and no file is left. */
static int step_backup(struct scene *scene)
{
    struct backup *backup = NULL;
    uint64_t bytes = 0;
    char path[96];
    int code = backup_start(&backup, scene->dir, S("copy"), 0, NULL);
    if (code == 0)
        code = backup_finish(&backup, &bytes, NULL);
    snprintf(path, sizeof(path), "%s/backups/copy.db.part", scene->dir);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof(path), "%s/backups/copy.db", scene->dir);
    assert_true(code != 0 || (bytes > 0 && access(path, F_OK) == 0));
    return 0;
}

static int (*const steps[])(struct scene *) = {
    step_open,  step_epoch, step_chore, step_groups,    step_init,   step_run,   step_failures, step_end,
    step_load,  step_many,  step_load,  step_chore,     step_backup, step_ack,   step_chore,    step_chore,
    step_close, step_open,  step_epoch, step_load_late, step_chore,  step_close,
};
enum { STEPS = sizeof(steps) / sizeof(*steps) };

/* ---- running it ---------------------------------------------------------------------------------- */

static void clear_dir(struct scene *scene)
{
    static const char *const names[] = {
        "ledger.db",     "ledger.db-wal",         "ledger.db-shm",     "lock",
        "ledger.db.new", "ledger.db.new-journal", "ledger.db-journal", "backups/copy.db"};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", scene->dir, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/backups", scene->dir);
    rmdir(path);
}

static void expect_nothing_left(struct scene *scene)
{
    char command[128];
    clear_dir(scene);
    if (rmdir(scene->dir) == 0) {
        assert_int_equal(mkdir(scene->dir, 0700), 0);
        return;
    }
    snprintf(command, sizeof(command), "ls -R %s", scene->dir);
    if (system(command) != -1)
        fail_msg("files are left");
}

/* A restore's words; opens the ledger for it when it is closed. */
static char *tell(struct scene *scene)
{
    bool was_open = scene->ledger != NULL;
    struct fail fail = {0};
    if (!was_open && open_dir(&scene->ledger, scene->dir, &fail) != 0)
        fail_msg("it does not open again: %s", fail.text);
    struct ledger_reader reader = text_reader(&scene->told);
    buffer_clear(&scene->told);
    if (ledger_restore(scene->ledger, &reader, &fail) != 0)
        fail_msg("it is not told again: %s", fail.text);
    if (!was_open)
        ledger_close(&scene->ledger);
    assert_true(buffer_append(&scene->told, "", 1));
    return strdup((const char *)scene->told.data);
}

static void learn(struct scene *scene)
{
    for (size_t i = 0; i < STEPS; i++) {
        assert_int_equal(steps[i](scene), 0);
        scene->after[i] = tell(scene);
    }
    expect_nothing_left(scene);
}

static void disarm(void) { failing_disk.armed = failing_memory.armed = false; }

/* The step that failed, or STEPS; the ledger is closed. */
static size_t run_steps(struct scene *scene)
{
    size_t at = 0;
    scene->epoch = 0;
    while (at < STEPS && steps[at](scene) == 0)
        at++;
    disarm();
    if (scene->ledger) { /* what failed once is final */
        struct effect one = group("late", "train", 1);
        assert_int_not_equal(commit_effects(scene, &one, 1), 0);
    }
    ledger_close(&scene->ledger);
    return at;
}

static void check_after(struct scene *scene, size_t failed, unsigned n)
{
    uint64_t epoch;
    AUTO_FREE char *told = tell(scene);
    const char *before = failed == 0 ? "" : scene->after[failed - 1];
    const char *after = scene->after[failed < STEPS ? failed : STEPS - 1];
    if (strcmp(told, before) != 0 && strcmp(told, after) != 0)
        fail_msg("failure %u in step %zu: it holds\n%s\ninstead of\n%s", n, failed, told, before);
    assert_int_equal(open_dir(&scene->ledger, scene->dir, NULL), 0);
    assert_int_equal(ledger_next_epoch(scene->ledger, &epoch, NULL), 0);
    assert_true(epoch > scene->epoch);
    ledger_close(&scene->ledger);
}

static struct scene *scene_create(void)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    snprintf(scene->dir, sizeof(scene->dir), "%s/sluice-faults-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(scene->dir));
    memset(large, 'r', sizeof(large));
    learn(scene);
    return scene;
}

static void scene_destroy(struct scene *scene)
{
    for (size_t i = 0; i < STEPS; i++)
        free(scene->after[i]);
    buffer_finish(&scene->told);
    assert_int_equal(rmdir(scene->dir), 0);
    free(scene);
}

/* ---- tests ------------------------------------------------------------------------------------------ */

static unsigned stride_or(unsigned usual)
{
    const char *text = getenv("SLUICE_FAULT_STRIDE");
    return text && atoi(text) > 0 ? (unsigned)atoi(text) : usual;
}

static void fail_every_operation(enum disk_failure how)
{
    struct scene *scene = scene_create();
    unsigned n = 1, count = 0, stride = stride_or(3);
    for (bool is_through = false; !is_through; n += stride, count++) {
        failing_disk.how = how;
        atomic_store(&failing_disk.left, n);
        atomic_store(&failing_disk.has_failed, false);
        failing_disk.armed = true;
        size_t failed = run_steps(scene);
        is_through = !atomic_load(&failing_disk.has_failed);
        assert_true(!is_through || failed == STEPS);
        check_after(scene, failed, n);
        expect_nothing_left(scene);
    }
    print_message("%u failures\n", count - 1);
    assert_true(count > 20);
    scene_destroy(scene);
}

static void every_write_sync_and_opening_may_fail(void **state)
{
    (void)state;
    fail_every_operation(DISK_BROKEN);
}

static void the_disk_may_be_full_at_any_moment(void **state)
{
    (void)state;
    fail_every_operation(DISK_FULL);
}

static void any_write_may_be_cut_short(void **state)
{
    (void)state;
    fail_every_operation(DISK_SHORT);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct scene *scene = scene_create();
    unsigned stride = stride_or(97), count = 0;
    for (unsigned n = 1, is_through = 0; !is_through; n += stride, count++) {
        atomic_store(&failing_memory.left, n);
        atomic_store(&failing_memory.has_failed, false);
        failing_memory.armed = true;
        size_t failed = run_steps(scene);
        is_through = !atomic_load(&failing_memory.has_failed);
        assert_true(!is_through || failed == STEPS);
        check_after(scene, failed, n);
        expect_nothing_left(scene);
    }
    print_message("%u failures\n", count - 1);
    assert_true(count > 60);
    scene_destroy(scene);
}

int main(void)
{
    if (!failing_memory_install() || !failing_disk_install())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_write_sync_and_opening_may_fail),
        cmocka_unit_test(the_disk_may_be_full_at_any_moment),
        cmocka_unit_test(any_write_may_be_cut_short),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
