#include "client/gateway/gym/head_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"

#define AGENT "sluice"

enum { PORT_HTTP = 80, PORT_HTTPS = 443 };

struct place {
    char host[URL_HOST_MAX + 3]; /* an IPv6 address in its brackets, as it goes into a URL */
    uint64_t port;
};

static struct place place_of(const struct http_call *call)
{
    const char *said = exchange_header(call->exchange, "Host");
    struct place place = {"127.0.0.1", call->gateway->settings->certificate_path ? PORT_HTTPS : PORT_HTTP};
    if (!said || !*said)
        return place;
    const char *after = *said == '[' ? strchr(said, ']') : said, *colon = after ? strchr(after, ':') : NULL;
    snprintf(place.host, sizeof(place.host), "%.*s", (int)(colon ? colon - said : (long)strlen(said)), said);
    if (colon && colon[1])
        place.port = strtoull(colon + 1, NULL, 10);
    return place;
}

void head_server_config(struct http_call *call)
{
    const struct place place = place_of(call);
    struct buffer body = {0};
    json_text_printf(&body,
                     "{\"head_server\":{\"host\":%s,\"port\":%u},\"" AGENT "\":{\"responses_api_agents\":{\"" AGENT
                     "\":{\"host\":%s,\"port\":%u}}}}",
                     place.host, place.port, place.host, place.port);
    http_call_answer_json(call, 200, &body);
}

void head_server_instances(struct http_call *call)
{
    const struct place place = place_of(call);
    const char *scheme = call->gateway->settings->certificate_path ? "https" : "http";
    struct buffer body = {0};
    AUTO_BUFFER url = {0};
    buffer_printf(&url, "%s://%s:%llu", scheme, place.host, (unsigned long long)place.port);
    json_text_printf(&body,
                     "[{\"process_name\":\"" AGENT "\",\"server_type\":\"responses_api_agents\",\"name\":\"" AGENT
                     "\",\"host\":%s,\"port\":%u,\"url\":",
                     place.host, place.port);
    json_text_append(&body, buffer_peek(&url));
    buffer_append_str(&body, "}]");
    http_call_answer_json(call, 200, &body);
}
