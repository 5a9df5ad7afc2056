#include "client/cli/session/session_post.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"

enum { CONNECT_S = 10, QUIET_S = 10, ALL_S = 60, ANSWER_MAX = 65536 };

struct post {
    CURL *easy;
    struct curl_slist *headers;
    struct buffer *answer;
    char words[CURL_ERROR_SIZE];
};

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    const struct post *post = arg;
    const size_t len = size * count;
    return post->answer->len + len <= ANSWER_MAX && buffer_append(post->answer, data, len) ? len : 0;
}

/* curl's own program knows the variable, its library does not. */
static const char *authorities(const char *cacert)
{
    const char *set = getenv("SSL_CERT_FILE");
    return cacert ? cacert : set && *set ? set : NULL;
}

static bool set_up(struct post *post, const char *url, const char *json, const char *cacert)
{
    CURL *easy = post->easy;
    const char *bundle = authorities(cacert);
    post->headers = curl_slist_append(NULL, "Content-Type: application/json");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, json);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->words);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)QUIET_S);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)ALL_S);
    return post->headers && curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           (!bundle || curl_easy_setopt(easy, CURLOPT_CAINFO, bundle) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK;
}

static int perform(struct post *post, const struct url *to, struct fail *fail)
{
    long status = 0;
    const CURLcode code = curl_easy_perform(post->easy);
    if (code == CURLE_OUT_OF_MEMORY || post->answer->failed)
        return fail_memory(fail);
    if (code == CURLE_WRITE_ERROR)
        return fail_set(fail, -EPROTO, "%s: the answer is longer than %d bytes", to->host, ANSWER_MAX);
    if (code != CURLE_OK)
        return fail_set(fail, -EIO, "%s: %s", to->host, post->words[0] ? post->words : curl_easy_strerror(code));
    curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

int session_post(const struct session_posted *posted, struct buffer *answer, struct fail *fail)
{
    struct url to;
    char url[URL_MAX + 64];
    struct post post = {.answer = answer};
    if (url_parse(slice_from_str(posted->url), &to, fail) < 0)
        return fail->code;
    snprintf(url, sizeof(url), "%s%s", to.base, posted->path);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail_set(fail, -EIO, "libcurl does not start");
    post.easy = curl_easy_init();
    const int status = post.easy && set_up(&post, url, posted->json, posted->cacert) ? perform(&post, &to, fail)
                                                                                     : fail_memory(fail);
    curl_slist_free_all(post.headers);
    curl_easy_cleanup(post.easy);
    curl_global_cleanup();
    return status;
}
