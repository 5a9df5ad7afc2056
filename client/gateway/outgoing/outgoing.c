#include "client/gateway/outgoing/outgoing.h"

#include <stdlib.h>

#include "client/gateway/door/engines.h"
#include "client/gateway/outgoing/transfers.h"
#include "common/base/cleanup.h"
#include "common/containers/list.h"

struct outgoing {
    struct transfers *transfers;
    struct list posts;
    size_t count;
};

struct outgoing_sent {
    struct outgoing *outgoing;
    struct transfer transfer;
    struct curl_slist *headers;
    struct buffer body;
    char error[CURL_ERROR_SIZE];
    struct buffer answer;
    bool keeps_answer;
    const char *const *rules;
    void (*ended)(void *arg, int status, const char *why, struct slice body);
    void *arg;
    struct outgoing_post *of; /* NULL: nobody hears of it */
    struct list link;
};

/* ---- its end --------------------------------------------------------------------------------------------- */

static void drop(struct outgoing_sent *post)
{
    transfers_give_up(post->outgoing->transfers, &post->transfer);
    curl_easy_cleanup(post->transfer.easy);
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

static void on_ended(void *arg, CURLcode code)
{
    struct outgoing_sent *post = arg;
    long status = 0;
    curl_easy_getinfo(post->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    tell(post, code, (int)status);
    drop(post);
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

static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    const struct outgoing_sent *post = arg;
    char *url = NULL;
    (void)purpose;
    curl_easy_getinfo(post->transfer.easy, CURLINFO_EFFECTIVE_URL, &url);
    if (post->rules && (!url || !address_may_be_reached(post->rules, url, &address->addr)))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool prepare(struct outgoing_sent *post, const struct outgoing_plan *plan)
{
    CURL *easy = transfers_handle(plan->url);
    post->transfer = (struct transfer){.easy = easy, .ended = on_ended, .arg = post};
    post->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!easy || !post->headers)
        return false;
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, post);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->error);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, (const char *)post->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)post->body.len);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)plan->wait_ms);
    return transfers_begin(post->outgoing->transfers, &post->transfer);
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
                                   .rules = plan->rules,
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
    list_init(&outgoing->posts);
    outgoing->transfers = transfers_open(loop);
    if (!outgoing->transfers)
        outgoing_close(&outgoing);
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
    transfers_close(&outgoing->transfers);
    free(outgoing);
}
