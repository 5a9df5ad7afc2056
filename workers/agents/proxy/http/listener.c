#include "workers/agents/proxy/http/listener.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/http/request.h"

/* Whoever waits there already is of a rollout, or a step, before; and gone. */
static void turn_away(int fd)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int waiting; (waiting = accept(fd, NULL, NULL)) >= 0;)
        close(waiting);
}

static struct http_server *open_http(struct http_listener *listener, struct loop *loop, int fd)
{
    const struct http_server_plan plan = {.fd = fd,
                                          .connections_max = listener->plan.connections_max,
                                          .header_bytes = LISTENER_HEADER_BYTES,
                                          .body_max = LISTENER_BODY_MAX,
                                          .held_max = listener->plan.held_max,
                                          .idle_ms = LISTENER_IDLE_MS,
                                          .takes_encoded_slashes = true,
                                          .heard = request_heard,
                                          .asked = request_asked,
                                          .gone = request_gone,
                                          .write_error = request_write_error,
                                          .arg = listener};
    return http_server_open(loop, &plan, NULL);
}

struct http_listener *listener_open(struct loop *loop, const struct listener_plan *plan)
{
    AUTO_CLOSE int fd = plan->fd;
    struct http_listener *listener = calloc(1, sizeof(*listener));
    if (!listener)
        return NULL;
    listener->plan = *plan;
    turn_away(fd);
    listener->http = open_http(listener, loop, take_fd(&fd));
    if (!listener->http)
        listener_close(&listener);
    return listener;
}

void listener_close(struct http_listener **listener)
{
    struct http_listener *it = take_ptr(listener);
    if (!it)
        return;
    struct http_server *http = it->http; /* which is counted in until its last client is gone */
    http_server_close(&http);
    free(it);
}
