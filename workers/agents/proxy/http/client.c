#include "workers/agents/proxy/http/client.h"

#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static int socket_of(const struct client *client)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(client->connection,
                                                                   MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

void client_resume(struct client *client)
{
    if (!client->is_suspended)
        return;
    client->is_suspended = false;
    connections_note_step(client->connection, false);
    MHD_resume_connection(client->connection);
    loop_post(client->listener->loop, &client->listener->soon);
}

static void on_hangup(void *arg, uint32_t events)
{
    struct client *client = arg;
    client->is_gone = !client->is_suspended;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        client_resume(client);
}

/* MHD does not notice itself then that its client is gone; of that it hears once. */
void client_suspend(struct client *client)
{
    const int fd = socket_of(client);
    client->is_suspended = true;
    connections_note_step(client->connection, true);
    MHD_suspend_connection(client->connection);
    if (fd >= 0 && !client->hangup)
        client->hangup = loop_watch(client->listener->loop, fd, EPOLLRDHUP | EPOLLET, on_hangup, client);
    if (client->is_gone)
        client_resume(client);
    client->is_gone = false;
}

bool client_hung_up(const struct client *client)
{
    char byte;
    const int fd = socket_of(client);
    return fd >= 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
