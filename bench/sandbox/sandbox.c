/*
 * Sandboxes: until one is ready, how many are made and destroyed a second, and what a living one
 * costs, beside the floors of this machine (fork, exec and wait of /bin/true; a process in all the
 * namespaces that a sandbox has) and bubblewrap in the same run.
 *
 *   bench_sandbox CACHE [COUNT [ALIVE]]     prints "VALUE WHAT" lines; 400 and 200 if not given
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/container/namespaces.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/sandbox.h"
#include "workers/sandbox/spawner_start.h"

enum { TOGETHER_MAX = 4, PAUSE_MS = 2 };

static const struct sandbox_plan plan = {.image = "host", .memory_mib = 512, .disk_mib = 64, .processes = 64};
static struct spawner *spawner;
static struct loop *loop;
static size_t count = 400, alive = 200;
static int64_t *samples_us;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_sandbox: %s: %s\n", what, why);
    exit(1);
}

/* ---- samples ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_samples(const char *what, size_t number)
{
    qsort(samples_us, number, sizeof(*samples_us), compare);
    printf("%.3f %s, p50 ms\n", (double)samples_us[number / 2] / 1000, what);
    printf("%.3f %s, p99 ms\n", (double)samples_us[number * 99 / 100] / 1000, what);
    fflush(stdout);
}

/* ---- other programs ---------------------------------------------------------------------- */

static bool run_program(char *const *argv)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(argv[0], argv);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void measure_program(const char *what, char *const *argv, size_t number)
{
    if (!run_program(argv))
        return; /* not installed, or not allowed here */
    for (size_t i = 0; i < number; i++) {
        int64_t began_us = clock_us();
        run_program(argv);
        samples_us[i] = clock_us() - began_us;
    }
    print_samples(what, number);
}

#define ARGV(...) ((char *const *)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

static void measure_floor(void) { measure_program("fork, exec and end of /bin/true", ARGV("/bin/true"), count); }

/* What no sandbox can be made without; nothing is mounted in them yet. */
static void measure_namespaces(void)
{
    for (size_t i = 0; i < count; i++) {
        int status, pidfd = -1;
        int64_t began_us = clock_us();
        pid_t pid = namespaces_clone(NAMESPACES_CONTAINER, -1, -1, &pidfd);
        if (pid == 0)
            _exit(0);
        if (pid < 0)
            return; /* not allowed here */
        waitpid(pid, &status, 0);
        samples_us[i] = clock_us() - began_us;
        close(pidfd);
    }
    print_samples("a process in seven namespaces of its own and its end", count);
}

static void measure_bubblewrap(void)
{
    measure_program("bubblewrap with the same namespaces around /bin/true",
                    ARGV("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
                         "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--dev", "/dev", "--proc",
                         "/proc", "--tmpfs", "/tmp", "/bin/true"),
                    count / 4);
}

/* ---- fibers ------------------------------------------------------------------------------ */

static size_t running;

static void fiber_ended(void *arg)
{
    (void)arg;
    if (--running == 0)
        loop_stop(loop);
}

static void run_fibers(void (*body)(void *), void *arg, size_t number)
{
    running = number;
    for (size_t i = 0; i < number; i++)
        if (!fiber_start(loop, body, fiber_ended, arg))
            give_up("fiber", "out of memory");
    loop_run(loop);
}

static struct sandbox *open_one(void)
{
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    if (sandbox_open(spawner, &plan, &sandbox, &fail) < 0)
        give_up("sandbox", fail.text);
    return sandbox;
}

static void start_spawner(const char *scratch)
{
    struct fail fail = {0};
    spawner = spawner_start(scratch, &fail);
    loop = loop_create();
    if (!spawner || !loop || !spawner_attach(spawner, loop))
        give_up("spawner", fail.text);
}

static void stop_spawner(void)
{
    spawner_stop(&spawner);
    loop_destroy(&loop);
}

/* ---- time -------------------------------------------------------------------------------- */

/* `arg`: how long nobody asks for one after each, in ms, or NULL. */
static void sample_opens(void *arg)
{
    const int64_t *pause_ms = arg;
    for (size_t i = 0; i < count; i++) {
        int64_t began_us = clock_us();
        struct sandbox *sandbox = open_one();
        samples_us[i] = clock_us() - began_us;
        sandbox_close(&sandbox);
        if (pause_ms)
            await_sleep(*pause_ms);
    }
}

static void sample_commands(void *arg)
{
    (void)arg;
    static const char *const argv[] = {"/bin/true", NULL};
    struct fail fail = {0};
    for (size_t i = 0; i < count; i++) {
        pid_t pid;
        int64_t began_us = clock_us();
        struct sandbox *sandbox = open_one();
        if (sandbox_start(sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail) < 0 ||
            sandbox_wait(sandbox, pid, &fail) != 0)
            give_up("/bin/true", fail.text);
        samples_us[i] = clock_us() - began_us;
        sandbox_close(&sandbox);
        await_sleep(PAUSE_MS);
    }
}

static size_t left;

static void churn(void *arg)
{
    (void)arg;
    while (left > 0) {
        left--;
        struct sandbox *sandbox = open_one();
        sandbox_close(&sandbox);
    }
}

/* Until the last is gone, not only told to go: the spawner waits for all when it is stopped. */
static void measure_churn(const char *scratch, size_t together)
{
    start_spawner(scratch);
    int64_t began_us = clock_us();
    left = count;
    run_fibers(churn, NULL, together);
    stop_spawner();
    printf("%.0f sandboxes made and destroyed, %zu at once, /s\n",
           (double)count * 1e6 / (double)(clock_us() - began_us), together);
    fflush(stdout);
}

/* ---- memory ------------------------------------------------------------------------------ */

static struct sandbox **living;

static void open_living(void *arg)
{
    (void)arg;
    static const char *const argv[] = {"/bin/sleep", "1000", NULL};
    struct fail fail = {0};
    pid_t pid;
    for (size_t i = 0; i < alive; i++) {
        living[i] = open_one();
        if (sandbox_start(living[i], &(struct sandbox_exec){.argv = argv}, &pid, &fail) < 0)
            give_up("/bin/sleep", fail.text);
    }
}

/* What /proc/meminfo calls by these names, together, in KiB. */
static double meminfo_kib(const char *names)
{
    char name[64], words[80];
    double value, total = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fscanf(file, "%63s %lf%*[^\n]", name, &value) == 2) {
        snprintf(words, sizeof(words), " %s ", name);
        total += strstr(names, words) ? value : 0;
    }
    if (file)
        fclose(file);
    return total;
}

static const struct {
    const char *names, *what;
} parts[] = {
    {" SUnreclaim: KernelStack: PageTables: SecPageTables: Percpu: ",
     "the kernel's (slab, stacks, page tables, per cpu)"},
    {" SReclaimable: ", "names and inodes that the kernel keeps while nobody needs the memory"},
    {" AnonPages: ", "anonymous pages of its two processes"},
    {" Shmem: ", "pages in its tmpfs"},
};
enum { PARTS = sizeof(parts) / sizeof(*parts) };

static double memory_before[PARTS];

static void note_memory(void)
{
    for (size_t i = 0; i < PARTS; i++)
        memory_before[i] = meminfo_kib(parts[i].names);
}

/* What the machine took since note_memory, for each of those alive, in KiB: it should do nothing else meanwhile. */
static double memory_of_each(double ret_each[PARTS])
{
    double total = 0;
    for (size_t i = 0; i < PARTS; i++)
        total += ret_each[i] = (meminfo_kib(parts[i].names) - memory_before[i]) / (double)alive;
    return total;
}

/* As pid 1 of its namespaces, in which nothing is mounted. */
static _Noreturn void live_with_a_sleep(int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sleep", "sleep", "1000", NULL);
        _exit(127);
    }
    const char has_sleep = pid > 0;
    if (write(ready, &has_sleep, 1) != 1 || !has_sleep)
        _exit(1);
    for (;;)
        pause();
}

/* What no sandbox can be without: pid 1, a sleep, and their seven namespaces. */
static void measure_memory_floor(void)
{
    double each[PARTS];
    size_t made = 0;
    int ready[2], pidfd = -1;
    char has_sleep;
    pid_t *pids = calloc(alive, sizeof(*pids));
    if (!pids || pipe2(ready, O_CLOEXEC) < 0)
        give_up("pipe", strerror(errno));
    note_memory();
    for (; made < alive; made++) {
        pids[made] = namespaces_clone(NAMESPACES_CONTAINER, -1, -1, &pidfd);
        if (pids[made] == 0)
            live_with_a_sleep(ready[1]);
        if (pids[made] < 0)
            break; /* not allowed here */
        close(pidfd);
        if (read(ready[0], &has_sleep, 1) != 1 || !has_sleep)
            give_up("fork", "of a sleep, by a pid 1");
    }
    usleep(100000); /* until the last sleeps have begun */
    if (made == alive && made > 0)
        printf("%.3f floor: memory of a process in seven namespaces of its own and a sleep in "
               "them, of %zu alive, MiB\n",
               memory_of_each(each) / 1024, alive);
    while (made > 0) {
        kill(pids[--made], SIGKILL);
        waitpid(pids[made], NULL, 0);
    }
    close(ready[0]);
    close(ready[1]);
    free(pids);
}

static void measure_memory(const char *scratch)
{
    double each[PARTS];
    start_spawner(scratch);
    note_memory();
    int64_t began_us = clock_us();
    run_fibers(open_living, NULL, 1);
    printf("%.0f sandboxes made with a sleep in each and none destroyed, /s\n",
           (double)alive * 1e6 / (double)(clock_us() - began_us));
    printf("%.3f memory of a living sandbox with a sleep in it, of %zu alive, MiB\n", memory_of_each(each) / 1024,
           alive);
    for (size_t i = 0; i < PARTS; i++)
        printf("%.0f ... of that, %s, KiB\n", each[i], parts[i].what);
    began_us = clock_us();
    for (size_t i = 0; i < alive; i++)
        sandbox_close(&living[i]);
    stop_spawner();
    printf("%.1f all %zu destroyed, ms\n", (double)(clock_us() - began_us) / 1000, alive);
    fflush(stdout);
}

/* ---- all of it ---------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    if (argc < 2)
        give_up("usage", "bench_sandbox CACHE [COUNT [ALIVE]]");
    count = argc > 2 ? strtoul(argv[2], NULL, 10) : count;
    alive = argc > 3 ? strtoul(argv[3], NULL, 10) : alive;
    char scratch[512];
    snprintf(scratch, sizeof(scratch), "%s/.mount", argv[1]);
    if (mkdir(scratch, 0755) < 0 && errno != EEXIST)
        give_up(scratch, strerror(errno));
    samples_us = calloc(count + 1, sizeof(*samples_us));
    living = calloc(alive + 1, sizeof(struct sandbox *));
    measure_floor();
    measure_namespaces();
    start_spawner(scratch);
    run_fibers(sample_opens, &(int64_t){PAUSE_MS}, 1); /* the last one's end is not this one's beginning */
    print_samples("a sandbox is ready", count);
    run_fibers(sample_opens, NULL, 1);
    print_samples("a sandbox is ready, asked for at once when the last one was", count);
    run_fibers(sample_commands, NULL, 1);
    print_samples("a sandbox is ready and /bin/true has ended in it", count);
    stop_spawner();
    measure_bubblewrap();
    for (size_t together = 1; together <= TOGETHER_MAX; together *= 2)
        measure_churn(scratch, together);
    measure_memory_floor();
    usleep(500000); /* what has ended gives back its memory a little later */
    measure_memory(scratch);
    free(samples_us);
    free(living);
    return 0;
}
