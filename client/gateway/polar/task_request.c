#include "client/gateway/polar/task_request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/gateway/bodies/task_part.h"
#include "client/gateway/polar/task_request_agent.h"
#include "client/gateway/polar/task_request_evaluator.h"
#include "client/gateway/polar/task_request_runtime.h"

enum { NAME_BYTES = 128, SECONDS_MAX = 86400, RUN_SECONDS_MAX = 604800, PRIORITY_MAX = 100, OUR_PRIORITIES = 10 };

/* ---- numbers ------------------------------------------------------------------------------------------- */

static bool read_whole(struct problem *problem, const json_t *body, const char *name, json_int_t min, json_int_t max,
                       json_int_t *ret)
{
    json_t *value;
    if (!problem_read(problem, body, "", name, JSON_INTEGER, &value))
        return false;
    if (!value)
        return true;
    *ret = json_integer_value(value);
    return (*ret >= min && *ret <= max) ||
           problem_set(problem, name, "must be %lld to %lld", (long long)min, (long long)max);
}

/* Whole seconds, up. */
static bool read_seconds(struct problem *problem, const json_t *object, const char *place, const char *name,
                         json_int_t *ret)
{
    json_t *value;
    if (!problem_read(problem, object, place, name, JSON_REAL, &value))
        return false;
    if (!value)
        return true;
    const double seconds = ceil(json_number_value(value));
    if (!(seconds > 0))
        return problem_set(problem, name, "must be above 0");
    *ret = seconds > RUN_SECONDS_MAX ? RUN_SECONDS_MAX : (json_int_t)seconds;
    return true;
}

static json_int_t at_most(json_int_t value, json_int_t max) { return value < max ? value : max; }

/* Each stage may take as long as the whole: they are not told together what is left. */
static bool read_limits(const json_t *body, json_t *task, struct problem *problem)
{
    json_int_t whole = 600, agent;
    if (!read_seconds(problem, body, "", "timeout_seconds", &whole))
        return false;
    agent = whole;
    if (!read_seconds(problem, json_object_get(body, "metadata"), "metadata", "agent_timeout", &agent))
        return false;
    json_t *limits = task_part(task, "limits");
    json_object_set_new(limits, "init_s", json_integer(at_most(whole, SECONDS_MAX)));
    json_object_set_new(limits, "run_s", json_integer(agent));
    json_object_set_new(limits, "command_s", json_integer(at_most(agent, SECONDS_MAX)));
    if (!json_object_get(limits, "eval_s"))
        json_object_set_new(limits, "eval_s", json_integer(at_most(whole, SECONDS_MAX)));
    return true;
}

/* ---- names ------------------------------------------------------------------------------------------------ */

static void name_task(const char *id, json_t *task)
{
    char name[NAME_BYTES + 1];
    snprintf(name, sizeof(name), "%s", id);
    for (char *at = name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == '/' || *at == 0x7f)
            *at = '-';
    json_t *text = json_string(name); /* none where it was cut within a letter */
    json_object_set_new(task, "task", text ? text : json_string("polar"));
}

static bool read_builder(const json_t *body, struct problem *problem, const char **ret)
{
    json_t *builder;
    if (!problem_read(problem, body, "", "builder", JSON_OBJECT, &builder))
        return false;
    const char *strategy = json_string_value(json_object_get(builder, "strategy"));
    *ret = builder ? strategy : "per_request";
    if (*ret && (strcmp(*ret, "per_request") == 0 || strcmp(*ret, "prefix_merging") == 0))
        return true;
    return problem_set(problem, "builder.strategy",
                       "must be per_request or prefix_merging; both give the traces that "
                       "prompts extend id for id");
}

/* What is asked for again when a rollout has ended, and by a gateway that knows of nothing. */
static void keep(const json_t *body, json_t *task, const struct task_request *request, const char *builder,
                 int64_t now_ms)
{
    static const char *const whole[] = {"early_stop_min_usable_sessions", "callback_url", "metadata"};
    const json_t *agent = json_object_get(body, "agent"), *evaluator = json_object_get(body, "evaluator");
    json_t *kept = json_pack("{s:s,s:i,s:s,s:I}", "task_id", request->task_id, "num_samples", (int)request->samples,
                             "builder", builder, "created_ms", (json_int_t)now_ms);
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (json_object_get(body, whole[i]))
            json_object_set(kept, whole[i], json_object_get(body, whole[i]));
    if (json_object_get(agent, "harness"))
        json_object_set(kept, "harness", json_object_get(agent, "harness"));
    if (json_object_get(agent, "model_name"))
        json_object_set(kept, "model", json_object_get(agent, "model_name"));
    if (json_object_get(evaluator, "strategy"))
        json_object_set(kept, "evaluator", json_object_get(evaluator, "strategy"));
    json_object_set_new(task, "metadata", json_pack("{s:o}", "polar", kept));
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

static bool read_head(const json_t *body, struct task_request *ret, struct problem *problem)
{
    json_t *id, *callback, *instruction, *metadata;
    json_int_t samples = 1, priority = 0, usable = 0;
    if (!problem_read(problem, body, "", "task_id", JSON_STRING, &id) ||
        !problem_read(problem, body, "", "instruction", JSON_STRING, &instruction) ||
        !problem_read(problem, body, "", "callback_url", JSON_STRING, &callback) ||
        !problem_read(problem, body, "", "metadata", JSON_OBJECT, &metadata) ||
        !read_whole(problem, body, "num_samples", 1, TASK_SAMPLES_MAX, &samples) ||
        !read_whole(problem, body, "dispatch_priority", 0, PRIORITY_MAX, &priority) ||
        !read_whole(problem, body, "early_stop_min_usable_sessions", 1, samples, &usable))
        return false;
    if (!id || json_string_length(id) == 0)
        return problem_set(problem, "task_id", "must be given");
    if (json_string_length(id) > TASK_ID_MAX)
        return problem_set(problem, "task_id", "must be at most %d bytes", TASK_ID_MAX);
    if (!instruction || json_string_length(instruction) == 0)
        return problem_set(problem, "instruction", "must be given");
    json_object_set(ret->task, "prompt", instruction);
    ret->task_id = json_string_value(id);
    ret->callback_url = json_string_value(callback);
    ret->samples = (unsigned)samples;
    ret->priority = (unsigned)(at_most(priority, PRIORITY_MAX - 1) * OUR_PRIORITIES / PRIORITY_MAX);
    return true;
}

bool task_request_read(const json_t *body, int64_t now_ms, struct task_request *ret, struct problem *problem)
{
    const char *builder;
    *ret = (struct task_request){.task = json_object()};
    if (!read_head(body, ret, problem) || !read_builder(body, problem, &builder) ||
        !task_request_runtime(body, ret->task, problem) || !task_request_agent(body, ret->task, problem) ||
        !task_request_evaluator(body, ret->task, problem) || !read_limits(body, ret->task, problem)) {
        task_request_finish(ret);
        return false;
    }
    name_task(ret->task_id, ret->task);
    keep(body, ret->task, ret, builder, now_ms);
    return true;
}

void task_request_finish(struct task_request *request)
{
    json_decref(request->task);
    request->task = NULL;
}
