/* http_login.c - the credentials that servers are called with, by the URL that what is called begins with. */
#include "workers/runtime/http_login.h"

#include <stdlib.h>
#include <string.h>

#include "workers/runtime/http_inside.h"

struct http_login {
    struct http_login *next;
    size_t base_len;
    char *base, *user, *password; /* the last two as they are sent */
};

static void login_free(struct http_login **at)
{
    struct http_login *old = *at;
    *at = old->next;
    free(old->base);
    curl_free(old->user);
    curl_free(old->password);
    free(old);
}

void http_forget_logins(struct http *http)
{
    while (http->logins)
        login_free(&http->logins);
}

/* Before the first ':', and behind it. */
static bool split(struct http_login *login, const char *credentials)
{
    const char *colon = strchr(credentials, ':');
    size_t len = colon ? (size_t)(colon - credentials) : strlen(credentials);
    login->user = len ? curl_easy_unescape(NULL, credentials, (int)len, NULL) : curl_easy_unescape(NULL, "", 0, NULL);
    login->password = curl_easy_unescape(NULL, colon ? colon + 1 : "", 0, NULL);
    return login->user && login->password;
}

static struct http_login **find(struct http *http, const char *base)
{
    struct http_login **at = &http->logins;
    while (*at && strcmp((*at)->base, base) != 0)
        at = &(*at)->next;
    return at;
}

bool http_set_credentials(struct http *http, const char *base, const char *credentials)
{
    struct http_login **known = find(http, base);
    if (*known)
        login_free(known);
    if (!credentials[0])
        return true;
    struct http_login *login = calloc(1, sizeof(*login));
    if (!login)
        return false;
    *login = (struct http_login){.next = http->logins, .base_len = strlen(base), .base = strdup(base)};
    http->logins = login;
    if (login->base && split(login, credentials))
        return true;
    login_free(&http->logins);
    return false;
}

static bool is_below(const struct http_login *login, const char *url)
{
    return strncmp(url, login->base, login->base_len) == 0 &&
           (url[login->base_len] == '/' || url[login->base_len] == '\0');
}

bool http_log_in(const struct http *http, CURL *easy, const char *url)
{
    const struct http_login *best = NULL;
    for (const struct http_login *login = http->logins; login; login = login->next)
        if (is_below(login, url) && (!best || login->base_len > best->base_len))
            best = login;
    return !best || (curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_USERNAME, best->user) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_PASSWORD, best->password) == CURLE_OK);
}
