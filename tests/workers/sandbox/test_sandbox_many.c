/*
 * Many sandboxes, half of them ended at moments that a seed chooses: being made, at a command, with
 * daemons in them, while they are packed. Afterwards everything is as it was. A few hundred of them
 * here; SLUICE_SANDBOXES=10000 for more, SLUICE_SEED for other moments.
 */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <time.h>

#include "common/base/clock.h"
#include "workers/sandbox/command.h"
#include "workers/sandbox/requests.h"

enum { ROUND = 200, AT_ONCE = 12, SETTLE_MS = 30000, SAME_LOOKS = 5 };

static unsigned seed;
static size_t started, ended, killed, opened;
static int64_t usual_ms = 20; /* that one lasts when it is let be */
static struct fiber *waiter;

/* ---- what there is ------------------------------------------------------------------------ */

struct census {
    size_t processes, descriptors, mounts, namespaces, files;
};

static pid_t parent_of(pid_t pid)
{
    char path[64], line[256];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "PPid: %d", &parent) == 1)
            break;
    if (file)
        fclose(file);
    return parent;
}

static bool is_ours(pid_t pid)
{
    for (; pid > 1; pid = parent_of(pid))
        if (pid == getpid())
            return true;
    return false;
}

static size_t count_lines(const char *path)
{
    size_t count = 0;
    int c;
    FILE *file = fopen(path, "r");
    while (file && (c = getc(file)) != EOF)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

/* Each namespace once, as the inodes that the links of /proc/PID/ns name. */
static void count_namespaces(pid_t pid, ino_t *seen, size_t *count, size_t max)
{
    static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        char path[64];
        struct stat it;
        size_t k = 0;
        snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kinds[i]);
        if (stat(path, &it) < 0)
            continue;
        while (k < *count && seen[k] != it.st_ino)
            k++;
        if (k == *count && *count < max)
            seen[(*count)++] = it.st_ino;
    }
}

static struct census take_census(void)
{
    static ino_t seen[4096];
    struct census census = {.files = fixture_count_entries(directory)};
    char path[128];
    struct dirent *entry;
    DIR *proc = opendir("/proc");
    snprintf(path, sizeof(path), "%s/scratch", directory);
    census.files += fixture_count_entries(path);
    while ((entry = readdir(proc))) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (pid == 0 || !is_ours(pid))
            continue;
        census.processes++;
        snprintf(path, sizeof(path), "/proc/%d/fd", pid);
        census.descriptors += fixture_count_entries(path);
        snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
        census.mounts += count_lines(path);
        count_namespaces(pid, seen, &census.namespaces, sizeof(seen) / sizeof(seen[0]));
    }
    closedir(proc);
    return census;
}

/* ---- sandboxes ----------------------------------------------------------------------------- */

struct life {
    struct fiber *fiber;
    int64_t began_ms;
    bool is_chosen; /* to be ended early */
    struct loop_timer *end;
};

static void run_command(struct sandbox *sandbox, unsigned choice)
{
    static const char *const commands[] = {
        "echo hello > f", "for i in 1 2 3; do (setsid sleep 1000 &) ; done; sleep 0.01",
        "head -c 2M /dev/zero > big; ls -lR /etc > list 2>&1", "trap '' TERM INT HUP; sleep 0.02 & wait"};
    struct sandbox_output output;
    struct fail fail = {0};
    if (sandbox_command(sandbox, commands[choice % 4], COMMAND_MS, 4096, &output, &fail) == 0)
        free(output.text);
}

static void pack_it(struct sandbox *sandbox)
{
    struct fail fail = {0};
    uint64_t bytes;
    char path[128];
    snprintf(path, sizeof(path), "%s/pack-XXXXXX", directory);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    sandbox_pack(sandbox, fd, &bytes, &fail);
    close(fd);
}

static void live(void *arg)
{
    struct life *life = arg;
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    unsigned choice = (unsigned)rand_r(&seed);
    if (sandbox_open(spawner, &plan, &sandbox, &fail) == 0) {
        opened++;
        run_command(sandbox, choice);
        if (choice & 64)
            pack_it(sandbox);
        sandbox_close(&sandbox);
    } else
        assert_true(life->is_chosen && !life->end); /* only what was ended may fail */
    if (!life->is_chosen)
        usual_ms = (7 * usual_ms + clock_ms() - life->began_ms) / 8 + 1;
}

static void end_early(void *arg)
{
    struct life *life = arg;
    life->end = NULL;
    killed++;
    fiber_cancel(life->fiber);
}

static void on_ended(void *arg)
{
    struct life *life = arg;
    loop_cancel(loop, &life->end);
    free(life);
    ended++;
    fiber_wake(waiter);
}

static void start_one(void)
{
    struct life *life = calloc(1, sizeof(*life));
    life->fiber = fiber_start(loop, live, on_ended, life);
    assert_non_null(life->fiber);
    life->began_ms = clock_ms();
    life->is_chosen = started++ % 2;
    if (life->is_chosen)
        life->end = loop_after(loop, rand_r(&seed) % (usual_ms + usual_ms / 2), end_early, life);
}

static void live_a_round(void)
{
    size_t until = started + ROUND;
    waiter = fiber_current();
    while (ended < until) {
        while (started < until && started - ended < AT_ONCE)
            start_one();
        assert_int_equal(await_wake(-1), 0);
    }
    waiter = NULL;
}

static void settle(const struct census *before)
{
    struct census now;
    int64_t until_ms = clock_ms() + SETTLE_MS;
    do {
        assert_int_equal(await_sleep(20), 0);
        now = take_census();
    } while (memcmp(&now, before, sizeof(now)) != 0 && clock_ms() < until_ms);
    assert_int_equal(now.processes, before->processes);
    assert_int_equal(now.descriptors, before->descriptors);
    assert_int_equal(now.mounts, before->mounts);
    assert_int_equal(now.namespaces, before->namespaces);
    assert_int_equal(now.files, before->files);
}

static struct census start;

FIBER_TEST(one_round_leaves_nothing)
{
    live_a_round();
    settle(&start);
}

/* What is left then is the next one, which waits. */
FIBER_TEST(one_sandbox_settles)
{
    struct sandbox *first = open_host();
    sandbox_close(&first);
    for (int same = 0; same < SAME_LOOKS;) {
        struct census before = take_census(), now;
        assert_int_equal(await_sleep(20), 0);
        now = take_census();
        bool is_same = now.processes == start.processes + 1 && memcmp(&now, &before, sizeof(now)) == 0;
        same = is_same ? same + 1 : 0;
    }
}

/* The first sandbox is not counted: what is made once for all of them stays. */
static void no_process_mount_namespace_file_or_descriptor_is_left_of_many_sandboxes(void **state)
{
    const char *asked = getenv("SLUICE_SANDBOXES"), *chosen = getenv("SLUICE_SEED");
    size_t count = asked ? strtoul(asked, NULL, 10) : ROUND;
    seed = chosen ? (unsigned)strtoul(chosen, NULL, 10) : (unsigned)time(NULL);
    print_message("SLUICE_SEED=%u\n", seed);
    start = take_census();
    one_sandbox_settles(state);
    start = take_census();
    int64_t began_ms = clock_ms();
    started = ended = killed = opened = 0;
    while (started < count)
        one_round_leaves_nothing(state);
    print_message("%zu sandboxes in %.1f s: %zu came to life, %zu were ended at some moment; left are %zu "
                  "processes, %zu descriptors, %zu mounts, %zu namespaces, %zu files, as before\n",
                  started, (double)(clock_ms() - began_ms) / 1e3, opened, killed, start.processes, start.descriptors,
                  start.mounts, start.namespaces, start.files);
    assert_true(opened > started / 2 && killed > started / 8);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_process_mount_namespace_file_or_descriptor_is_left_of_many_sandboxes, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests_name("many sandboxes", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
