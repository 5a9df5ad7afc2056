#include "client/gateway/sandboxfusion/code_task.h"

#include <math.h>

#include "client/gateway/json_text.h"
#include "client/gateway/sandboxfusion/runner.h"

#define TIMEOUT_S 10.0
enum {
    TIMEOUT_MAX_S = 3600,
    MEMORY_MIB = 2048,
    MEMORY_LEAST_MIB = 64,
    MEMORY_MAX_MIB = 1 << 20,
    MORE_S = 10,
    QUEUE_S = 3600
};

static double seconds_of(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    const double seconds = json_number_value(value);
    if (!json_is_number(value))
        return TIMEOUT_S;
    return seconds < 0.001 ? 0.001 : seconds > TIMEOUT_MAX_S ? TIMEOUT_MAX_S : seconds;
}

static json_int_t memory_of(const json_t *body)
{
    const json_t *value = json_object_get(body, "memory_limit_MB");
    const double mib = json_number_value(value);
    if (!json_is_number(value) || mib <= 0)
        return MEMORY_MIB;
    return mib < MEMORY_LEAST_MIB ? MEMORY_LEAST_MIB : mib > MEMORY_MAX_MIB ? MEMORY_MAX_MIB : (json_int_t)mib;
}

static void add_file(json_t *files, const char *path, const json_t *content, const char *form)
{
    json_array_append_new(files, json_pack("{s:s,s:O}", "path", path, form, content));
}

/* The code, its input, the files that came with it, and the script. */
static json_t *files_of(const json_t *body, const struct runner_plan *plan)
{
    struct buffer script = {0};
    json_t *files = json_array(), *content;
    const char *path;
    runner_write(plan, &script);
    json_t *text = json_stringn(script.data ? (const char *)script.data : "", script.len);
    add_file(files, RUNNER_FOLDER "/run", text, "text");
    json_decref(text);
    buffer_finish(&script);
    json_object_foreach(json_object_get(body, "files"), path, content)
    {
        if (json_is_string(content))
            add_file(files, path, content, "base64");
    }
    add_file(files, plan->language->file, json_object_get(body, "code"), "text");
    if (plan->has_stdin)
        add_file(files, RUNNER_FOLDER "/stdin", json_object_get(body, "stdin"), "text");
    return files;
}

bool code_task_write(const json_t *body, const char *image, struct buffer *ret)
{
    const struct runner_plan plan = {.language = language_find(json_string_value(json_object_get(body, "language"))),
                                     .compile_s = seconds_of(body, "compile_timeout"),
                                     .run_s = seconds_of(body, "run_timeout"),
                                     .has_stdin = json_string_length(json_object_get(body, "stdin")) > 0,
                                     .fetched = json_object_get(body, "fetch_files")};
    const json_int_t run_s = (json_int_t)ceil(plan.compile_s + plan.run_s) + MORE_S;
    json_t *task = json_pack("{s:s,s:{s:s},s:{s:o,s:[s]},s:{s:I,s:I,s:I,s:I}}", "task", "run_code", "agent", "kind",
                             "oracle", "solution", "files", files_of(body, &plan), "commands",
                             "bash " RUNNER_FOLDER "/run", "limits", "run_s", run_s, "total_s", run_s + QUEUE_S,
                             "memory_mib", memory_of(body), "output_bytes", (json_int_t)RUNNER_PRINTS_BYTES);
    if (!task)
        return false;
    if (image)
        json_object_set_new(task, "image", json_string(image));
    json_text_append_value(ret, task);
    json_decref(task);
    return !ret->failed;
}
