#include "client/trace/otlp_post.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/otlp_exporter.h"
#include "common/base/cleanup.h"
#include "common/cmdline/cmdline.h"

struct otlp_post {
    CURL *curl;
    struct curl_slist *headers;
    const atomic_bool *ends;
};

/* The answer's body says nothing that is needed. */
static size_t ignore(char *data, size_t size, size_t count, void *arg)
{
    (void)data, (void)arg;
    return size * count;
}

static int broken_off(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(((const struct otlp_post *)arg)->ends);
}

/* ---- making ------------------------------------------------------------------------------------- */

static bool add_header(struct otlp_post *post, const char *line)
{
    struct curl_slist *headers = curl_slist_append(post->headers, line);
    if (headers)
        post->headers = headers;
    return headers != NULL;
}

/* "name=value,name=value", as OpenTelemetry's programs take it. */
static bool add_own_headers(struct otlp_post *post, const char *text)
{
    while (text && *text) {
        const size_t len = strcspn(text, ","), name = strcspn(text, "=,");
        AUTO_BUFFER line = {0};
        if (name < len) {
            buffer_printf(&line, "%.*s: %.*s", (int)name, text, (int)(len - name - 1), text + name + 1);
            AUTO_FREE char *header = buffer_take_str(&line);
            if (!header || strpbrk(header, "\r\n") || !add_header(post, header))
                return false;
        }
        text += len + (text[len] == ',');
    }
    return true;
}

/* The path that collectors take spans at, where none is given. */
static char *whole_url(const char *url)
{
    AUTO_BUFFER whole = {0};
    const char *rest = strstr(url, "://");
    const char *path = rest ? strchr(rest + 3, '/') : NULL;
    const size_t len = path && path[1] == '\0' ? (size_t)(path - url) : strlen(url);
    buffer_append(&whole, url, len);
    if (!path || !path[1])
        buffer_append_str(&whole, "/v1/traces");
    return buffer_take_str(&whole);
}

static bool is_http(const char *url)
{
    return (strncmp(url, "http://", 7) == 0 && url[7]) || (strncmp(url, "https://", 8) == 0 && url[8]);
}

static bool set_options(struct otlp_post *post, const char *url)
{
    AUTO_FREE char *whole = whole_url(url);
    CURL *curl = post->curl;
    return whole && add_header(post, "Content-Type: application/json") && add_header(post, "Expect:") &&
           add_own_headers(post, getenv("OTEL_EXPORTER_OTLP_HEADERS")) &&
           curl_easy_setopt(curl, CURLOPT_URL, whole) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, post->headers) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)OTLP_TIMEOUT_MS) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, broken_off) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_XFERINFODATA, post) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK;
}

struct otlp_post *otlp_post_create(const char *url, const atomic_bool *ends, struct fail *fail)
{
    if (!is_http(url)) {
        fail_set(fail, -EINVAL, "a collector's URL is http://HOST:PORT or https://HOST:PORT, not '%s'", url);
        return NULL;
    }
    struct otlp_post *post = calloc(1, sizeof(*post));
    if (post && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        post->curl = curl_easy_init();
    if (post)
        post->ends = ends;
    if (!post || !post->curl || !set_options(post, url)) {
        otlp_post_destroy(&post);
        fail_set(fail, -ENOMEM, "libcurl takes no such request: out of memory, or OTEL_EXPORTER_OTLP_HEADERS is wrong");
    }
    return post;
}

void otlp_post_destroy(struct otlp_post **post)
{
    if (!*post)
        return;
    curl_easy_cleanup((*post)->curl);
    curl_slist_free_all((*post)->headers);
    free(*post);
    *post = NULL;
}

/* ---- sending ------------------------------------------------------------------------------------ */

static bool is_worth_another(long status) { return status == 429 || status == 502 || status == 503 || status == 504; }

enum otlp_result otlp_post_send(struct otlp_post *post, struct slice body, int64_t *ret_retry_ms, struct fail *fail)
{
    long status = 0;
    curl_off_t retry_s = 0;
    *ret_retry_ms = -1;
    curl_easy_setopt(post->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
    curl_easy_setopt(post->curl, CURLOPT_POSTFIELDS, (const char *)body.data);
    const CURLcode code = curl_easy_perform(post->curl);
    if (code != CURLE_OK) {
        fail_set(fail, -EIO, "%s", curl_easy_strerror(code));
        return OTLP_FAILED;
    }
    curl_easy_getinfo(post->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300)
        return OTLP_SENT;
    fail_set(fail, -EIO, "HTTP %ld", status);
    if (!is_worth_another(status))
        return OTLP_FAILED;
    if (curl_easy_getinfo(post->curl, CURLINFO_RETRY_AFTER, &retry_s) == CURLE_OK && retry_s > 0)
        *ret_retry_ms = retry_s > OTLP_RETRY_LAST_MS / 1000 ? OTLP_RETRY_LAST_MS : (int64_t)retry_s * 1000;
    return OTLP_AGAIN;
}
