#include "client/gateway/sandboxfusion/sandboxfusion.h"

#include <stdlib.h>

#include "client/gateway/bodies/models.h"
#include "client/gateway/runs/runs.h"
#include "client/gateway/sandboxfusion/code_answer.h"
#include "client/gateway/sandboxfusion/code_task.h"
#include "client/gateway/sandboxfusion/languages.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"

struct code_run {
    struct http_call *call;
    struct run_wait wait;
};

/* ---- its end ---------------------------------------------------------------------------------------- */

/* Nobody can ask for it again: what its caller does not hear of is over. */
static void end(struct http_call *call)
{
    struct code_run *run = call->state;
    if (exchange_is_answered(call->exchange))
        run_had(&run->wait);
    run_leave(&run->wait, true);
    free(run);
}

static void answer(struct http_call *call, struct buffer *body) { http_call_answer_json(call, 200, body); }

static void on_ended(void *arg, const struct msg_trajectory *trajectory)
{
    struct code_run *run = arg;
    struct buffer body = {0};
    struct refusal no;
    if (!code_answer_write(trajectory, &body, &no))
        code_answer_write_trouble(no.text, &body);
    answer(run->call, &body);
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct code_run *run = arg;
    if (!refused)
        http_call_refuse_silence(run->call);
    else
        http_call_refuse_as(run->call, refused);
}

/* ---- its beginning -------------------------------------------------------------------------------------- */

static void begin(struct http_call *call, const json_t *body)
{
    struct code_run *run = call->state = calloc(1, sizeof(*run));
    AUTO_BUFFER task = {0};
    if (!run || !code_task_write(body, call->gateway->settings->run_code_image, &task)) {
        free(run);
        http_call_refuse_memory(call);
        return;
    }
    run->call = call;
    run->wait.ended = on_ended;
    run->wait.failed = on_failed;
    run->wait.arg = run;
    call->end = end;
    const struct run_plan plan = {.identity = call->identity, .prefix = "code", .task = buffer_peek(&task)};
    if (!run_begin(call->gateway->runs, &plan, &run->wait) && !exchange_is_answered(call->exchange))
        http_call_refuse_memory(call);
}

static void refuse_language(struct http_call *call, const char *name)
{
    struct buffer body = {0}, words = {0}, list = {0};
    languages_list(&list);
    buffer_printf(&words, "Input should be %.*s", SLICE_ARG(buffer_peek(&list)));
    buffer_append_str(&body, "{\"detail\":[{\"type\":\"literal_error\",\"loc\":[\"body\",\"language\"],\"msg\":");
    json_text_append(&body, buffer_peek(&words));
    json_text_printf(&body, ",\"input\":%s}]}", strlen(name) < 256 ? name : "");
    buffer_finish(&words);
    buffer_finish(&list);
    http_call_answer_json(call, 422, &body);
}

static void run_code(struct http_call *call)
{
    static const struct model_field fields[] = {
        {"code", MODEL_STRING}, {"language", MODEL_STRING}, {"stdin", MODEL_MAY_STRING}};
    json_t *body = model_read(call, fields, sizeof(fields) / sizeof(*fields));
    const char *language = json_string_value(json_object_get(body, "language"));
    if (body && !language_find(language))
        refuse_language(call, language);
    else if (body)
        begin(call, body);
    json_decref(body);
}

static void ping(struct http_call *call)
{
    struct buffer body = {0};
    buffer_append_str(&body, "\"pong\"");
    http_call_answer_json(call, 200, &body);
}

/* ---- the family ------------------------------------------------------------------------------------------ */

static const struct route routes[] = {
    ROUTE("POST", "/run_code", run_code, ROUTE_KEYED, ROUTE_RAW),
    ROUTE("GET", "/v1/ping", ping, ROUTE_OPEN, ROUTE_NO_BODY),
};

static bool open_kept(struct gateway *gateway, void **ret)
{
    struct fail fail = {0};
    *ret = runs_open(gateway, &fail);
    if (!*ret)
        log_event(LOG_ERROR, "gateway.runs", "error=\"%s\"", fail.text);
    return *ret != NULL;
}

static void close_kept(struct gateway *gateway, void *kept)
{
    struct runs *runs = kept;
    (void)gateway;
    runs_close(&runs);
}

const struct route_family sandboxfusion_family = {.name = "sandboxfusion",
                                                  .routes = routes,
                                                  .count = sizeof(routes) / sizeof(*routes),
                                                  .write_trouble = route_write_detail,
                                                  .open = open_kept,
                                                  .close = close_kept};
