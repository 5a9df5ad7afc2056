#include "client/gateway/polar/task_request_runtime.h"

#include <stdio.h>
#include <string.h>

#include "client/gateway/bodies/task_part.h"
#include "common/base/cleanup.h"

enum { ATTEMPTS_MAX = 10 };

static const struct {
    const char *theirs, *ours;
} limits[] = {{"cpus", "cpus"}, {"memory_mb", "memory_mib"}, {"storage_mb", "disk_mib"}};

static const struct {
    const char *name, *why;
} without[] = {
    {"eval_prepare", "an evaluator's sandbox has the agent's files; nothing else is prepared in it"},
    {"direct_exec_init_command", "there is no such hook: put it into prepare, or into the image's environment"},
    {"gpus", "sandboxes have no devices of the machine"},
    {"internet_volumes", "the host's paths are not mounted"},
    {"import_path", "no Python of the caller's runs in the service"},
    {"kwargs", "there is no runtime of the caller's to take them"},
};

static bool set(struct problem *problem, size_t number, const char *name, const char *words)
{
    char field[64];
    snprintf(field, sizeof(field), "runtime.prepare.%zu.%s", number, name);
    return problem_set(problem, field, "%s", words);
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

static bool is_tar(const char *path)
{
    static const char *const ends[] = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz"};
    const size_t len = strlen(path);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (len > strlen(ends[i]) && strcmp(path + len - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

static bool upload(const json_t *action, size_t number, bool is_file, json_t *task, struct problem *problem)
{
    json_t *source = json_object_get(action, "source"), *target = json_object_get(action, "target");
    if (!json_is_string(source) || !json_is_string(target))
        return set(problem, number, json_is_string(source) ? "target" : "source", "must be given");
    if (json_array_size(json_object_get(task, "setup")) > 0)
        return set(problem, number, "type", "an upload behind a command: all files are there before the commands");
    if (is_file && is_tar(json_string_value(source)))
        return set(problem, number, "source", "a tar is unpacked: put it into a directory, and upload that");
    if (!json_object_get(task, "files"))
        json_object_set_new(task, "files", json_array());
    json_array_append_new(json_object_get(task, "files"), json_pack("{s:O,s:O}", "path", target, "source", source));
    return true;
}

static void append_env(const json_t *env, struct buffer *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)env, name, value)
    {
        buffer_printf(out, "export %s=", name);
        buffer_append_quoted(out, json_is_string(value) ? json_string_value(value) : "");
        buffer_append_str(out, "\n");
    }
}

/* Its command in a shell of its own, and again as often as it says. */
static bool execute(const json_t *action, size_t number, json_t *task, struct problem *problem)
{
    const char *command = json_string_value(json_object_get(action, "command"));
    const char *cwd = json_string_value(json_object_get(action, "cwd"));
    const json_t *attempts = json_object_get(action, "max_attempts"),
                 *wait = json_object_get(action, "retry_backoff_seconds");
    const json_int_t count = json_is_integer(attempts) ? json_integer_value(attempts) : 1;
    AUTO_BUFFER inner = {0};
    AUTO_BUFFER whole = {0};
    if (!command || !*command)
        return set(problem, number, "command", "must be given");
    if (count < 1 || count > ATTEMPTS_MAX)
        return set(problem, number, "max_attempts", "must be 1 to 10");
    append_env(json_object_get(action, "env"), &inner);
    if (cwd) {
        buffer_append_str(&inner, "cd ");
        buffer_append_quoted(&inner, cwd);
        buffer_append_str(&inner, " || exit\n");
    }
    buffer_append_str(&inner, command);
    buffer_append(&inner, "", 1);
    if (count == 1 && inner.len == strlen(command) + 1) {
        buffer_append_str(&whole, command);
    } else {
        buffer_printf(&whole, "for try in $(seq %lld); do bash -c ", (long long)count);
        buffer_append_quoted(&whole, inner.failed ? "" : (const char *)inner.data);
        buffer_printf(&whole, " && exit 0; status=$?; [ $try -eq %lld ] || sleep %g; done; exit $status",
                      (long long)count, json_is_number(wait) ? json_number_value(wait) : 0.0);
    }
    if (!json_object_get(task, "setup"))
        json_object_set_new(task, "setup", json_array());
    return json_array_append_new(json_object_get(task, "setup"), json_stringn((const char *)whole.data, whole.len)) ==
               0 ||
           set(problem, number, "command", "must be UTF-8");
}

static const struct {
    const char *name;
    json_type type;
} fields[] = {
    {"cwd", JSON_STRING}, {"env", JSON_OBJECT}, {"max_attempts", JSON_INTEGER}, {"retry_backoff_seconds", JSON_REAL}};

static bool check_action(const json_t *action, size_t number, struct problem *problem)
{
    char place[40];
    json_t *value;
    snprintf(place, sizeof(place), "runtime.prepare.%zu", number);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (!problem_read(problem, action, place, fields[i].name, fields[i].type, &value))
            return false;
    return true;
}

static bool prepare(const json_t *action, size_t number, json_t *task, struct problem *problem)
{
    const char *type = json_string_value(json_object_get(action, "type"));
    if (!check_action(action, number, problem))
        return false;
    if (type && strcmp(type, "exec") == 0)
        return execute(action, number, task, problem);
    if (type && (strcmp(type, "upload_file") == 0 || strcmp(type, "upload_dir") == 0))
        return upload(action, number, strcmp(type, "upload_file") == 0, task, problem);
    return set(problem, number, "type", "must be upload_file, upload_dir or exec");
}

/* ---- the rest ---------------------------------------------------------------------------------------------- */

/* A network by its name is a grant of the worker's operator; Polar's usual words mean what there is. */
static bool read_network(const json_t *runtime, json_t *task, struct problem *problem)
{
    static const char *const usual[] = {"host", "none", "bridge", ""};
    json_t *network;
    if (!problem_read(problem, runtime, "runtime", "network", JSON_STRING, &network))
        return false;
    for (size_t i = 0; network && i < sizeof(usual) / sizeof(*usual); i++)
        if (strcmp(json_string_value(network), usual[i]) == 0)
            network = NULL;
    if (network)
        json_object_set_new(task, "network", json_pack("[O]", network));
    return true;
}

static bool read_simple(const json_t *runtime, json_t *task, struct problem *problem)
{
    json_t *image, *workdir, *env, *value;
    if (!problem_read(problem, runtime, "runtime", "image", JSON_STRING, &image) ||
        !problem_read(problem, runtime, "runtime", "workdir", JSON_STRING, &workdir) ||
        !problem_read(problem, runtime, "runtime", "env", JSON_OBJECT, &env))
        return false;
    if (!image)
        return problem_set(problem, "runtime.image", "must be given");
    json_object_set(task, "image", image);
    if (workdir)
        json_object_set(task, "workdir", workdir);
    if (json_object_size(env) > 0)
        json_object_set_new(task, "env", json_copy(env));
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        if (!problem_read(problem, runtime, "runtime", limits[i].theirs, JSON_INTEGER, &value))
            return false;
        if (value)
            json_object_set(task_part(task, "limits"), limits[i].ours, value);
    }
    return true;
}

bool task_request_runtime(const json_t *body, json_t *task, struct problem *problem)
{
    json_t *runtime, *actions;
    if (!problem_read(problem, body, "", "runtime", JSON_OBJECT, &runtime))
        return false;
    if (!runtime)
        return true;
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        if (!problem_none(problem, runtime, "runtime", without[i].name, without[i].why))
            return false;
    if (!problem_read(problem, runtime, "runtime", "prepare", JSON_ARRAY, &actions))
        return false;
    for (size_t i = 0; i < json_array_size(actions); i++)
        if (!prepare(json_array_get(actions, i), i, task, problem))
            return false;
    return read_simple(runtime, task, problem) && read_network(runtime, task, problem);
}
