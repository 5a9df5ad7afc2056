#include "client/gateway/polar/nodes.h"

#include <stdio.h>
#include <time.h>

#include "common/base/cleanup.h"

void nodes_health(struct http_call *call)
{
    struct buffer body = {0};
    buffer_append_str(&body, "{\"status\":\"ok\",\"nodes\":1}");
    http_call_answer_json(call, 200, &body);
}

static uint64_t number(const json_t *stages, const char *stage, const char *name)
{
    const json_int_t value = json_integer_value(json_object_get(json_object_get(stages, stage), name));
    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t slots(const json_t *stages, const char *stage)
{
    const uint64_t count = number(stages, stage, "slots");
    return count > 0 ? count : 1; /* its readers want one */
}

static void append_node(const struct http_call *call, const json_t *stages, struct buffer *out)
{
    const char *host = exchange_header(call->exchange, "Host");
    const time_t now = time(NULL);
    struct tm parts;
    char heard[32] = "1970-01-01T00:00:00Z";
    AUTO_BUFFER url = {0};
    if (gmtime_r(&now, &parts))
        strftime(heard, sizeof(heard), "%Y-%m-%dT%H:%M:%SZ", &parts);
    buffer_printf(&url, "%s://%s", call->gateway->settings->certificate_path ? "https" : "http",
                  host ? host : "localhost");
    buffer_append_str(out, "[{\"node_id\":\"sluice\",\"gateway_url\":");
    json_text_append(out, buffer_peek(&url));
    json_text_printf(out,
                     ",\"max_init_workers\":%u,\"max_run_workers\":%u,\"max_postrun_workers\":%u,\"metrics\":{"
                     "\"init_queue_depth\":%u,\"init_inflight\":%u,\"ready_depth\":%u,\"run_inflight\":%u,"
                     "\"postrun_queue_depth\":%u,\"postrun_inflight\":%u}",
                     slots(stages, "init"), slots(stages, "run"), slots(stages, "eval"),
                     number(stages, "init", "queued"), number(stages, "init", "leased"),
                     number(stages, "run", "queued"), number(stages, "run", "leased"), number(stages, "eval", "queued"),
                     number(stages, "eval", "leased"));
    json_text_printf(out,
                     ",\"dispatch_reservations\":0,\"healthy\":%j,\"draining\":false,\"heartbeat_interval_seconds\":1,"
                     "\"last_heartbeat\":%s}]",
                     number(stages, "run", "workers") > 0 ? "true" : "false", heard);
}

static void on_status(struct http_call *call, const struct answer *answer)
{
    struct buffer body = {0};
    json_t *status = json_text_read(answer->as.status.json);
    append_node(call, json_object_get(status, "stages"), &body);
    json_decref(status);
    http_call_answer_json(call, 200, &body);
}

void nodes_list(struct http_call *call)
{
    struct msg_status_get in = {0};
    http_call_ask(call, MSG_status_get, &in, on_status);
}
