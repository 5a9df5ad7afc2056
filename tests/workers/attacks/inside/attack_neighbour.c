/* What one sandbox has open, by name or number, and another's attempts to reach it. */
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/workers/attacks/inside/attack.h"

enum { KEY = 0x51c4 };

static const char abstract_name[] = "\0sluice-neighbour", kernel_path[] = "/run/sluice/out/kernel-1",
                  plain_path[] = "/tmp/server.sock", grant_path[] = "/run/sluice/grant/db",
                  shared_name[] = "/sluice-neighbour", queue_name[] = "/sluice-neighbour";

static char secret[64] = "of the neighbour"; /* at the same address in all who run this */

static socklen_t name_socket(struct sockaddr_un *ret, const char *path)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t len = *path ? strlen(path) + 1 : sizeof(abstract_name) - 1;
    memcpy(ret->sun_path, path, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static long reach(const char *path)
{
    struct sockaddr_un to;
    socklen_t len = name_socket(&to, path);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&to, len);
}

static long reach_port(int port)
{
    struct sockaddr_in to = {AF_INET, htons((uint16_t)port), {htonl(INADDR_LOOPBACK)}, {0}};
    return connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to));
}

static bool serve_at(const char *path)
{
    struct sockaddr_un at;
    socklen_t len = name_socket(&at, path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    unlink(path); /* of one before */
    return bind(fd, (struct sockaddr *)&at, len) == 0 && listen(fd, 8) == 0;
}

/* Everything at once, then "serving PID PORT SEGMENT FD". */
void attack_serve(void)
{
    struct sockaddr_in at = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    socklen_t len = sizeof(at);
    int tcp = socket(AF_INET, SOCK_STREAM, 0), held = open("/tmp/held", O_RDWR | O_CREAT, 0600);
    int shared = shm_open(shared_name, O_RDWR | O_CREAT, 0666);
    int segment = shmget(KEY, 4096, 0666 | IPC_CREAT);
    bool good = serve_at(abstract_name) && serve_at(kernel_path) && serve_at(plain_path) &&
                bind(tcp, (struct sockaddr *)&at, len) == 0 && listen(tcp, 8) == 0 &&
                getsockname(tcp, (struct sockaddr *)&at, &len) == 0 && shared >= 0 && segment >= 0 &&
                semget(KEY, 1, 0666 | IPC_CREAT) >= 0 && mq_open(queue_name, O_RDWR | O_CREAT, 0666, NULL) >= 0 &&
                held >= 0 && write(held, secret, sizeof(secret)) > 0 && unlink("/tmp/held") == 0;
    printf(good ? "serving %d %d %d %d\n" : "not serving: %m\n", (int)getpid(), ntohs(at.sin_port), segment, held);
    fflush(stdout);
    for (;;)
        pause();
}

static long try_path(const char *format, int pid, int number)
{
    char path[64];
    snprintf(path, sizeof(path), format, pid, number);
    return open(path, O_RDONLY);
}

static void try_its_process(int pid, int fd)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {secret, 1};
    TRY("root", try_path("/proc/%d/root/etc", pid, 0));
    TRY("directory", try_path("/proc/%d/cwd", pid, 0));
    TRY("descriptor", try_path("/proc/%d/fd/%d", pid, fd));
    TRY("memory", try_path("/proc/%d/mem", pid, 0));
    TRY("environment", try_path("/proc/%d/environ", pid, 0));
    TRY("signal", kill(pid, 0));
    TRY("pidfd", syscall(SYS_pidfd_open, pid, 0));
    TRY("read", process_vm_readv(pid, &here, 1, &there, 1, 0));
    TRY("write", process_vm_writev(pid, &here, 1, &there, 1, 0));
    TRY("trace", ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

/* Arguments: the pid to try, its port, its segment, its descriptor, the port of its grant. */
void attack_neighbour(char **arguments)
{
    TRY("abstract", reach(abstract_name));
    TRY("kernel's-socket", reach(kernel_path));
    TRY("socket", reach(plain_path));
    TRY("granted-socket", reach(grant_path));
    TRY("port", reach_port(atoi(arguments[1])));
    TRY("granted-port", reach_port(atoi(arguments[4])));
    TRY("shared-file", shm_open(shared_name, O_RDWR, 0));
    TRY("segment", shmget(KEY, 1, 0));
    TRY("segment-by-number", shmat(atoi(arguments[2]), NULL, SHM_RDONLY) == (void *)-1 ? -1 : 0);
    TRY("semaphores", semget(KEY, 1, 0));
    TRY("queue", mq_open(queue_name, O_RDWR));
    try_its_process(atoi(arguments[0]), atoi(arguments[3]));
}

/* Of processes outside, by their pids there: a spawner, a worker, a fork server. */
void attack_outside(char **pids)
{
    for (; *pids; pids++)
        try_its_process(atoi(*pids), 0);
}
