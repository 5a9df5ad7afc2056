#include "client/gateway/prorl/task_swe.h"

#include <string.h>

#include "client/gateway/prorl/swe_patch.h"
#include "client/gateway/prorl/swe_scrub.h"

#define SWE_PYTEST "pytest -rA --color=no"
#define REPOSITORY "/testbed"
#define ACTIVATE "source /opt/miniconda3/bin/activate && conda activate testbed"
#define ASK                                                                                                            \
    "The repository is in " REPOSITORY                                                                                 \
    ". Solve this issue by changing its files; the tests that judge it are hidden.\n\n"

enum { INIT_S = 900, EVAL_S = 1800, COMMAND_S = 300, MEMORY_MIB = 8192, DISK_MIB = 8192, PROCESSES = 1024 };

static const struct runner {
    const char *repository, *command, *parser;
    bool has_witness;
} runners[] = {
#define RUNNER(repository, command, parser, has_witness) {repository, command, parser, has_witness},
#include "client/gateway/prorl/swe_runners.def"
#undef RUNNER
};

static const struct runner *runner_of(const char *repository)
{
    static const struct runner pytest = {"", SWE_PYTEST, "pytest", true};
    for (size_t i = 0; i < sizeof(runners) / sizeof(*runners); i++)
        if (strcmp(runners[i].repository, repository) == 0)
            return &runners[i];
    return &pytest;
}

/* ---- its image ------------------------------------------------------------------------------------------ */

/* TEMPLATE with {image}, {sif} and {instance} filled in. */
static void fill(const char *template, const char *name, const char *instance, struct buffer *ret)
{
    for (const char *at = template; *at;) {
        if (strncmp(at, "{image}", 7) == 0) {
            buffer_append_str(ret, name);
            at += 7;
        } else if (strncmp(at, "{sif}", 5) == 0) {
            const size_t len = strlen(name);
            for (const char *c = name + (*name == '/'); *c; c++)
                buffer_append(ret, *c == '/' ? "_" : c, 1);
            buffer_append_str(ret, len > 4 && strcmp(name + len - 4, ".sif") == 0 ? "" : ".sif");
            at += 5;
        } else if (strncmp(at, "{instance}", 10) == 0) {
            buffer_append_str(ret, instance);
            at += 10;
        } else {
            buffer_append(ret, at++, 1);
        }
    }
}

/* What it calls its image, without a tag, or SWE-bench's name for it. */
static void image_name(const json_t *instance, const char *id, struct buffer *ret)
{
    static const char *const columns[] = {"docker_image", "image_name", "image"};
    const char *given = NULL;
    for (size_t i = 0; !given && i < sizeof(columns) / sizeof(*columns); i++)
        given = instance_text(instance, columns[i]);
    if (given) {
        const char *last = strrchr(given, '/');
        last = last ? last : given;
        buffer_append(ret, given, (size_t)(last - given) + strcspn(last, ":@"));
        return;
    }
    buffer_append_str(ret, "swebench/sweb.eval.x86_64.");
    for (; *id; id++) {
        const char low = *id >= 'A' && *id <= 'Z' ? (char)(*id - 'A' + 'a') : *id;
        if (strncmp(id, "__", 2) == 0) {
            buffer_append_str(ret, "_1776_");
            id++;
        } else {
            buffer_append(ret, &low, 1);
        }
    }
}

static bool add_image(const struct task_plan *plan, json_t *task, char why[WHY_SIZE])
{
    const char *id = instance_text(plan->instance, "instance_id");
    struct buffer name = {0}, path = {0};
    image_name(plan->instance, id ? id : "", &name);
    buffer_append(&name, "", 1);
    const char *text = name.failed ? "" : (const char *)name.data;
    if (*text == '/')
        buffer_append_str(&path, text);
    else if (plan->images)
        fill(plan->images, text, id ? id : "", &path);
    else
        why_not(why, "its image is %.200s: the gateway's --prorl-images says where prepared images are", text);
    if (path.len > 0)
        json_object_set_new(task, "image", json_stringn((char *)path.data, path.len));
    const bool is_found = path.len > 0;
    buffer_finish(&name);
    buffer_finish(&path);
    return is_found;
}

/* ---- its tests -------------------------------------------------------------------------------------------- */

/* What no patch may change, but for what the gold patch does. */
static json_t *protected_files(const json_t *instance)
{
    static const char *const names[] = {"conftest.py",      "pytest.ini",       ".pytest.ini",
                                        "tox.ini",          "setup.cfg",        "pyproject.toml",
                                        "sitecustomize.py", "usercustomize.py", "*.pth"};
    const char *gold = instance ? instance_text(instance, "patch") : NULL;
    json_t *kept = json_array(), *changed = swe_patch_files(gold ? gold : "");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        bool is_changed = false;
        for (size_t k = 0; k < json_array_size(changed); k++) {
            const char *file = json_string_value(json_array_get(changed, k)), *slash = strrchr(file, '/');
            is_changed |= strcmp(slash ? slash + 1 : file, names[i]) == 0;
        }
        if (!is_changed)
            json_array_append_new(kept, json_string(names[i]));
    }
    json_decref(changed);
    return kept;
}

static bool judge_swe_bench(const json_t *instance, json_t *swe, char why[WHY_SIZE])
{
    const char *repository = instance_text(instance, "repo"), *tests = instance_text(instance, "test_patch");
    const char *commit = instance_text(instance, "base_commit");
    const struct runner *runner = runner_of(repository ? repository : "");
    json_t *fail_to_pass = instance_part(instance, "FAIL_TO_PASS"),
           *pass_to_pass = instance_part(instance, "PASS_TO_PASS");
    struct buffer command = {0};
    buffer_append_str(&command, runner->command);
    swe_patch_tests(runner->repository, tests ? tests : "", &command);
    const bool is_whole = tests && json_array_size(fail_to_pass) > 0 && !command.failed;
    if (!is_whole) {
        why_not(why, "the instance has no test_patch and FAIL_TO_PASS, nor expected_output_json");
    } else {
        json_object_set_new(swe, "log_parser", json_string(runner->parser));
        if (!runner->has_witness && strncmp(runner->parser, "pytest", 6) == 0)
            json_object_set_new(swe, "witness", json_string("none"));
        json_object_set_new(swe, "test_patch", json_string(tests));
        json_object_set_new(swe, "prepare", json_string(ACTIVATE));
        json_object_set_new(swe, "test_command", json_stringn((char *)command.data, command.len));
        json_object_set(swe, "fail_to_pass", fail_to_pass);
        json_object_set_new(swe, "protected", protected_files(instance));
    }
    if (json_array_size(pass_to_pass) > 0)
        json_object_set(swe, "pass_to_pass", pass_to_pass);
    if (commit)
        json_object_set_new(swe, "base_commit", json_string(commit));
    json_decref(fail_to_pass);
    json_decref(pass_to_pass);
    buffer_finish(&command);
    return is_whole;
}

/* A test's name without colours and reasons. */
static json_t *plain_name(const char *name)
{
    struct buffer plain = {0};
    for (const char *at = name; *at && strncmp(at, " - ", 3) != 0; at++) {
        if (*at != '\x1b')
            buffer_append(&plain, at, 1);
        else
            at += strcspn(at, "m") - (strchr(at, 'm') ? 0 : 1);
    }
    json_t *text = json_stringn(plain.data ? (char *)plain.data : "", plain.len);
    buffer_finish(&plain);
    return text;
}

static void judge_r2e(const json_t *expected, json_t *task, json_t *swe)
{
    json_t *statuses = json_object(), *status;
    const char *name;
    json_object_foreach((json_t *)(uintptr_t)expected, name, status)
    {
        json_t *plain = plain_name(name);
        if (json_string_length(plain) > 0)
            json_object_set(statuses, json_string_value(plain), status);
        json_decref(plain);
    }
    json_object_set_new(swe, "log_parser", json_string("r2e"));
    json_object_set_new(swe, "expected", statuses);
    json_object_set_new(swe, "prepare",
                        json_string("export PATH=" REPOSITORY "/.venv/bin:$PATH; ln -sfn /r2e_tests r2e_tests"));
    json_object_set_new(swe, "test_command", json_string("bash run_tests.sh"));
    json_t *protected = protected_files(NULL);
    json_array_append_new(protected, json_string("run_tests.sh"));
    json_array_append_new(protected, json_string("r2e_tests"));
    json_array_append_new(protected, json_string("r2e_tests/*"));
    json_object_set_new(swe, "protected", protected);
    json_object_set_new(json_object_get(task, "agent"), "hidden",
                        json_pack("[s,s,s]", "/r2e_tests", REPOSITORY "/r2e_tests", REPOSITORY "/run_tests.sh"));
}

/* ---- all of it ---------------------------------------------------------------------------------------------- */

static void add_limits(json_t *task)
{
    static const struct {
        const char *name;
        int value;
    } limits[] = {{"init_s", INIT_S},         {"eval_s", EVAL_S},     {"command_s", COMMAND_S},
                  {"memory_mib", MEMORY_MIB}, {"disk_mib", DISK_MIB}, {"processes", PROCESSES}};
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++)
        json_object_set_new(json_object_get(task, "limits"), limits[i].name, json_integer(limits[i].value));
}

static void add_setup(const json_t *swe, json_t *task)
{
    const char *base = json_string_value(json_object_get(swe, "base_commit"));
    struct buffer command = {0};
    swe_scrub(REPOSITORY, base ? base : "HEAD", &command);
    json_object_set_new(task, "setup", json_pack("[s%]", (char *)command.data, command.len));
    buffer_finish(&command);
}

/* What stands between [ISSUE] and [/ISSUE], where it has them and there is something. */
static struct slice issue_of(const char *text)
{
    const char *begin = strstr(text, "[ISSUE]"), *end = begin ? strstr(begin, "[/ISSUE]") : NULL;
    if (!end)
        return slice_from_str(text);
    begin += strlen("[ISSUE]");
    while (begin < end && strchr(" \t\r\n", *begin))
        begin++;
    while (end > begin && strchr(" \t\r\n", end[-1]))
        end--;
    return end > begin ? slice_of(begin, (size_t)(end - begin)) : slice_from_str(text);
}

static void add_prompt(const json_t *instance, json_t *task)
{
    const char *text = instance_text(instance, "problem_statement");
    struct buffer prompt = {0};
    if (!text)
        return;
    const struct slice issue = issue_of(text);
    buffer_append_str(&prompt, ASK);
    buffer_append(&prompt, issue.data, issue.len);
    json_object_set_new(task, "prompt", json_stringn((char *)prompt.data, prompt.len));
    buffer_finish(&prompt);
    json_object_del(task, "messages");
}

bool task_swe_judge(const struct task_plan *plan, json_t *task, char why[WHY_SIZE])
{
    json_t *swe = json_object(), *expected = instance_part(plan->instance, "expected_output_json");
    bool is_judged = true;
    if (json_object_size(expected) > 0)
        judge_r2e(expected, task, swe);
    else
        is_judged = judge_swe_bench(plan->instance, swe, why);
    json_decref(expected);
    add_setup(swe, task);
    json_object_set_new(task, "eval", json_pack("{s:s,s:o}", "kind", "swe", "swe", swe));
    json_object_set_new(task, "workdir", json_string(REPOSITORY));
    add_limits(task);
    add_prompt(plan->instance, task);
    return is_judged && add_image(plan, task, why);
}
