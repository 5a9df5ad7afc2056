#include "client/gateway/polar/task_request_evaluator.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "client/gateway/bodies/task_part.h"
#include "client/gateway/json_asked.h"

enum { SECONDS_MAX = 86400 };

static const char *text_at(const json_t *config, const char *name)
{
    return json_string_value(json_object_get(config, name));
}

/* What a strategy's config may hold, of which type; others are of no effect here. */
static const struct {
    const char *name;
    json_type type;
} fields[] = {{"test_command", JSON_STRING}, {"repo_dir", JSON_STRING},      {"exclude_patterns", JSON_ARRAY},
              {"test_timeout", JSON_REAL},   {"tests_dir", JSON_STRING},     {"tests_target", JSON_STRING},
              {"verifier_dir", JSON_STRING}, {"verifier_timeout", JSON_REAL}};

static bool check_config(const json_t *config, struct problem *problem)
{
    json_t *value;
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (!problem_read(problem, config, "evaluator.config", fields[i].name, fields[i].type, &value))
            return false;
    return true;
}

static void copy_text(const json_t *config, const char *theirs, json_t *part, const char *ours, const char *otherwise)
{
    const char *text = text_at(config, theirs);
    if (text || otherwise)
        json_object_set_new(part, ours, json_string(text ? text : otherwise));
}

static void set_seconds(const json_t *config, const char *name, json_t *task)
{
    const json_t *value = json_object_get(config, name);
    if (!json_is_number(value) || !(json_number_value(value) > 0))
        return;
    const double seconds = ceil(json_number_value(value));
    json_object_set_new(task_part(task, "limits"), "eval_s",
                        json_integer(seconds > SECONDS_MAX ? SECONDS_MAX : (json_int_t)seconds));
}

/* An object, or the JSON text of one; the caller's. */
static json_t *object_of(const json_t *value)
{
    json_t *read = json_is_string(value) ? json_asked_read(slice_from_str(json_string_value(value)), 0, NULL)
                                         : json_incref((json_t *)(uintptr_t)value);
    if (json_is_object(read))
        return read;
    json_decref(read);
    return NULL;
}

/* The patch of a repository, its tests, and which must end how. */
static bool test_on_output(const json_t *config, json_t *task, struct problem *problem)
{
    json_t *eval = task_part(task, "eval"), *expected = object_of(json_object_get(config, "expected_output_json"));
    if (!text_at(config, "test_command") || !expected) {
        json_decref(expected);
        return problem_set(problem,
                           text_at(config, "test_command") ? "evaluator.config.expected_output_json"
                                                           : "evaluator.config.test_command",
                           "must be given");
    }
    json_object_set_new(eval, "kind", json_string("swe"));
    json_t *swe = task_part(eval, "swe");
    json_object_set_new(swe, "expected", expected);
    json_object_set_new(swe, "witness", json_string("none"));
    copy_text(config, "test_command", swe, "test_command", NULL);
    copy_text(config, "repo_dir", swe, "repository", "/testbed");
    if (json_is_array(json_object_get(config, "exclude_patterns")))
        json_object_set(swe, "protected", json_object_get(config, "exclude_patterns"));
    set_seconds(config, "test_timeout", task);
    return problem_none(problem, config, "evaluator.config", "patch_command",
                        "the patch is what the agent left beside what is committed");
}

/* The tests of a task of Harbor's, in the agent's own sandbox. */
static bool harbor(const json_t *config, json_t *task, struct problem *problem)
{
    json_t *eval = task_part(task, "eval");
    const char *tests = text_at(config, "tests_dir"), *target = text_at(config, "tests_target");
    if (!tests)
        return problem_set(problem, "evaluator.config.tests_dir", "must be given");
    json_object_set_new(eval, "kind", json_string("verifier"));
    json_object_set_new(eval, "sandbox", json_string("agent"));
    json_object_set_new(eval, "files", json_pack("[{s:s,s:s}]", "path", target ? target : "/tests", "source", tests));
    copy_text(config, "test_command", eval, "command", NULL);
    copy_text(config, "verifier_dir", eval, "reward_dir", NULL);
    set_seconds(config, "verifier_timeout", task);
    return true;
}

static bool session_completed(const json_t *config, json_t *task, struct problem *problem)
{
    (void)config; /* 1 where it was completed, which its result says */
    (void)task;
    (void)problem;
    return true;
}

static bool swebench(const json_t *config, json_t *task, struct problem *problem)
{
    (void)config;
    (void)task;
    return problem_set(
        problem, "evaluator.strategy",
        "SWE-bench's own programs are not run: import its rows (python3 -m sluice.importers swe), or say "
        "test_on_output with the tests that must pass");
}

static const struct {
    const char *strategy;
    bool (*read)(const json_t *config, json_t *task, struct problem *problem);
} strategies[] = {{"session_completed", session_completed},
                  {"test_on_output", test_on_output},
                  {"harbor", harbor},
                  {"swebench_harness", swebench}};

static bool read_rest(const json_t *evaluator, const char *strategy, json_t *task, struct problem *problem)
{
    json_t *env, *refresh, *eval = json_object_get(task, "eval");
    if (!problem_read(problem, evaluator, "evaluator", "env", JSON_OBJECT, &env) ||
        !problem_read(problem, evaluator, "evaluator", "refresh_runtime", JSON_TRUE, &refresh))
        return false;
    if (eval && json_object_size(env) > 0)
        json_object_set(eval, "env", env);
    if (json_is_true(refresh) && strcmp(strategy, "harbor") == 0)
        return problem_set(problem, "evaluator.refresh_runtime", "must be false for harbor");
    return true;
}

bool task_request_evaluator(const json_t *body, json_t *task, struct problem *problem)
{
    json_t *evaluator, *config;
    if (!problem_read(problem, body, "", "evaluator", JSON_OBJECT, &evaluator) ||
        !problem_read(problem, evaluator, "evaluator", "config", JSON_OBJECT, &config))
        return false;
    if (!evaluator)
        return true;
    const char *strategy = text_at(evaluator, "strategy");
    for (size_t i = 0; strategy && i < sizeof(strategies) / sizeof(*strategies); i++)
        if (strcmp(strategies[i].strategy, strategy) == 0)
            return check_config(config, problem) && strategies[i].read(config, task, problem) &&
                   read_rest(evaluator, strategy, task, problem);
    return problem_set(problem, "evaluator.strategy", "must be session_completed, test_on_output or harbor");
}
