#include "workers/runtime/http_inside.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/http_login.h"
#include "workers/runtime/http_loop.h"
#include "common/loop/loop_now.h"

enum {
    IDLE_S = 4, /* engines close a kept connection after 5 s */
    KEEPALIVE_S = 30,
    READ_BYTES = 4096 /* at once; curl keeps as much for each request in flight, and would keep 16 KiB */
};

/* Its connection is in a cache of its own. */
struct http_line {
    CURLSH *share;
    uint64_t connects, requests;
};

/* What is asked for. */
struct asked {
    const char *url, *header, *body;  /* header, body: NULL: none */
    struct http_line *line;           /* NULL: any connection */
    const struct http_hearer *hearer; /* NULL: the reply has the body */
};

/* One request in flight; on its fiber's stack, or in the list of those that no fiber waits for. */
struct request {
    struct request *next;   /* of the loose */
    struct fiber *fiber;    /* NULL: loose */
    http_answered answered; /* loose: who is told; NULL: forgotten */
    void *arg;
    CURL *easy;
    struct curl_slist *headers; /* its own; NULL: those of all */
    struct buffer body;
    size_t body_max, body_len; /* that came */
    const struct http_hearer *hearer;
    int64_t heard_ms; /* the last byte of the answer; 0: none yet */
    bool done, too_large;
    CURLcode code;
    char words[CURL_ERROR_SIZE];
};

static void loose_end(struct http *http, struct request *request);

/* Whoever waits for a request that is done hears of it. */
static void wake_done(struct http *http)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct request *request = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
        request->code = message->data.result;
        request->done = true;
        if (request->fiber)
            fiber_wake(request->fiber);
        else
            loose_end(http, request);
    }
}

/* ---- life ------------------------------------------------------------------------------- */

static bool add_header(struct http *http, const char *line)
{
    struct curl_slist *headers = curl_slist_append(http->headers, line);
    if (headers)
        http->headers = headers;
    return headers != NULL;
}

struct http *http_create(struct loop *loop, const struct http_limits *limits, struct fail *fail)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        fail_set(fail, -EIO, "libcurl does not start");
        return NULL;
    }
    struct http *http = calloc(1, sizeof(*http));
    if (http)
        *http = (struct http){.loop = loop, .limits = *limits, .multi = curl_multi_init()};
    if (!http || !http->multi || !add_header(http, "Content-Type: application/json") || !add_header(http, "Expect:")) {
        http_destroy(&http);
        fail_memory(fail);
        return NULL;
    }
    http_watch_curl(http, wake_done);
    curl_multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, limits->connections_max);
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, limits->connections_max);
    return http;
}

void http_destroy(struct http **http)
{
    struct http *old = take_ptr(http);
    if (!old)
        return;
    while (old->loose)
        loose_end(old, old->loose);
    curl_multi_cleanup(old->multi);
    loop_cancel(old->loop, &old->timer);
    http_forget_logins(old);
    curl_slist_free_all(old->headers);
    free(old);
    curl_global_cleanup();
}

struct loop *http_loop(const struct http *http) { return http->loop; }

/* ---- one request ------------------------------------------------------------------------ */

/* The fiber waits for the first byte as long as it may; from then on for the next one only. */
static void note_byte(struct request *request)
{
    if (request->heard_ms == 0)
        fiber_wake(request->fiber);
    request->heard_ms = loop_now_ms();
}

static size_t on_header(char *bytes, size_t one, size_t len, void *arg)
{
    (void)bytes, (void)one;
    note_byte(arg);
    return len;
}

static bool take_body(struct request *request, struct slice bytes)
{
    long status = 0;
    if (request->hearer)
        curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    return status == 200 ? request->hearer->hear(request->hearer->arg, bytes)
                         : buffer_append(&request->body, bytes.data, bytes.len);
}

static size_t on_body(char *bytes, size_t one, size_t len, void *arg)
{
    (void)one;
    struct request *request = arg;
    note_byte(request);
    request->too_large = len > request->body_max - request->body_len;
    if (request->too_large)
        return 0;
    request->body_len += len;
    return take_body(request, slice_of(bytes, len)) ? len : 0;
}

/* Those of all and one more. */
static bool add_headers(struct request *request, const struct http *http, const char *header)
{
    const struct curl_slist *at = http->headers;
    for (; header; header = at ? at->data : NULL, at = at ? at->next : NULL) {
        struct curl_slist *more = curl_slist_append(request->headers, header);
        if (!more)
            return false;
        request->headers = more;
    }
    return true;
}

static bool request_init(struct request *request, struct http *http, const struct asked *asked)
{
    const char *header = asked->header, *body = asked->body;
    CURL *easy = request->easy = curl_easy_init();
    if (!easy || (header && !add_headers(request, http, header)))
        return false;
    if (header)
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
    if (body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
        if (!header)
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
    }
    if (asked->line && curl_easy_setopt(easy, CURLOPT_SHARE, asked->line->share) != CURLE_OK)
        return false;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->words);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, request);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* never wait for a resolver's thread */
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_S);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)http->limits.connect_ms);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_URL, asked->url) == CURLE_OK && http_log_in(http, easy, asked->url);
}

static const struct {
    CURLcode code;
    int error;
} errors[] = {
    {CURLE_COULDNT_CONNECT, -ECONNREFUSED},
    {CURLE_COULDNT_RESOLVE_HOST, -ECONNREFUSED},
    {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT},
    {CURLE_OUT_OF_MEMORY, -ENOMEM},
};

static int request_result(const struct request *request, struct fail *fail)
{
    if (request->code == CURLE_OK)
        return 0;
    if (request->too_large)
        return fail_set(fail, -EMSGSIZE, "the answer is longer than %zu bytes", request->body_max);
    if (request->body.failed)
        return fail_memory(fail);
    int error = -EIO;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
        if (errors[i].code == request->code)
            error = errors[i].error;
    return fail_set(fail, error, "%s", request->words[0] ? request->words : curl_easy_strerror(request->code));
}

/* Until an answer that has begun counts as broken off; -1: it has not begun, or may fall silent. */
static int64_t silence_left_ms(const struct request *request, const struct http_limits *limits)
{
    if (request->heard_ms == 0 || request->hearer)
        return -1;
    int64_t left_ms = request->heard_ms + limits->silence_ms - loop_now_ms();
    return left_ms > 0 ? left_ms : 0;
}

static int request_await(struct request *request, const struct http_limits *limits, struct fail *fail)
{
    while (!request->done) {
        int error = await_wake(silence_left_ms(request, limits));
        if (error == 0 || request->done)
            continue;
        if (error == -ECANCELED)
            return fail_set(fail, error, "cancelled");
        if (fiber_is_late())
            return fail_set(fail, error, "no answer before the deadline");
        if (silence_left_ms(request, limits) == 0)
            return fail_set(fail, -EIO, "the answer broke off: no byte of it for %.1f s",
                            (double)limits->silence_ms / 1000);
    }
    return request_result(request, fail);
}

static void read_reply(CURL *easy, struct http_reply *reply)
{
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply->status);
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    reply->retry_after_s = retry_after_s;
}

static void note_line(struct http_line *line, CURL *easy)
{
    long connects = 0;
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    line->connects += (uint64_t)connects;
    line->requests++;
}

static int request_run(struct http *http, const struct asked *asked, size_t body_max, struct http_reply *reply,
                       struct fail *fail)
{
    struct request request = {.fiber = fiber_current(), .body_max = body_max, .hearer = asked->hearer};
    *reply = (struct http_reply){0};
    int error = -ENOMEM;
    if (!request_init(&request, http, asked) || curl_multi_add_handle(http->multi, request.easy) != CURLM_OK)
        fail_set(fail, error, "out of memory");
    else
        error = request_await(&request, &http->limits, fail);
    if (error == 0)
        read_reply(request.easy, reply);
    if (request.easy && asked->line)
        note_line(asked->line, request.easy);
    if (request.easy) {
        curl_multi_remove_handle(http->multi, request.easy); /* unfinished: its connection closes */
        curl_easy_cleanup(request.easy);
    }
    curl_slist_free_all(request.headers);
    if (error < 0) {
        buffer_finish(&request.body);
        return fail_wrap(fail, "%s", asked->url), error;
    }
    reply->body = request.body;
    return 0;
}

int http_request(struct http *http, const char *url, const char *body, size_t body_max, struct http_reply *reply,
                 struct fail *fail)
{
    const struct asked asked = {.url = url, .body = body};
    return request_run(http, &asked, body_max, reply, fail);
}

int http_request_with(struct http *http, const char *url, const char *header, const char *body, size_t body_max,
                      struct http_reply *reply, struct fail *fail)
{
    const struct asked asked = {.url = url, .header = header, .body = body};
    return request_run(http, &asked, body_max, reply, fail);
}

int http_request_on(struct http *http, struct http_line *line, const char *url, const char *body, size_t body_max,
                    struct http_reply *reply, struct fail *fail)
{
    const struct asked asked = {.url = url, .body = body, .line = line};
    return request_run(http, &asked, body_max, reply, fail);
}

int http_request_heard(struct http *http, struct http_line *line, const char *url, const char *body, size_t body_max,
                       const struct http_hearer *hearer, struct http_reply *reply, struct fail *fail)
{
    const struct asked asked = {.url = url, .body = body, .line = line, .hearer = hearer};
    return request_run(http, &asked, body_max, reply, fail);
}

/* ---- lines ------------------------------------------------------------------------------ */

struct http_line *http_line_open(void)
{
    struct http_line *line = calloc(1, sizeof(*line));
    if (!line)
        return NULL;
    line->share = curl_share_init();
    if (!line->share || curl_share_setopt(line->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK)
        http_line_close(&line);
    return line;
}

void http_line_close(struct http_line **line)
{
    struct http_line *old = take_ptr(line);
    if (!old)
        return;
    if (old->share)
        curl_share_cleanup(old->share);
    free(old);
}

uint64_t http_line_connects(const struct http_line *line) { return line->connects; }

uint64_t http_line_requests(const struct http_line *line) { return line->requests; }

/* ---- what no fiber waits for -------------------------------------------------------------- */

static void tell(struct request *request)
{
    struct fail why = {0};
    const int error = request_result(request, &why);
    struct http_reply reply = {.body = request->body};
    request->body = (struct buffer){0};
    const char *url = "";
    curl_easy_getinfo(request->easy, CURLINFO_EFFECTIVE_URL, &url);
    read_reply(request->easy, &reply);
    if (error < 0)
        fail_wrap(&why, "%s", url);
    request->answered(request->arg, error < 0 ? NULL : &reply, error < 0 ? &why : NULL);
    buffer_finish(&reply.body);
}

static void loose_end(struct http *http, struct request *request)
{
    struct request **at = &http->loose;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    http->forgotten_count -= !request->answered;
    if (request->done && request->answered)
        tell(request);
    if (request->easy) {
        curl_multi_remove_handle(http->multi, request->easy);
        curl_easy_cleanup(request->easy);
    }
    buffer_finish(&request->body);
    free(request);
}

/* In the list; NULL when out of memory. */
static struct request *loose_start(struct http *http, size_t body_max, http_answered answered, void *arg)
{
    struct request *request = calloc(1, sizeof(*request));
    if (!request)
        return NULL;
    *request = (struct request){.next = http->loose, .body_max = body_max, .answered = answered, .arg = arg};
    http->loose = request;
    http->forgotten_count += !answered;
    return request;
}

/* As it is set up now; false, and it is gone, when out of memory. */
static bool loose_send(struct http *http, struct request *request, int64_t timeout_ms)
{
    if (curl_easy_setopt(request->easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
        curl_multi_add_handle(http->multi, request->easy) == CURLM_OK)
        return true;
    loose_end(http, request);
    return false;
}

void http_forget(struct http *http, const char *url, const char *body)
{
    struct request *request = http->forgotten_count < HTTP_FORGET_MAX ? loose_start(http, 1 << 16, NULL, NULL) : NULL;
    if (!request)
        return;
    const struct asked asked = {.url = url, .body = body};
    if (request_init(request, http, &asked) &&
        curl_easy_setopt(request->easy, CURLOPT_COPYPOSTFIELDS, body) == CURLE_OK)
        loose_send(http, request, HTTP_FORGET_MS);
    else
        loose_end(http, request);
}

bool http_get_later(struct http *http, const char *url, size_t body_max, int64_t timeout_ms, http_answered answered,
                    void *arg)
{
    struct request *request = loose_start(http, body_max, answered, arg);
    if (!request)
        return false;
    const struct asked asked = {.url = url};
    if (request_init(request, http, &asked))
        return loose_send(http, request, timeout_ms);
    loose_end(http, request);
    return false;
}
