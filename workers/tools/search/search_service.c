#include "workers/tools/search/search_service.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

enum { URL_MAX = 1024, TITLE_MAX = 200, EXCERPT_MAX = 1000, WORDS_MAX = 200 };

struct service {
    const char *name;
    bool is_post;
    bool wants_key;
};

/*
 * tavily: POST /search {"query", "max_results"}, key as a bearer; docs.tavily.com, Search.
 * searxng: GET /search?q=...&format=json; docs.searxng.org, Search API.
 * Both answer {"results": [{"title", "url", "content"}, ...]} and more that is not read.
 */
static const struct service services[] = {
    {"tavily", true, true},
    {"searxng", false, false},
};

struct search {
    struct http *http;
    const struct service *service;
    char *url;    /* ".../search" */
    char *header; /* "Authorization: Bearer KEY", or NULL */
};

/* ---- settings ---------------------------------------------------------------------------- */

static const struct service *find_service(const char *place, const char **ret_url)
{
    for (size_t i = 0; i < sizeof(services) / sizeof(*services); i++) {
        size_t len = strlen(services[i].name);
        if (strncmp(place, services[i].name, len) == 0 && place[len] == '=') {
            *ret_url = place + len + 1;
            return &services[i];
        }
    }
    return NULL;
}

static bool is_url(const char *url)
{
    const bool has_scheme = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    return has_scheme && strlen(url) <= URL_MAX && !strpbrk(url, " \t\r\n?#@");
}

static bool is_key(const char *key)
{
    for (const char *at = key; *at; at++)
        if (!isgraph((unsigned char)*at))
            return false;
    return *key && strlen(key) <= SEARCH_KEY_MAX;
}

int search_check(const char *place, const char *key, struct fail *fail)
{
    const char *url;
    const struct service *service = find_service(place, &url);
    if (!service)
        return fail_set(fail, -EINVAL, "a search is tavily=URL or searxng=URL");
    if (!is_url(url))
        return fail_set(fail, -EINVAL, "%s=...: not an http or https address without user, query and fragment",
                        service->name);
    if (key && !is_key(key))
        return fail_set(fail, -EINVAL, "the key of the search is not a word of 1 to %d characters", SEARCH_KEY_MAX);
    if (service->wants_key && !key)
        return fail_set(fail, -EINVAL, "%s wants a key", service->name);
    return 0;
}

static char *search_url(const char *url)
{
    static const char path[] = "/search";
    size_t len = strlen(url);
    char *ret = NULL;
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (len >= sizeof(path) - 1 && memcmp(url + len - (sizeof(path) - 1), path, sizeof(path) - 1) == 0)
        len -= sizeof(path) - 1;
    return asprintf(&ret, "%.*s%s", (int)len, url, path) < 0 ? NULL : ret;
}

struct search *search_create(struct http *http, const char *place, const char *key, struct fail *fail)
{
    const char *url = NULL;
    if (search_check(place, key, fail) < 0)
        return NULL;
    struct search *search = calloc(1, sizeof(*search));
    if (search) {
        search->http = http;
        search->service = find_service(place, &url);
        search->url = search_url(url);
    }
    if (search && key && asprintf(&search->header, "Authorization: Bearer %s", key) < 0)
        search->header = NULL;
    if (search && search->url && (search->header || !key))
        return search;
    search_destroy(&search);
    fail_memory(fail);
    return NULL;
}

void search_destroy(struct search **search)
{
    struct search *old = take_ptr(search);
    if (!old)
        return;
    if (old->header)
        explicit_bzero(old->header, strlen(old->header));
    free(old->header);
    free(old->url);
    free(old);
}

/* ---- asking ------------------------------------------------------------------------------- */

static void put_percent(struct buffer *out, const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text))
            buffer_append(out, text, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*text);
}

static int send_query(struct search *search, const char *query, size_t count, struct http_reply *reply,
                      struct fail *fail)
{
    AUTO_BUFFER url = {0};
    json_t *json = NULL;
    buffer_append_str(&url, search->url);
    if (search->service->is_post)
        json = json_pack("{s:s, s:I}", "query", query, "max_results", (json_int_t)count);
    else
        buffer_append_str(&url, "?format=json&q=");
    if (!search->service->is_post)
        put_percent(&url, query);
    AUTO_FREE char *address = buffer_take_str(&url);
    AUTO_FREE char *body = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!address || (search->service->is_post && !body))
        return fail_memory(fail);
    return http_request_with(search->http, address, search->header, body, SEARCH_BODY_MAX, reply, fail);
}

/* In words that do not name the address: it is the model that reads them. */
static int say_error(int code, struct fail *fail)
{
    switch (code) {
    case -ECANCELED:
    case -ENOMEM: return code;
    case -ETIMEDOUT: return fail_set(fail, code, "the search did not answer in time");
    case -ECONNREFUSED: return fail_set(fail, code, "the search cannot be reached");
    case -EMSGSIZE: return fail_set(fail, code, "the search answered with too much");
    default: return fail_set(fail, -EIO, "the search broke off");
    }
}

/* ---- answers ------------------------------------------------------------------------------ */

/* One line of at most `max` bytes, without control characters. */
static void put_line(struct buffer *out, const char *text, size_t max)
{
    struct slice part = text_cut(text, max);
    bool is_blank = true;
    for (size_t i = 0; i < part.len; i++) {
        const bool blank = part.data[i] <= ' ' || part.data[i] == 0x7f;
        if (!blank)
            buffer_append(out, &part.data[i], 1);
        else if (!is_blank)
            buffer_append_str(out, " ");
        is_blank = blank;
    }
    buffer_append_str(out, text[part.len] ? "...\n" : "\n");
}

static size_t put_results(const json_t *results, size_t count, struct buffer *out)
{
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(results) && found < count; i++) {
        const json_t *result = json_array_get(results, i);
        const char *title = json_string_value(json_object_get(result, "title"));
        const char *url = json_string_value(json_object_get(result, "url"));
        const char *content = json_string_value(json_object_get(result, "content"));
        if (!url || !*url)
            continue;
        buffer_printf(out, "%s%zu. ", found ? "\n" : "", found + 1);
        put_line(out, title && *title ? title : "(no title)", TITLE_MAX);
        put_line(out, url, URL_MAX);
        if (content && *content)
            put_line(out, content, EXCERPT_MAX);
        found++;
    }
    return found;
}

static json_t *read_body(const struct http_reply *reply)
{
    struct slice body = buffer_peek(&reply->body);
    return text_is_shallow(body, TEXT_LEVELS_MAX)
               ? json_loadb(body.data ? (const char *)body.data : "", body.len, 0, NULL)
               : NULL;
}

static int refuse_status(const struct http_reply *reply, struct fail *fail)
{
    AUTO_BUFFER words = {0};
    if (reply->status == 401 || reply->status == 403)
        return fail_set(fail, -EACCES, "the search refuses this worker (HTTP %ld)", reply->status);
    if (reply->status == 429 || reply->status == 432 || reply->status == 433)
        return fail_set(fail, -EAGAIN, "the search takes no more queries for now (HTTP %ld)", reply->status);
    json_t *json = reply->status == 400 ? read_body(reply) : NULL;
    const char *why = json_string_value(json_object_get(json_object_get(json, "detail"), "error"));
    if (why)
        put_line(&words, why, WORDS_MAX);
    AUTO_FREE char *text = buffer_take_str(&words);
    json_decref(json);
    return fail_set(fail, -EIO, "the search failed (HTTP %ld)%s%.*s", reply->status, why ? ": " : "",
                    text ? (int)strcspn(text, "\n") : 0, text ? text : "");
}

static int read_reply(const struct http_reply *reply, size_t count, struct buffer *out, size_t *found,
                      struct fail *fail)
{
    if (reply->status != 200)
        return refuse_status(reply, fail);
    json_t *json = read_body(reply);
    const json_t *results = json_object_get(json, "results");
    const bool good = json_is_array(results);
    if (good)
        *found = put_results(results, count, out);
    json_decref(json);
    if (!good)
        return fail_set(fail, -EPROTO, "the search gave no answer that can be read");
    return out->failed ? fail_memory(fail) : 0;
}

int search_ask(struct search *search, const char *query, size_t count, struct buffer *out, size_t *found,
               struct fail *fail)
{
    struct http_reply reply = {0};
    int code = send_query(search, query, count, &reply, fail);
    if (code < 0)
        return say_error(code, fail);
    code = read_reply(&reply, count, out, found, fail);
    buffer_finish(&reply.body);
    return code;
}
