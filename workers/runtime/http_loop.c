/* curl on the loop: curl says what to watch and when to call again. */
#include "workers/runtime/http_loop.h"

#include "workers/runtime/http_inside.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"

static void act(struct http *http, curl_socket_t fd, int events)
{
    int running;
    curl_multi_socket_action(http->multi, fd, events, &running);
    http->acted(http);
}

struct http_watch { /* curl's name for one of its connections */
    struct http *http;
    curl_socket_t fd;
    struct loop_watch *watch;
};

static void socket_ready(void *arg, uint32_t events)
{
    struct http_watch *watch = arg;
    int flags = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                (events & EPOLLERR ? CURL_CSELECT_ERR : 0);
    act(watch->http, watch->fd, flags);
}

static void watch_destroy(struct http_watch *watch)
{
    if (!watch)
        return;
    loop_unwatch(watch->http->loop, &watch->watch);
    free(watch);
}

static struct http_watch *watch_create(struct http *http, curl_socket_t fd, uint32_t events)
{
    AUTO_FREE struct http_watch *watch = malloc(sizeof(*watch));
    if (!watch)
        return NULL;
    *watch = (struct http_watch){.http = http, .fd = fd};
    watch->watch = loop_watch(http->loop, fd, events, socket_ready, watch);
    return watch->watch ? take_ptr(&watch) : NULL;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    (void)easy;
    struct http *http = arg;
    struct http_watch *watch = assigned;
    if (what == CURL_POLL_REMOVE) {
        watch_destroy(watch);
        curl_multi_assign(http->multi, fd, NULL);
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (watch)
        return loop_rewatch(http->loop, watch->watch, events) ? 0 : -1;
    watch = watch_create(http, fd, events);
    return watch && curl_multi_assign(http->multi, fd, watch) == CURLM_OK ? 0 : -1;
}

static void timer_due(void *arg)
{
    struct http *http = arg;
    http->timer = NULL;
    act(http, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long delay_ms, void *arg)
{
    (void)multi;
    struct http *http = arg;
    loop_cancel(http->loop, &http->timer);
    if (delay_ms < 0)
        return 0;
    http->timer = loop_after(http->loop, delay_ms, timer_due, http);
    return http->timer ? 0 : -1;
}

void http_watch_curl(struct http *http, void (*acted)(struct http *http))
{
    http->acted = acted;
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
}
