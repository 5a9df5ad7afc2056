#include "client/gateway/prorl/job.h"

#include <stdlib.h>

#include "client/gateway/bodies/models.h"
#include "client/gateway/prorl/prorl.h"
#include "client/gateway/prorl/result.h"
#include "client/gateway/prorl/status_answer.h"
#include "client/gateway/prorl/task.h"
#include "client/gateway/runs/runs.h"
#include "common/base/cleanup.h"

struct job {
    struct engine_steps steps; /* first: what is asked before it begins, as call->state has it */
    struct http_call *call;
    struct trainer *trainer;
    struct list link;
    struct run_wait wait;
    struct buffer id, content, task; /* until it has begun */
    json_t *instance_id, *trajectory_id, *tools;
    char *source;
};

static void end(struct http_call *call)
{
    struct job *job = call->state;
    if (call->is_delivered)
        run_had(&job->wait);
    run_leave(&job->wait, false);
    job->trainer->job_count--;
    list_remove(&job->link);
    buffer_finish(&job->id);
    buffer_finish(&job->content);
    buffer_finish(&job->task);
    json_decref(job->instance_id);
    json_decref(job->trajectory_id);
    json_decref(job->tools);
    free(job->source);
    engine_steps_finish(&job->steps, call->gateway->loop);
    free(job);
}

/* ---- its end ---------------------------------------------------------------------------------------- */

static void on_ended(void *arg, const struct msg_trajectory *trajectory)
{
    struct job *job = arg;
    struct buffer body = {0};
    struct refusal no;
    const struct result_plan plan = {.instance_id = job->instance_id,
                                     .trajectory_id = job->trajectory_id,
                                     .tools = job->tools,
                                     .with_input_ids = !job->call->gateway->settings->prorl.no_input_ids};
    if (result_write(trajectory, &plan, &body, &no)) {
        http_call_answer_json(job->call, 200, &body);
        return;
    }
    buffer_finish(&body);
    http_call_refuse(job->call, 500, "bad-record", no.field, "Failed to process job: %s", no.text);
}

static void on_failed(void *arg, const struct msg_refused *refused)
{
    struct job *job = arg;
    /* Engines are in the ledger, too: the next job tells them again. */
    if (refused && (slice_is(refused->reason, HTTP_CALL_LEDGER_REPLACED) ||
                    slice_is(refused->reason, refusal_wire(REFUSAL_NO_ENGINE))))
        trainer_doubt_engines(job->trainer);
    if (!refused)
        http_call_refuse_silence(job->call);
    else
        http_call_refuse_as(job->call, refused);
}

void jobs_stop(struct trainer *trainer)
{
    struct job *job;
    LIST_EACH(job, &trainer->jobs, link) {
        run_leave(&job->wait, true);
        http_call_refuse(job->call, 500, "stopped", "", "Failed to process job: the server was stopped");
    }
}

/* ---- its beginning -------------------------------------------------------------------------------------- */

static void begin(struct http_call *call)
{
    struct job *job = call->state;
    if (job->steps.count > 0) {
        trainer_told(job->trainer, &job->steps);
        trainers_save(job->trainer->trainers);
    }
    const struct run_plan plan = {.identity = call->identity,
                                  .prefix = "prorl",
                                  .id = buffer_peek(&job->id),
                                  .content = buffer_peek(&job->content),
                                  .task = buffer_peek(&job->task),
                                  .takes_over = true};
    job->wait.ended = on_ended;
    job->wait.failed = on_failed;
    job->wait.arg = job;
    if (!run_begin(call->gateway->runs, &plan, &job->wait) && !exchange_is_answered(call->exchange))
        http_call_refuse_memory(call);
    buffer_finish(&job->content);
    buffer_finish(&job->task);
}

static void append_id(struct buffer *ret, const json_t *value)
{
    char room[32];
    const char *word = instance_word(value, room, sizeof(room));
    if (word)
        buffer_append_str(ret, word);
    buffer_append_str(ret, "\n");
}

static void name(struct job *job, const json_t *body)
{
    const json_t *id = json_object_get(body, "job_id");
    if (json_is_string(id)) {
        buffer_append(&job->id, json_string_value(id), json_string_length(id));
    } else {
        append_id(&job->id, job->instance_id);
        append_id(&job->id, job->trajectory_id);
    }
    json_text_append_value(&job->content, json_object_get(body, "instance"));
    json_text_append_value(&job->content, json_object_get(body, "sampling_params"));
}

/* False: it is answered. */
static bool make_task(struct job *job, const json_t *body)
{
    char why[WHY_SIZE] = "";
    const struct gateway_settings *settings = job->call->gateway->settings;
    const json_t *instance = json_object_get(body, "instance");
    const struct task_plan plan = {.instance = instance,
                                   .params = json_object_get(body, "sampling_params"),
                                   .source = task_source(instance),
                                   .timeout_ms = settings->prorl.timeout_ms,
                                   .images = settings->prorl.images};
    json_t *task = task_make(&plan, why);
    if (!task) {
        http_call_refuse(job->call, 400, "bad-task", "instance", "%s", why);
        return false;
    }
    json_text_append_value(&job->task, task);
    job->source = strdup(plan.source);
    job->tools = json_incref(json_object_get(json_object_get(task, "agent"), "tools"));
    json_decref(task);
    if (!job->source)
        http_call_refuse_memory(job->call);
    return job->source != NULL;
}

static struct job *make(struct http_call *call, struct trainer *trainer, const json_t *body)
{
    struct job *job = calloc(1, sizeof(*job));
    const json_t *instance = json_object_get(body, "instance");
    if (!job) {
        http_call_refuse_memory(call);
        return NULL;
    }
    job->call = call;
    job->trainer = trainer;
    job->instance_id = json_incref(json_object_get(instance, "instance_id"));
    job->trajectory_id = json_incref(json_object_get(instance, "trajectory_id"));
    list_push_back(&trainer->jobs, &job->link);
    trainer->job_count++;
    call->state = job;
    call->end = end;
    name(job, body);
    return job;
}

/* Whether an evaluator of that name is among "ROLE:NAME@VERSION", with blanks between them. */
static bool is_offered(const char *offers, const char *name)
{
    const size_t len = strlen(name);
    for (const char *at = offers; (at = strstr(at, "evaluator:")); at += 10)
        if (strncmp(at + 10, name, len) == 0 && (at[10 + len] == '@' || at[10 + len] == ' ' || !at[10 + len]))
            return true;
    return false;
}

static void on_status(struct http_call *call, const struct answer *answer)
{
    struct job *job = call->state;
    json_t *status = json_text_read(answer->as.status.json);
    json_t *workers = json_object_get(status, "workers"), *worker;
    bool is_known = false;
    size_t i;
    json_array_foreach(workers, i, worker)
    {
        const char *offers = json_string_value(json_object_get(worker, "offers"));
        is_known |= offers && is_offered(offers, job->source);
    }
    /* Who is no admin is not told of workers: the broker's own answer has to do. */
    is_known |= json_array_size(workers) == 0 && !call->identity->is_admin;
    json_decref(status);
    if (!is_known)
        http_call_refuse(call, 400, "unknown-source", "instance.data_source",
                         "Data source %.200s is not registered: no worker offers an evaluator of this name",
                         job->source);
    else
        engine_steps_run(call);
}

static void on_admitted(struct http_call *call, const struct answer *answer)
{
    struct job *job = call->state;
    struct msg_status_get in = {0};
    (void)answer;
    call->takes_refusals = false;
    trainer_drop_cleared(job->trainer, &job->steps);
    trainer_tell_all(job->trainer, &job->steps);
    if (job->steps.count > 0)
        trainers_save(job->trainer->trainers);
    job->steps.done = begin;
    if (source_kind_of(job->source) == SOURCE_HANDLER)
        http_call_ask(call, MSG_status_get, &in, on_status);
    else
        engine_steps_run(call);
}

void job_process(struct http_call *call)
{
    static const struct model_field fields[] = {
        {"instance", MODEL_OBJECT}, {"sampling_params", MODEL_OBJECT}, {"job_id", MODEL_MAY_STRING}};
    json_t *body = model_read(call, fields, sizeof(fields) / sizeof(*fields));
    struct trainer *trainer = trainers_find(call->kept, call->identity);
    if (body && (!trainer || !trainer->is_started)) {
        http_call_refuse(call, 503, "not-running", "", PRORL_NOT_RUNNING);
    } else if (body) {
        struct job *job = make(call, trainer, body);
        if (job && make_task(job, body))
            trainers_admit(call, on_admitted);
    }
    json_decref(body);
}

void job_cancel(struct http_call *call)
{
    static const struct model_field fields[] = {{"job_id", MODEL_STRING}};
    json_t *body = model_read(call, fields, 1);
    if (!body)
        return;
    const json_t *id = json_object_get(body, "job_id");
    const struct slice text = slice_of(json_string_value(id), json_string_length(id));
    struct trainer *trainer = trainers_find(call->kept, call->identity);
    if (!trainer || !trainer->is_started) {
        http_call_refuse(call, 503, "not-running", "", PRORL_NOT_RUNNING);
    } else if (runs_cancel(call->gateway->runs, call->identity, text) == 0) {
        http_call_refuse(call, 404, "unknown-job", "job_id", "Job %.200s not found", json_string_value(id));
    } else {
        status_answer(call, "Cancel requested for job ", json_string_value(id));
    }
    json_decref(body);
}
