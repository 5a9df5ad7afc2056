/* Sockets and files that reach for what is outside. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/workers/attacks/inside/attack.h"

static void try_families(void)
{
    static const struct {
        const char *name;
        int family, type, protocol;
    } sockets[] = {
        {"packet", AF_PACKET, SOCK_RAW, 0},
        {"packet-dgram", AF_PACKET, SOCK_DGRAM, 0},
        {"vsock", AF_VSOCK, SOCK_STREAM, 0},
        {"alg", AF_ALG, SOCK_SEQPACKET, 0},
        {"bluetooth", AF_BLUETOOTH, SOCK_RAW, 0},
        {"key", AF_KEY, SOCK_RAW, 2},
        {"tipc", AF_TIPC, SOCK_DGRAM, 0},
        {"rds", AF_RDS, SOCK_SEQPACKET, 0},
        {"xdp", 44, SOCK_RAW, 0},
        {"can", AF_CAN, SOCK_RAW, 1},
        {"raw", AF_INET, SOCK_RAW, IPPROTO_RAW},
        {"raw-icmp", AF_INET, SOCK_RAW, IPPROTO_ICMP},
        {"raw-6", AF_INET6, SOCK_RAW, IPPROTO_RAW},
        {"ping", AF_INET, SOCK_DGRAM, IPPROTO_ICMP},
    };
    for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++)
        TRY(sockets[i].name, socket(sockets[i].family, sockets[i].type, sockets[i].protocol));
}

/* Asks the kernel to bring an interface up; its answer. */
static void try_netlink(void)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
    } request = {.head = {sizeof(request), RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0},
                 .link = {.ifi_index = 1, .ifi_change = 1}};
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (send(fd, &request, sizeof(request), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0) {
        say("netlink-link", -1);
        return;
    }
    errno = -answer.error.error;
    say("netlink-link", answer.error.error ? -1 : 0);
    struct sockaddr_nl uevents = {.nl_family = AF_NETLINK, .nl_groups = 1};
    TRY("netlink-audit",
        socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT) < 0
            ? -1
            : bind(socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT), (struct sockaddr *)&uevents, sizeof(uevents)));
}

static long reach_tcp(const char *address, int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, address, &to.sin_addr);
    return connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to));
}

static long reach_udp(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    inet_pton(AF_INET, address, &to.sin_addr);
    return sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
}

static long reach_tcp6(const char *address)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    inet_pton(AF_INET6, address, &to.sin6_addr);
    return connect(socket(AF_INET6, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to));
}

static long reach_unix(const char *name, bool is_abstract)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path + is_abstract, sizeof(to.sun_path) - 1, "%s", name);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + strlen(name));
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&to, len);
}

void attack_sockets(char **arguments)
{
    try_families();
    try_netlink();
    TRY("abstract", reach_unix(arguments[0], true));
    TRY("host-port", reach_tcp("127.0.0.1", atoi(arguments[1])));
    TRY("host-socket", reach_unix(arguments[2], false));
    TRY("internet", reach_tcp("1.1.1.1", 80));
    TRY("metadata", reach_tcp("169.254.169.254", 80));
    TRY("dns", reach_udp("8.8.8.8"));
    TRY("ipv6", reach_tcp6("2606:4700:4700::1111"));
    TRY("multicast", reach_udp("224.0.0.1"));
}

static void try_write(const char *path, const char *text)
{
    errno = 0;
    int fd = open(path, O_WRONLY);
    say(path, fd < 0 ? -1 : write(fd, text, strlen(text)));
}

/* "done" only where there was something to read. */
static void try_read(const char *path)
{
    char byte;
    errno = 0;
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, &byte, 1);
    if (got == 0)
        printf("%s empty\n", path);
    else
        say(path, got);
    if (fd >= 0)
        close(fd);
}

/* As arguments: a pid outside, a key of System V shared memory outside, paths to read. */
void attack_proc(char **arguments)
{
    static const char *const secrets[] = {
        "/proc/1/mem",      "/proc/1/environ", "/proc/1/maps", "/proc/1/auxv", "/proc/1/root/etc/passwd",
        "/proc/1/fd/3",     "/proc/kcore",     "/dev/mem",     "/dev/kmsg",    "/dev/port",
        "/dev/sda",         "/dev/kvm",        "/dev/fuse",    "/dev/net/tun", "/dev/userfaultfd",
        "/dev/loop-control"};
    char path[64];
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        try_read(secrets[i]);
    TRY("exe-of-pid-1", readlink("/proc/1/exe", path, sizeof(path)));
    TRY("descriptor-of-pid-1", readlink("/proc/1/fd/3", path, sizeof(path)));
    TRY("root-of-pid-1", readlink("/proc/1/root", path, sizeof(path)));
    snprintf(path, sizeof(path), "/proc/%s", arguments[0]);
    TRY("outside-pid", open(path, O_RDONLY));
    TRY("outside-shm", shmget(atoi(arguments[1]), 1, 0));
    try_write("/proc/sys/kernel/core_pattern", "|/tmp/x");
    try_write("/proc/sys/kernel/hostname", "x");
    try_write("/proc/sys/user/max_user_namespaces", "10");
    try_write("/proc/sys/net/ipv4/ip_forward", "1");
    try_write("/proc/sysrq-trigger", "b");
    try_write("/proc/self/uid_map", "0 0 1");
    try_write("/proc/self/setgroups", "allow");
    try_write("/proc/1/oom_score_adj", "0");
    TRY("commands-write", open("/run/sluice/x", O_WRONLY | O_CREAT, 0600));
    TRY("image-write", open("/usr/bin/env", O_WRONLY));
    TRY("image-create", open("/usr/x", O_WRONLY | O_CREAT, 0600));
    TRY("image-remove", unlink("/usr/bin/env"));
    for (char **at = arguments + 2; *at; at++)
        try_read(*at);
}
