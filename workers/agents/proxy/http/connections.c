#include "workers/agents/proxy/http/connections.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"

struct connection {
    struct connection *next;
    struct MHD_Connection *of;
    bool waits;
    int64_t since_ms; /* its last step */
};

static void add(struct connections *connections, struct MHD_Connection *of, void **slot)
{
    struct connection *it = *slot = calloc(1, sizeof(*it));
    if (!it)
        return;
    *it = (struct connection){.next = connections->list, .of = of, .since_ms = loop_now_ms()};
    connections->list = it;
}

static void drop(struct connections *connections, void **slot)
{
    struct connection *it = take_ptr((struct connection **)slot), **at = &connections->list;
    while (*at && *at != it)
        at = &(*at)->next;
    if (it)
        *at = it->next;
    free(it);
}

void connections_note(struct connections *connections, struct MHD_Connection *of, void **slot,
                      enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        add(connections, of, slot);
    else
        drop(connections, slot);
}

void connections_note_step(struct MHD_Connection *of, bool waits)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *it = info ? info->socket_context : NULL;
    if (!it)
        return;
    it->waits = waits;
    it->since_ms = loop_now_ms();
}

void connections_end_idle(const struct connections *connections, int64_t idle_ms)
{
    for (const struct connection *it = connections->list; it; it = it->next) {
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(it->of, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info && !it->waits && loop_now_ms() - it->since_ms >= idle_ms)
            shutdown(info->connect_fd, SHUT_RDWR);
    }
}
