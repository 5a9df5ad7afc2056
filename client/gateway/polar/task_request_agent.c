#include "client/gateway/polar/task_request_agent.h"

#include <stdio.h>
#include <string.h>

#include "client/gateway/bodies/task_part.h"
#include "common/base/cleanup.h"

static const struct {
    const char *preset, *harness;
} presets[] = {{"claude_code", "claude-code"},
               {"codex", "codex"},
               {"opencode", "opencode"},
               {"qwen_code", "qwen-code"},
               {"mini_swe_agent", "mini-swe-agent"},
               {"openhands_sdk", "openhands"},
               {"terminus_2", "terminus-2"},
               {"pi", "pi"}};

static const struct {
    const char *theirs, *part, *ours;
} settings[] = {{"temperature", "sampling", "temperature"},
                {"top_p", "sampling", "top_p"},
                {"top_k", "sampling", "top_k"},
                {"min_p", "sampling", "min_p"},
                {"max_tokens", "sampling", "max_tokens"},
                {"max_output_tokens", "sampling", "max_tokens"},
                {"sampling_seed", "sampling", "seed"},
                {"seed", "sampling", "seed"},
                {"max_turns", "agent", "max_turns"},
                {"max_iterations", "agent", "max_turns"},
                {"step_limit", "agent", "max_turns"}};

static bool read_settings(const json_t *agent, json_t *task, struct problem *problem)
{
    const char *name;
    json_t *given, *value;
    if (!problem_read(problem, agent, "agent", "settings", JSON_OBJECT, &given))
        return false;
    json_object_foreach(given, name, value)
    {
        size_t i = 0;
        while (i < sizeof(settings) / sizeof(*settings) && strcmp(settings[i].theirs, name) != 0)
            i++;
        if (strcmp(name, "command") == 0)
            continue; /* the shell's */
        if (i == sizeof(settings) / sizeof(*settings)) {
            char field[128];
            snprintf(field, sizeof(field), "agent.settings.%.100s", name);
            return problem_set(problem, field,
                               "is no setting here: sampling and max_turns are, and the harness's own are in its image "
                               "or its command");
        }
        json_object_set(task_part(task, settings[i].part), settings[i].ours, value);
    }
    return true;
}

/* A text, a list of lines, or either as `command` or `script` of an object. */
static json_t *command_of(const json_t *value)
{
    AUTO_BUFFER text = {0};
    if (json_is_object(value)) {
        const json_t *command = json_object_get(value, "command");
        return command_of(command ? command : json_object_get(value, "script"));
    }
    if (json_is_string(value))
        return json_incref((json_t *)(uintptr_t)value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *line = json_string_value(json_array_get(value, i));
        if (!line)
            return NULL;
        buffer_printf(&text, "%s%s", i > 0 ? "\n" : "", line);
    }
    return text.len > 0 ? json_stringn((const char *)text.data, text.len) : NULL;
}

static bool read_shell(const json_t *given, json_t *agent, struct problem *problem)
{
    json_t *command = command_of(json_object_get(given, "custom_shell"));
    if (!command)
        command = command_of(json_object_get(given, "settings"));
    if (!command)
        return problem_set(problem, "agent.custom_shell", "must be given: the command that works on the task");
    json_object_set_new(agent, "harness", json_string("command"));
    json_object_set_new(agent, "command", command);
    return true;
}

static bool read_harness(const json_t *given, const char *name, json_t *agent, struct problem *problem)
{
    json_object_set_new(agent, "kind", json_string("harness"));
    if (strcmp(name, "shell") == 0)
        return read_shell(given, agent, problem);
    if (!problem_none(problem, given, "agent", "custom_shell", "is the harness shell's alone"))
        return false;
    for (size_t i = 0; i < sizeof(presets) / sizeof(*presets); i++)
        if (strcmp(presets[i].preset, name) == 0) {
            json_object_set_new(agent, "harness", json_string(presets[i].harness));
            return true;
        }
    return problem_set(
        problem, "agent.harness",
        "%.60s is none that Sluice has: claude_code, codex, mini_swe_agent, opencode, openhands_sdk, pi, "
        "qwen_code, terminus_2 or shell",
        name);
}

/* A seed for each sample: ours grow from the first by themselves. */
static bool read_seed(const json_t *body, json_t *task, struct problem *problem)
{
    json_t *seed;
    if (!problem_read(problem, json_object_get(body, "metadata"), "metadata", "eval_sampling_seed_base", JSON_INTEGER,
                      &seed))
        return false;
    if (seed)
        json_object_set(task_part(task, "sampling"), "seed", seed);
    return true;
}

static bool read_env(const json_t *agent, json_t *task, struct problem *problem)
{
    json_t *env;
    if (!problem_read(problem, agent, "agent", "env", JSON_OBJECT, &env))
        return false;
    if (json_object_size(env) > 0)
        json_object_update(task_part(task, "env"), env);
    return true;
}

bool task_request_agent(const json_t *body, json_t *task, struct problem *problem)
{
    json_t *agent, *harness, *import;
    if (!problem_read(problem, body, "", "agent", JSON_OBJECT, &agent) ||
        !problem_read(problem, agent, "agent", "harness", JSON_STRING, &harness) ||
        !problem_read(problem, agent, "agent", "import_path", JSON_STRING, &import))
        return false;
    if (!agent)
        return problem_set(problem, "agent", "must be given");
    if (!harness == !import)
        return problem_set(problem, "agent", "must have exactly one of harness and import_path");
    if (import)
        return problem_set(problem, "agent.import_path",
                           "no Python of the caller's runs in the service: offer the "
                           "agent by a handler, or as a shell command");
    return problem_none(problem, agent, "agent", "mcp_servers", "harnesses have the tools that they bring") &&
           problem_none(problem, agent, "agent", "skills_path", "bring skills along with runtime.prepare") &&
           read_harness(agent, json_string_value(harness), task_part(task, "agent"), problem) &&
           read_settings(agent, task, problem) && read_env(agent, task, problem) && read_seed(body, task, problem);
}
