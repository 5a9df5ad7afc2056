#include "workers/sandbox/init/socket_memory.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 32768, OWN_BYTES = 2048 /* of a socket without data, roughly */ };

struct sum {
    uint64_t sockets, bytes;
};

int socket_memory_open(void) { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

/* SK_MEMINFO_...: what is on its way to the socket, and what it has sent that is not read. */
static uint64_t bytes_of(const struct rtattr *memory)
{
    uint32_t each[SK_MEMINFO_WMEM_QUEUED + 1];
    if (RTA_PAYLOAD(memory) < sizeof(each))
        return 0;
    memcpy(each, RTA_DATA(memory), sizeof(each));
    uint32_t sent = each[SK_MEMINFO_WMEM_ALLOC], queued = each[SK_MEMINFO_WMEM_QUEUED];
    return (uint64_t)each[SK_MEMINFO_RMEM_ALLOC] + (sent > queued ? sent : queued);
}

/* One socket's message: `head` bytes that we do not need, then attributes. */
static void add(struct sum *sum, struct nlmsghdr *message, size_t head, unsigned short wanted)
{
    if (message->nlmsg_len < NLMSG_LENGTH(head))
        return;
    size_t left = message->nlmsg_len - NLMSG_LENGTH(head);
    sum->sockets++;
    for (struct rtattr *at = (struct rtattr *)((char *)NLMSG_DATA(message) + NLMSG_ALIGN(head)); RTA_OK(at, left);
         at = RTA_NEXT(at, left))
        if (at->rta_type == wanted)
            sum->bytes += bytes_of(at);
}

/* A dump to its end. False where it cannot be had. */
static bool take(int ask, struct sum *sum, size_t head, unsigned short wanted)
{
    static _Alignas(struct nlmsghdr) char answer[ANSWER_MAX];
    for (;;) {
        ssize_t got = recv(ask, answer, sizeof(answer), MSG_DONTWAIT);
        if (got <= 0)
            return false;
        size_t left = (size_t)got;
        for (struct nlmsghdr *at = (struct nlmsghdr *)answer; NLMSG_OK(at, left); at = NLMSG_NEXT(at, left)) {
            if (at->nlmsg_type == NLMSG_DONE || at->nlmsg_type == NLMSG_ERROR)
                return at->nlmsg_type == NLMSG_DONE;
            add(sum, at, head, wanted);
        }
    }
}

static bool send_request(int ask, const void *request, size_t size)
{
    struct {
        struct nlmsghdr head;
        char body[64];
    } message = {.head = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size),
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    memcpy(message.body, request, size);
    return send(ask, &message, message.head.nlmsg_len, MSG_DONTWAIT) == (ssize_t)message.head.nlmsg_len;
}

static void sum_unix(int ask, struct sum *sum)
{
    const struct unix_diag_req request = {
        .sdiag_family = AF_UNIX, .udiag_states = ~0U, .udiag_show = UDIAG_SHOW_MEMINFO};
    if (send_request(ask, &request, sizeof(request)))
        take(ask, sum, sizeof(struct unix_diag_msg), UNIX_DIAG_MEMINFO);
}

static void sum_inet(int ask, struct sum *sum)
{
    static const uint8_t families[] = {AF_INET, AF_INET6}, protocols[] = {IPPROTO_TCP, IPPROTO_UDP};
    for (int i = 0; i < 4; i++) {
        const struct inet_diag_req_v2 request = {.sdiag_family = families[i / 2],
                                                 .sdiag_protocol = protocols[i % 2],
                                                 .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
                                                 .idiag_states = ~0U};
        if (send_request(ask, &request, sizeof(request)))
            take(ask, sum, sizeof(struct inet_diag_msg), INET_DIAG_SKMEMINFO);
    }
}

static unsigned long count_sockets(int counts)
{
    char text[64];
    unsigned long used = 0;
    ssize_t got = counts < 0 ? -1 : pread(counts, text, sizeof(text) - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return sscanf(text, "sockets: used %lu", &used) == 1 ? used : 0;
}

uint64_t socket_memory_kib(int counts, int ask)
{
    struct sum sum = {0, 0};
    unsigned long used = count_sockets(counts);
    if (used <= SOCKET_MEMORY_FROM || ask < 0)
        return 0;
    sum_unix(ask, &sum);
    if (used > sum.sockets + 1) /* not all are Unix sockets and our own; a look at the others takes a millisecond */
        sum_inet(ask, &sum);
    return (sum.bytes + (uint64_t)used * OWN_BYTES) / 1024;
}
