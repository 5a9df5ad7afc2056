/* Taking memory, processes and files until something stops it. */
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/workers/attacks/inside/attack.h"

enum { BLOCK = 16 << 20, FORKS = 8, FORKS_MAX = 16384 };

static void touch(void *memory, size_t size) { memset(memory, 'x', size); }

static void *map(int flags, int fd, off_t offset)
{
    return mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, flags, fd, offset);
}

static void take_blocks(int flags)
{
    void *block;
    while ((block = map(flags, -1, 0)) != MAP_FAILED)
        touch(block, BLOCK);
}

static void take_by_forks(void)
{
    for (int i = 0; i < FORKS; i++)
        if (fork() == 0)
            take_blocks(MAP_PRIVATE | MAP_ANONYMOUS);
}

/* Attached, then no longer in the page table: in no process's account. */
static void take_segments(bool is_detached)
{
    int id;
    while ((id = shmget(IPC_PRIVATE, BLOCK, 0600 | IPC_CREAT)) >= 0) {
        void *block = shmat(id, NULL, 0);
        if (block == (void *)-1)
            return;
        touch(block, BLOCK);
        if (is_detached)
            shmdt(block);
        else
            madvise(block, BLOCK, MADV_DONTNEED);
    }
}

/* A file of a tmpfs, mapped and written through the mapping. */
static void take_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    for (off_t at = 0; fd >= 0; at += BLOCK) {
        if (ftruncate(fd, at + BLOCK) < 0)
            break;
        void *block = map(MAP_SHARED, fd, at);
        if (block == MAP_FAILED)
            break;
        touch(block, BLOCK);
        munmap(block, BLOCK);
    }
    say(path, -1);
}

/* Unread data, as much as two buffers hold that were asked to be large: 40 pairs to a process. */
static void take_pairs(void)
{
    static const char data[4096];
    const int large = 8 << 20;
    int ends[2];
    for (int i = 0; i < 40 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0; i++)
        for (int k = 0; k < 2; k++) {
            setsockopt(ends[k], SOL_SOCKET, SO_SNDBUF, &large, sizeof(large));
            while (write(ends[k], data, sizeof(data)) > 0)
                ;
        }
}

static void take_sockets(void)
{
    for (int i = 0; i < 30; i++)
        if (fork() == 0) {
            take_pairs();
            for (;;)
                pause();
        }
}

/* Over the loopback, each to its own port, from one socket. */
static void take_datagrams(void)
{
    static const char data[32768];
    const int from = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    for (int i = 0; i < 1500; i++) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof(at);
        int to = socket(AF_INET, SOCK_DGRAM, 0);
        if (to < 0 || bind(to, (struct sockaddr *)&at, size) < 0 || getsockname(to, (struct sockaddr *)&at, &size) < 0)
            return;
        for (int k = 0; k < 16; k++)
            sendto(from, data, sizeof(data), 0, (struct sockaddr *)&at, size);
    }
}

static void wait_for_the_end(void)
{
    for (;;)
        pause();
}

void attack_memory(const char *kind)
{
    if (strcmp(kind, "malloc") == 0)
        for (void *block; (block = malloc(BLOCK));)
            touch(block, BLOCK);
    else if (strcmp(kind, "forks") == 0)
        take_by_forks();
    else if (strcmp(kind, "shared") == 0)
        take_blocks(MAP_SHARED | MAP_ANONYMOUS);
    else if (strcmp(kind, "segments") == 0)
        take_segments(false);
    else if (strcmp(kind, "detached") == 0)
        take_segments(true);
    else if (strcmp(kind, "sockets") == 0)
        take_sockets();
    else if (strcmp(kind, "datagrams") == 0)
        take_datagrams();
    else
        take_file(kind);
    wait_for_the_end();
}

/* Ignores what can be ignored, in a session of its own, its parent gone. */
static void hide(void)
{
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_IGN);
    setsid();
    if (fork() > 0)
        _exit(0);
    wait_for_the_end();
}

static int idle(void *arg)
{
    (void)arg;
    wait_for_the_end();
    return 0;
}

/* Whoever is forked next, and before it has executed anything. */
static void stop_all_that_come(void)
{
    const pid_t self = getpid();
    printf("stopping\n");
    fflush(stdout);
    for (;;)
        for (pid_t pid = self + 1; pid < self + 200; pid++)
            kill(pid, SIGSTOP);
}

void attack_processes(const char *kind)
{
    long count = 0;
    static char stacks[4096][16384];
    if (strcmp(kind, "daemons") == 0) {
        for (; count < 20; count++) {
            if (fork() == 0)
                hide();
            waitpid(-1, NULL, 0); /* so that the dead do not count when the next one forks */
        }
    } else if (strcmp(kind, "stops") == 0) {
        stop_all_that_come();
    } else if (strcmp(kind, "bomb") == 0) {
        for (;;)
            fork();
    } else if (strcmp(kind, "threads") == 0) {
        while (count < 4096 &&
               clone(idle, stacks[count] + sizeof(stacks[0]), CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, NULL) >= 0)
            count++;
    } else {
        pid_t pid;
        signal(SIGCHLD, SIG_IGN); /* nothing is left of those who are killed */
        while (count < FORKS_MAX && (pid = fork()) >= 0 && ++count)
            if (pid == 0)
                wait_for_the_end();
    }
    printf("%s %ld %s\n", kind, count, strerrorname_np(errno));
    fflush(stdout);
    if (strcmp(kind, "daemons") != 0)
        wait_for_the_end();
}

/* "deep": directories in directories; "many": names in one; "holes": one large file. */
void attack_files(const char *kind)
{
    char name[256];
    long count = 0;
    memset(name, 'n', 255);
    name[255] = '\0';
    if (strcmp(kind, "deep") == 0)
        while (mkdir(name, 0700) == 0 && chdir(name) == 0)
            count++;
    else if (strcmp(kind, "holes") == 0)
        count = ftruncate(open("holes", O_RDWR | O_CREAT, 0600), INT64_MAX);
    else
        for (int result = 0; result == 0; count += result == 0) {
            snprintf(name, sizeof(name), "%ld", count);
            int fd = open(name, O_WRONLY | O_CREAT, 0600);
            result = fd < 0 ? -1 : close(fd);
        }
    printf("%s %ld %s\n", kind, count, strerrorname_np(errno));
}
