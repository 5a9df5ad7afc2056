/* Taking what the kernel counts for the whole machine, and holding it. */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/workers/attacks/inside/attack.h"

#define HOSTS_DIR "/usr/bin"
#define HOSTS_NAME "factor" /* which nobody runs */
#define HOSTS_FILE HOSTS_DIR "/" HOSTS_NAME

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

/* Descriptors on their way through a socket pair. */
static long take_flights(void)
{
    enum { EACH = 200 };
    struct {
        struct cmsghdr head;
        int fds[EACH];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int) * EACH), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec byte = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {
        .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * EACH)};
    int ends[2];
    long count = 0;
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends);
    while (count < 100000 && sendmsg(ends[0], &message, 0) == 1)
        count += EACH;
    return count;
}

/* A lock of a file that is the host's, where it can be had. */
static long take_lock(void)
{
    int fd = open(HOSTS_FILE, O_RDONLY);
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* How often its directory told of it, written when /tmp/go is made. */
static long take_news(void)
{
    char news[4096] __attribute__((aligned(8)));
    long heard = 0, count = 0;
    int notes = inotify_init1(IN_NONBLOCK), go = inotify_init1(0);
    if (inotify_add_watch(notes, HOSTS_DIR, IN_OPEN | IN_ACCESS) < 0 || inotify_add_watch(go, "/tmp", IN_CREATE) < 0)
        return 0;
    if (fork() > 0)
        return 1;
    while (access("/tmp/go", F_OK) < 0 && read(go, news, sizeof(news)) > 0)
        ;
    while ((count = read(notes, news, sizeof(news))) > 0)
        for (char *at = news; at < news + count; at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
            heard += strcmp(((struct inotify_event *)at)->name, HOSTS_NAME) == 0;
    FILE *file = fopen("/tmp/heard.new", "w");
    fprintf(file, "%ld\n", heard);
    fclose(file);
    rename("/tmp/heard.new", "/tmp/heard");
    _exit(0);
}

static const struct {
    const char *kind;
    long (*take)(void);
} attacks[] = {
    {"ptys", take_ptys},       {"watches", take_watches}, {"timers", take_timers}, {"signals", take_signals},
    {"events", take_events},   {"pipe", take_pipe},       {"lease", take_lease},   {"favour", take_favour},
    {"flights", take_flights}, {"lock", take_lock},       {"news", take_news},
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
