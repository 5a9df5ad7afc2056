#include "client/gateway/prorl/prorl.h"

#include <errno.h>
#include <stdio.h>

#include "client/gateway/door/engines.h"
#include "client/gateway/prorl/job.h"
#include "client/gateway/prorl/status_answer.h"
#include "client/gateway/bodies/models.h"
#include "client/gateway/runs/runs.h"
#include "common/base/log.h"

/* Of one who was admitted. */
static struct trainer *trainer_of(struct http_call *call)
{
    struct trainer *trainer = trainers_get(call->kept, call->identity);
    call->takes_refusals = false;
    if (!trainer)
        http_call_refuse_memory(call);
    return trainer;
}

/* ---- start and stop --------------------------------------------------------------------------------- */

static void on_started(struct http_call *call)
{
    const struct engine_steps *steps = call->state;
    struct trainer *trainer = steps->user;
    trainer_told(trainer, steps);
    trainer->is_started = true;
    trainers_save(call->kept);
    status_answer(call, "Server started successfully", "");
}

static void start_admitted(struct http_call *call, const struct answer *answer)
{
    struct trainer *trainer = trainer_of(call);
    (void)answer;
    if (trainer && trainer->is_started) {
        http_call_refuse(call, 400, "running", "", "Server is already running");
        return;
    }
    struct engine_steps *steps = trainer ? engine_steps_begin(call, on_started, trainer) : NULL;
    if (!steps)
        return;
    trainer_tell_all(trainer, steps);
    engine_steps_run(call);
}

static void start(struct http_call *call) { trainers_admit(call, start_admitted); }

static void stop_admitted(struct http_call *call, const struct answer *answer)
{
    struct trainer *trainer = trainer_of(call);
    (void)answer;
    if (!trainer)
        return;
    if (!trainer->is_started) {
        http_call_refuse(call, 503, "not-running", "", PRORL_NOT_RUNNING);
        return;
    }
    trainer->is_started = false;
    trainers_save(call->kept);
    jobs_stop(trainer);
    status_answer(call, "Server stopped successfully", "");
}

static void stop(struct http_call *call) { trainers_admit(call, stop_admitted); }

static json_int_t leased(const json_t *status, const char *stage)
{
    return json_integer_value(json_object_get(json_object_get(json_object_get(status, "stages"), stage), "leased"));
}

static void on_status(struct http_call *call, const struct answer *answer)
{
    const struct trainer *trainer = trainers_find(call->kept, call->identity);
    struct buffer body = {0};
    json_t *status = json_text_read(answer->as.status.json);
    const uint64_t jobs = trainer ? trainer->job_count : 0;
    json_text_printf(&body,
                     "{\"status\":\"running\",\"pending_jobs\":%u,\"running\":%d,\"jobs\":%u,\"init\":%d,\"run\":%d,"
                     "\"eval\":%d}",
                     jobs, (int64_t)(leased(status, "init") + leased(status, "run") + leased(status, "eval")), jobs,
                     (int64_t)leased(status, "init"), (int64_t)leased(status, "run"), (int64_t)leased(status, "eval"));
    json_decref(status);
    http_call_answer_json(call, 200, &body);
}

static void status(struct http_call *call)
{
    const struct trainer *trainer = trainers_find(call->kept, call->identity);
    struct msg_status_get in = {0};
    if (trainer && trainer->is_started)
        http_call_ask(call, MSG_status_get, &in, on_status);
    else
        http_call_refuse(call, 503, "not-running", "", PRORL_NOT_RUNNING);
}

/* ---- engines ------------------------------------------------------------------------------------------- */

static void on_added(struct http_call *call)
{
    const struct engine_steps *steps = call->state;
    trainer_told(steps->user, steps);
    trainers_save(call->kept);
    status_answer(call, "Added LLM server address: ", steps->shown);
}

static void on_refused(struct http_call *call)
{
    const struct engine_steps *steps = call->state;
    trainer_remove(steps->user, steps->of[0].url);
    trainers_save(call->kept);
}

static void add(struct http_call *call, const char *address)
{
    char url[URL_MAX + 1];
    struct fail fail = {0};
    struct trainer *trainer = trainer_of(call);
    if (!trainer)
        return;
    if (!trainer_engine_url(address, url) || !engines_allow(call->gateway->settings->engines, url, &fail)) {
        http_call_refuse(call, fail.code == -EACCES ? 403 : 400, "not-allowed", "address", "%s",
                         fail.code ? fail.text : "the address is too long");
        return;
    }
    struct trainer_engine *engine = trainer_add(trainer, url);
    if (!engine) {
        http_call_refuse(call, 503, "queue-full", "address", "there are too many engines");
    } else if (!trainer->is_started || engine->is_known) {
        trainers_save(call->kept);
        status_answer(call,
                      trainer->is_started ? "Added LLM server address: " : "Buffered LLM server address: ", address);
    } else {
        struct engine_steps *steps = engine_steps_begin(call, on_added, trainer);
        if (!steps)
            return;
        steps->refused = on_refused;
        snprintf(steps->shown, sizeof(steps->shown), "%s", address);
        trainer_tell(trainer, engine, steps);
        engine_steps_run(call);
    }
}

static void add_admitted(struct http_call *call, const struct answer *answer)
{
    static const struct model_field fields[] = {{"address", MODEL_STRING}};
    json_t *body = model_read(call, fields, 1);
    (void)answer;
    if (body)
        add(call, json_string_value(json_object_get(body, "address")));
    json_decref(body);
}

static void add_llm_server(struct http_call *call) { trainers_admit(call, add_admitted); }

static void on_cleared(struct http_call *call)
{
    const struct engine_steps *steps = call->state;
    const struct trainer *trainer = steps->user;
    status_answer(
        call, trainer->is_started ? "Cleared all LLM server addresses" : "Cleared buffered LLM server addresses", "");
}

static void clear_admitted(struct http_call *call, const struct answer *answer)
{
    struct trainer *trainer = trainer_of(call);
    (void)answer;
    struct engine_steps *steps = trainer ? engine_steps_begin(call, on_cleared, trainer) : NULL;
    if (!steps)
        return;
    trainer_clear(trainer);
    trainers_save(call->kept);
    for (size_t i = 0; i < trainer->count; i++)
        engine_steps_add(steps, MSG_policy_pause, trainer->engines[i].url, "");
    for (size_t i = 0; i < trainer->count; i++)
        engine_steps_add_wait(steps, trainer->engines[i].url);
    engine_steps_run(call);
}

static void clear_llm_server(struct http_call *call) { trainers_admit(call, clear_admitted); }

/* ---- the family -------------------------------------------------------------------------------------------- */

static const struct route routes[] = {
    ROUTE("POST", "/start", start, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("POST", "/stop", stop, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("GET", "/status", status, ROUTE_KEYED, ROUTE_NO_BODY),
    ROUTE("POST", "/process", job_process, ROUTE_KEYED, ROUTE_RAW),
    ROUTE("POST", "/cancel", job_cancel, ROUTE_KEYED, ROUTE_RAW),
    ROUTE("POST", "/add_llm_server", add_llm_server, ROUTE_KEYED, ROUTE_RAW),
    ROUTE("POST", "/clear_llm_server", clear_llm_server, ROUTE_KEYED, ROUTE_NO_BODY),
};

static bool open_kept(struct gateway *gateway, void **ret)
{
    struct fail fail = {0};
    struct runs *runs = runs_open(gateway, &fail);
    if (!runs)
        log_event(LOG_ERROR, "gateway.runs", "error=\"%s\"", fail.text);
    else if (!(*ret = trainers_open(gateway->settings->state_path)))
        runs_close(&runs);
    return *ret != NULL;
}

static void close_kept(struct gateway *gateway, void *kept)
{
    struct trainers *trainers = kept;
    struct runs *runs = gateway->runs;
    trainers_close(&trainers);
    runs_close(&runs);
}

const struct route_family prorl_family = {.name = "prorl",
                                          .routes = routes,
                                          .count = sizeof(routes) / sizeof(*routes),
                                          .write_trouble = route_write_detail,
                                          .open = open_kept,
                                          .close = close_kept};
