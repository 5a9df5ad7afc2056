#include "client/gateway/prorl/task.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/bodies/program_tests.h"
#include "client/gateway/bodies/task_part.h"
#include "client/gateway/prorl/task_swe.h"

enum { TURNS_DEFAULT = 2 /* ProRL's own */, TURNS_MAX = 1000, SMALL_BYTES = 1024, TOKENS_MAX = 1 << 20 };

const char *task_source(const json_t *instance)
{
    const char *source = instance_text(instance, "data_source");
    return source ? source : SOURCE_DEFAULT;
}

/* ---- how it is sampled ------------------------------------------------------------------------------- */

/* A whole number of the params, within bounds; `otherwise` where there is none. */
static json_int_t whole(const json_t *params, const char *name, json_int_t max, json_int_t otherwise)
{
    const json_t *value = json_object_get(params, name);
    const double number = json_number_value(value);
    if (!json_is_number(value) || number < 1)
        return otherwise;
    return number > (double)max ? max : (json_int_t)number;
}

static void copy_number(const json_t *params, const char *name, double min, double max, json_t *sampling)
{
    json_t *value = json_object_get(params, name);
    if (json_is_number(value) && json_number_value(value) >= min && json_number_value(value) <= max)
        json_object_set(sampling, name, value);
}

static void add_sampling(const json_t *params, json_t *task)
{
    json_t *sampling = task_part(task, "sampling"), *limits = task_part(task, "limits");
    json_int_t tokens = whole(params, "max_output_tokens", TOKENS_MAX, 0);
    tokens = tokens ? tokens : whole(params, "max_tokens", TOKENS_MAX, 0);
    copy_number(params, "temperature", 0, 100, sampling);
    copy_number(params, "top_p", 0.001, 1, sampling);
    copy_number(params, "min_p", 0, 1, sampling);
    if (whole(params, "top_k", 1000000, 0))
        json_object_set_new(sampling, "top_k", json_integer(whole(params, "top_k", 1000000, 0)));
    if (json_is_integer(json_object_get(params, "seed")))
        json_object_set_new(sampling, "seed",
                            json_integer(json_integer_value(json_object_get(params, "seed")) & INT32_MAX));
    if (tokens)
        json_object_set_new(sampling, "max_tokens", json_integer(tokens));
    if (whole(params, "max_model_len", 4194304, 0))
        json_object_set_new(limits, "context_tokens", json_integer(whole(params, "max_model_len", 4194304, 0)));
}

/* One budget for all stages there; here the run has it, and twice of it and 10 s are the most that the caller waits. */
static void add_limits(const struct task_plan *plan, json_t *task)
{
    json_t *limits = task_part(task, "limits");
    const json_int_t otherwise = plan->timeout_ms < 1000 ? 1 : plan->timeout_ms / 1000;
    const json_int_t timeout_s = whole(plan->params, "timeout", 604800, otherwise);
    json_object_set_new(limits, "run_s", json_integer(timeout_s));
    json_object_set_new(limits, "total_s", json_integer(2 * timeout_s + 10));
}

/* ---- its agent ------------------------------------------------------------------------------------------ */

static const char *const tools_of[][5] = {
    [SOURCE_HANDLER] = {"bash", "ipython", "submit"},
    [SOURCE_MATH] = {"ipython", "think", "submit"},
    [SOURCE_STEM] = {"think", "submit"},
    [SOURCE_CODE] = {"bash", "edit", "ipython", "think", "submit"},
    [SOURCE_SWE] = {"bash", "edit", "ipython", "think", "submit"},
};

static void add_agent(const json_t *params, enum source_kind kind, json_t *task)
{
    json_t *agent = task_part(task, "agent"), *tools = json_array();
    if (json_is_true(json_object_get(params, "is_reasoning_task"))) {
        json_object_set_new(agent, "kind", json_string("chat"));
        json_decref(tools);
        return;
    }
    for (size_t i = 0; i < 5 && tools_of[kind][i]; i++)
        json_array_append_new(tools, json_string(tools_of[kind][i]));
    json_object_set_new(agent, "kind", json_string("tools"));
    json_object_set_new(agent, "tools", tools);
    json_object_set_new(agent, "max_turns", json_integer(whole(params, "max_iterations", TURNS_MAX, TURNS_DEFAULT)));
}

/* ---- how it is judged ---------------------------------------------------------------------------------------- */

/* What the last \boxed{} holds, in place; all of it where there is none. */
static void take_box(char *text)
{
    char *at = NULL;
    for (char *next = text; (next = strstr(next, "\\boxed{")); next++)
        at = next + strlen("\\boxed{");
    int depth = 1;
    for (char *end = at; at && *end; end++) {
        depth += *end == '{' ? 1 : *end == '}' ? -1 : 0;
        if (depth > 0)
            continue;
        *end = '\0';
        memmove(text, at, (size_t)(end - at) + 1);
        return;
    }
}

static bool is_letters(const char *answer)
{
    size_t letters = 0;
    for (; *answer; answer++) {
        if (*answer >= 'A' && *answer <= 'Z')
            letters++;
        else if (!strchr(" ,().", *answer))
            return false;
    }
    return letters > 0 && letters <= 8;
}

static bool judge_answer(const json_t *truth, enum source_kind kind, json_t *task, char why[WHY_SIZE])
{
    char room[32];
    const char *word = instance_word(truth, room, sizeof(room));
    if (!word || !*word)
        return why_not(why, "the instance has no reward_model.ground_truth that is a text or a number");
    char *answer = strdup(word);
    if (!answer)
        return why_not(why, "out of memory");
    take_box(answer);
    json_t *eval = task_part(task, "eval");
    json_object_set_new(eval, "kind", json_string(kind == SOURCE_STEM && is_letters(answer) ? "choice" : "math"));
    json_object_set_new(eval, "answer", json_string(answer));
    free(answer);
    return true;
}

/* A handler's is told what ProRL's reward server is told. */
static bool judge_by_handler(const struct task_plan *plan, json_t *truth, json_t *task)
{
    json_t *eval = task_part(task, "eval"), *config = json_object();
    json_object_set_new(config, "data_source", json_string(plan->source));
    if (truth)
        json_object_set(config, "ground_truth", truth);
    if (json_object_get(plan->instance, "extra_info"))
        json_object_set(config, "extra_info", json_object_get(plan->instance, "extra_info"));
    json_object_set_new(eval, "kind", json_string(plan->source));
    json_object_set_new(eval, "config", config);
    return true;
}

static bool judge_programs(const json_t *truth, json_t *task, char why[WHY_SIZE])
{
    struct fail fail = {0};
    return program_tests_judge(truth, "reward_model.ground_truth", task, &fail) || why_not(why, "%s", fail.text);
}

static bool judge(const struct task_plan *plan, enum source_kind kind, json_t *task, char why[WHY_SIZE])
{
    if (kind == SOURCE_SWE)
        return task_swe_judge(plan, task, why);
    json_t *truth = instance_truth(plan->instance);
    const char *image = instance_text(plan->instance, "docker_image");
    const bool is_judged = kind == SOURCE_CODE      ? judge_programs(truth, task, why)
                           : kind == SOURCE_HANDLER ? judge_by_handler(plan, truth, task)
                                                    : judge_answer(truth, kind, task, why);
    json_decref(truth);
    if (image && *image == '/')
        json_object_set_new(task, "image", json_string(image));
    return is_judged;
}

/* ---- all of it --------------------------------------------------------------------------------------------- */

/* Its columns that are a number, a word or a short text. */
static void add_metadata(const struct task_plan *plan, json_t *task)
{
    json_t *metadata = task_part(task, "metadata"), *value;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)plan->instance, name, value)
    {
        if (strcmp(name, "prompt") != 0 &&
            (json_is_number(value) || (json_is_string(value) && json_string_length(value) <= SMALL_BYTES)))
            json_object_set(metadata, name, value);
    }
}

static json_t *name_of(const struct task_plan *plan)
{
    struct buffer name = {0};
    instance_name(plan->instance, plan->source, &name);
    json_t *text = json_stringn(name.data ? (const char *)name.data : "", name.len);
    buffer_finish(&name);
    return text ? text : json_string("instance");
}

json_t *task_make(const struct task_plan *plan, char why[WHY_SIZE])
{
    const enum source_kind kind = source_kind_of(plan->source);
    json_t *task = json_object();
    json_object_set_new(task, "task", name_of(plan));
    add_agent(plan->params, kind, task);
    add_sampling(plan->params, task);
    add_limits(plan, task);
    add_metadata(plan, task);
    if (instance_ask(plan->instance, task, why) && judge(plan, kind, task, why))
        return task;
    json_decref(task);
    return NULL;
}
