#include "client/gateway/outgoing/outgoing.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/containers/list.h"

struct outgoing {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer *timer;
    struct list posts;
    size_t count;
    struct loop_soon soon; /* looks for what has ended, outside of curl's own calls */
};

struct outgoing_sent {
    struct outgoing *outgoing;
    CURL *easy;
    struct curl_slist *headers;
    struct buffer body;
    char error[CURL_ERROR_SIZE];
    struct buffer answer;
    bool keeps_answer;
    void (*ended)(void *arg, int status, const char *why, struct slice body);
    void *arg;
    struct outgoing_post *of; /* NULL: nobody hears of it */
    struct list link;
};

struct watched { /* curl's name for one of its connections */
    struct outgoing *outgoing;
    curl_socket_t fd;
    struct loop_watch *watch;
};

/* ---- its end --------------------------------------------------------------------------------------------- */

static void drop(struct outgoing_sent *post)
{
    curl_multi_remove_handle(post->outgoing->multi, post->easy);
    curl_easy_cleanup(post->easy);
    curl_slist_free_all(post->headers);
    buffer_finish(&post->body);
    buffer_finish(&post->answer);
    list_remove(&post->link);
    post->outgoing->count--;
    free(post);
}

static void tell(struct outgoing_sent *post, CURLcode code, int status)
{
    struct outgoing_post *of = post->of;
    if (!of)
        return;
    of->sent = NULL;
    if (code == CURLE_OK)
        post->ended(post->arg, status, "", buffer_peek(&post->answer));
    else
        post->ended(post->arg, 0, post->error[0] ? post->error : curl_easy_strerror(code), slice_of("", 0));
}

static void on_soon(void *arg)
{
    struct outgoing *outgoing = arg;
    int left;
    for (CURLMsg *told; (told = curl_multi_info_read(outgoing->multi, &left));) {
        struct outgoing_sent *post = NULL;
        long status = 0;
        if (told->msg != CURLMSG_DONE)
            continue;
        const CURLcode code = told->data.result;
        curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, (char **)&post);
        curl_easy_getinfo(told->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        tell(post, code, (int)status);
        drop(post);
    }
}

/* ---- curl on the loop -------------------------------------------------------------------------------------- */

static void act(struct outgoing *outgoing, curl_socket_t fd, int events)
{
    int running;
    curl_multi_socket_action(outgoing->multi, fd, events, &running);
    loop_post(outgoing->loop, &outgoing->soon);
}

static void on_ready(void *arg, uint32_t events)
{
    struct watched *watched = arg;
    act(watched->outgoing, watched->fd,
        (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
            (events & EPOLLERR ? CURL_CSELECT_ERR : 0));
}

static void unwatch(struct watched *watched)
{
    if (!watched)
        return;
    loop_unwatch(watched->outgoing->loop, &watched->watch);
    free(watched);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    struct outgoing *outgoing = arg;
    struct watched *watched = assigned;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        unwatch(watched);
        curl_multi_assign(outgoing->multi, fd, NULL);
        return 0;
    }
    const uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (watched)
        return loop_rewatch(outgoing->loop, watched->watch, events) ? 0 : -1;
    watched = malloc(sizeof(*watched));
    if (!watched)
        return -1;
    *watched = (struct watched){.outgoing = outgoing, .fd = fd};
    watched->watch = loop_watch(outgoing->loop, fd, events, on_ready, watched);
    if (watched->watch && curl_multi_assign(outgoing->multi, fd, watched) == CURLM_OK)
        return 0;
    unwatch(watched);
    return -1;
}

static void on_due(void *arg)
{
    struct outgoing *outgoing = arg;
    outgoing->timer = NULL;
    act(outgoing, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timer(CURLM *multi, long delay_ms, void *arg)
{
    struct outgoing *outgoing = arg;
    (void)multi;
    loop_cancel(outgoing->loop, &outgoing->timer);
    if (delay_ms < 0)
        return 0;
    outgoing->timer = loop_after(outgoing->loop, delay_ms, on_due, outgoing);
    return outgoing->timer ? 0 : -1;
}

/* ---- one of them ---------------------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct outgoing_sent *post = arg;
    if (!post->keeps_answer)
        return size * count;
    const bool has_room = post->answer.len + size * count <= OUTGOING_ANSWER_MAX;
    return has_room && buffer_append(&post->answer, data, size * count) ? size * count : 0;
}

static bool prepare(struct outgoing_sent *post, const struct outgoing_plan *plan)
{
    post->easy = curl_easy_init();
    post->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!post->easy || !post->headers)
        return false;
    curl_easy_setopt(post->easy, CURLOPT_URL, plan->url);
    curl_easy_setopt(post->easy, CURLOPT_PRIVATE, post);
    curl_easy_setopt(post->easy, CURLOPT_ERRORBUFFER, post->error);
    curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, post->headers);
    curl_easy_setopt(post->easy, CURLOPT_POSTFIELDS, (const char *)post->body.data);
    curl_easy_setopt(post->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body.len);
    curl_easy_setopt(post->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(post->easy, CURLOPT_WRITEDATA, post);
    curl_easy_setopt(post->easy, CURLOPT_TIMEOUT_MS, (long)plan->wait_ms);
    curl_easy_setopt(post->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(post->easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(post->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(post->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    return curl_multi_add_handle(post->outgoing->multi, post->easy) == CURLM_OK;
}

void outgoing_forget(struct outgoing_post *post)
{
    struct outgoing_sent *sent = post->sent;
    post->sent = NULL;
    if (sent)
        drop(sent);
}

bool outgoing_post(struct outgoing *outgoing, const struct outgoing_plan *plan, struct buffer *body,
                   struct outgoing_post *post)
{
    struct outgoing_sent *sent = outgoing->count < OUTGOING_MAX && !body->failed ? calloc(1, sizeof(*sent)) : NULL;
    if (!sent)
        return false;
    *sent = (struct outgoing_sent){.outgoing = outgoing,
                                   .body = *body,
                                   .keeps_answer = plan->keeps_answer,
                                   .ended = plan->ended,
                                   .arg = plan->arg,
                                   .of = post};
    list_push_back(&outgoing->posts, &sent->link);
    outgoing->count++;
    if (!prepare(sent, plan)) {
        sent->body = (struct buffer){0}; /* still the caller's */
        drop(sent);
        return false;
    }
    *body = (struct buffer){0};
    if (post->sent)
        post->sent->of = NULL;
    post->sent = sent;
    return true;
}

struct outgoing *outgoing_open(struct loop *loop)
{
    struct outgoing *outgoing = calloc(1, sizeof(*outgoing));
    if (!outgoing)
        return NULL;
    outgoing->loop = loop;
    outgoing->soon = (struct loop_soon){.run = on_soon, .arg = outgoing};
    list_init(&outgoing->posts);
    outgoing->multi = curl_multi_init();
    if (!outgoing->multi) {
        free(outgoing);
        return NULL;
    }
    curl_multi_setopt(outgoing->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(outgoing->multi, CURLMOPT_SOCKETDATA, outgoing);
    curl_multi_setopt(outgoing->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(outgoing->multi, CURLMOPT_TIMERDATA, outgoing);
    return outgoing;
}

void outgoing_close(struct outgoing **handle)
{
    struct outgoing *outgoing = take_ptr(handle);
    struct outgoing_sent *post;
    if (!outgoing)
        return;
    LIST_EACH(post, &outgoing->posts, link) {
        if (post->of)
            post->of->sent = NULL;
        drop(post);
    }
    curl_multi_cleanup(outgoing->multi);
    loop_cancel(outgoing->loop, &outgoing->timer);
    loop_unpost(outgoing->loop, &outgoing->soon);
    free(outgoing);
}
