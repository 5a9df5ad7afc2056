#include "client/gateway/outgoing/transfers.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"

struct transfers {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer *timer;
    struct loop_soon soon; /* looks for what has ended, outside of curl's own calls */
};

struct watched { /* curl's name for one of its connections */
    struct transfers *transfers;
    curl_socket_t fd;
    struct loop_watch *watch;
};

/* ---- curl on the loop -------------------------------------------------------------------------------------- */

static void act(struct transfers *transfers, curl_socket_t fd, int events)
{
    int running;
    curl_multi_socket_action(transfers->multi, fd, events, &running);
    loop_post(transfers->loop, &transfers->soon);
}

static void on_ready(void *arg, uint32_t events)
{
    struct watched *watched = arg;
    act(watched->transfers, watched->fd,
        (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
            (events & EPOLLERR ? CURL_CSELECT_ERR : 0));
}

static void unwatch(struct watched *watched)
{
    if (!watched)
        return;
    loop_unwatch(watched->transfers->loop, &watched->watch);
    free(watched);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    struct transfers *transfers = arg;
    struct watched *watched = assigned;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        unwatch(watched);
        curl_multi_assign(transfers->multi, fd, NULL);
        return 0;
    }
    const uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (watched)
        return loop_rewatch(transfers->loop, watched->watch, events) ? 0 : -1;
    watched = malloc(sizeof(*watched));
    if (!watched)
        return -1;
    *watched = (struct watched){.transfers = transfers, .fd = fd};
    watched->watch = loop_watch(transfers->loop, fd, events, on_ready, watched);
    if (watched->watch && curl_multi_assign(transfers->multi, fd, watched) == CURLM_OK)
        return 0;
    unwatch(watched);
    return -1;
}

static void on_due(void *arg)
{
    struct transfers *transfers = arg;
    transfers->timer = NULL;
    act(transfers, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long delay_ms, void *arg)
{
    struct transfers *transfers = arg;
    (void)multi;
    loop_cancel(transfers->loop, &transfers->timer);
    if (delay_ms < 0)
        return 0;
    transfers->timer = loop_after(transfers->loop, delay_ms, on_due, transfers);
    return transfers->timer ? 0 : -1;
}

/* ---- one of them ---------------------------------------------------------------------------------------------- */

/* curl's own program knows the variable, its library does not. */
static void set_authorities(CURL *easy)
{
    const char *bundle = getenv("SSL_CERT_FILE");
    if (bundle && *bundle)
        curl_easy_setopt(easy, CURLOPT_CAINFO, bundle);
}

CURL *transfers_handle(const char *url)
{
    CURL *easy = curl_easy_init();
    if (!easy)
        return NULL;
    set_authorities(easy);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
        curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK)
        return easy;
    curl_easy_cleanup(easy);
    return NULL;
}

bool transfers_begin(struct transfers *transfers, struct transfer *transfer)
{
    curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    transfer->is_under_way = curl_multi_add_handle(transfers->multi, transfer->easy) == CURLM_OK;
    return transfer->is_under_way;
}

void transfers_give_up(struct transfers *transfers, struct transfer *transfer)
{
    if (transfer->is_under_way)
        curl_multi_remove_handle(transfers->multi, transfer->easy);
    transfer->is_under_way = false;
}

/* ---- all of them ---------------------------------------------------------------------------------------------- */

static void on_soon(void *arg)
{
    struct transfers *transfers = arg;
    int left;
    for (CURLMsg *told; (told = curl_multi_info_read(transfers->multi, &left));) {
        struct transfer *transfer = NULL;
        if (told->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = told->data.result;
        curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        transfers_give_up(transfers, transfer);
        transfer->ended(transfer->arg, code);
    }
}

struct transfers *transfers_open(struct loop *loop)
{
    struct transfers *transfers = calloc(1, sizeof(*transfers));
    if (!transfers)
        return NULL;
    transfers->loop = loop;
    transfers->soon = (struct loop_soon){.run = on_soon, .arg = transfers};
    transfers->multi = curl_multi_init();
    if (!transfers->multi) {
        free(transfers);
        return NULL;
    }
    curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(transfers->multi, CURLMOPT_SOCKETDATA, transfers);
    curl_multi_setopt(transfers->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(transfers->multi, CURLMOPT_TIMERDATA, transfers);
    return transfers;
}

void transfers_close(struct transfers **handle)
{
    struct transfers *transfers = take_ptr(handle);
    if (!transfers)
        return;
    curl_multi_cleanup(transfers->multi);
    loop_cancel(transfers->loop, &transfers->timer);
    loop_unpost(transfers->loop, &transfers->soon);
    free(transfers);
}
