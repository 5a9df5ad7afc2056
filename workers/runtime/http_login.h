/* http_login.h - the credentials that servers are called with. */
#ifndef SLUICE_WORKERS_RUNTIME_HTTP_LOGIN_H
#define SLUICE_WORKERS_RUNTIME_HTTP_LOGIN_H

#include <curl/curl.h>

#include "workers/runtime/http.h"

/*
 * Requests to `base`, and to paths behind it, are made with these credentials from now on: user[:password],
 * percent-encoded (common/base/url.h). "": with none. They are in no error. False when out of memory.
 */
bool http_set_credentials(struct http *http, const char *base, const char *credentials);

/* The request goes to this URL, with the credentials that were set for it. */
bool http_log_in(const struct http *http, CURL *easy, const char *url);
void http_forget_logins(struct http *http);

#endif
