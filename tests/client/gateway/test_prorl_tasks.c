/* Tasks of ProRL's instances: each is one that the schema takes, and judged as the importer of rows judges it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/gateway/prorl/swe_patch.h"
#include "client/gateway/prorl/task.h"
#include "schemas/task/task.h"

static const char swe_bench[] =
    "{\"instance_id\": \"astropy__astropy-1\", \"repo\": \"astropy/astropy\", \"base_commit\": \"0123abcd\", "
    "\"problem_statement\": \"It breaks.\","
    " \"patch\": \"diff --git a/setup.cfg b/setup.cfg\\n\", \"test_patch\": \"diff --git a/astropy/tests/test_a.py "
    "b/astropy/tests/test_a.py\\ndiff --git a/data/x.json b/data/x.json\\n\","
    " \"FAIL_TO_PASS\": \"[\\\"t::a\\\"]\", \"PASS_TO_PASS\": [\"t::b\"]}";
static const char django[] =
    "{\"instance_id\": \"django__django-2\", \"repo\": \"django/django\", \"base_commit\": \"0123abcd\", "
    "\"problem_statement\": \"It's odd.\","
    " \"image_name\": \"docker.io/swebench/sweb.eval.x86_64.django_1776_django-2:latest\", \"patch\": \"\","
    " \"test_patch\": \"diff --git a/tests/admin/test_it.py b/tests/admin/test_it.py\\n\", \"FAIL_TO_PASS\": [\"test_a "
    "(x)\"]}";
static const char r2e[] =
    "{\"repo_name\": \"pandas\", \"commit_hash\": \"abc\", \"docker_image\": "
    "\"namanjain12/pandas_final:abc\", \"problem_statement\": \"A report: [ISSUE] It is slow. [/ISSUE]\","
    " \"expected_output_json\": \"{\\\"\\\\u001b[1mtest_a\\\\u001b[0m\\\": \\\"PASSED\\\", "
    "\\\"test_b - why\\\": \\\"FAILED\\\"}\"}";

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

/* The task, once the schema has taken it. */
static json_t *make(const char *instance, const char *params)
{
    json_t *given = parsed(instance), *settings = parsed(params);
    char why[WHY_SIZE] = "";
    struct refusal no;
    const struct task_plan plan = {.instance = given,
                                   .params = settings,
                                   .source = task_source(given),
                                   .timeout_ms = 300000,
                                   .images = "/images/{sif}"};
    json_t *task = task_make(&plan, why);
    if (!task)
        fail_msg("%s", why);
    char *text = json_dumps(task, JSON_COMPACT);
    struct task *read = task_parse(slice_from_str(text), &no);
    if (!read)
        fail_msg("%s: %s: %s", no.field, no.text, text);
    task_destroy(read);
    free(text);
    json_decref(given);
    json_decref(settings);
    return task;
}

static void assert_refused(const char *instance, const char *words)
{
    json_t *given = parsed(instance), *settings = json_object();
    char why[WHY_SIZE] = "";
    const struct task_plan plan = {
        .instance = given, .params = settings, .source = task_source(given), .timeout_ms = 300000};
    assert_null(task_make(&plan, why));
    if (!strstr(why, words))
        fail_msg("%s", why);
    json_decref(given);
    json_decref(settings);
}

static const json_t *at(const json_t *value, const char *path)
{
    char copy[128], *rest = copy;
    snprintf(copy, sizeof(copy), "%s", path);
    for (char *name; value && (name = strsep(&rest, "."));)
        value = json_object_get(value, name);
    return value;
}

static void assert_text(const json_t *task, const char *path, const char *text)
{
    const char *found = json_string_value(at(task, path));
    if (!found || strcmp(found, text) != 0)
        fail_msg("%s is %s, not %s", path, found ? found : "missing", text);
}

static void assert_whole(const json_t *task, const char *path, long value)
{
    if (json_integer_value(at(task, path)) != value)
        fail_msg("%s is %lld", path, (long long)json_integer_value(at(task, path)));
}

/* ---- questions ------------------------------------------------------------------------------------- */

static void mathematics_is_sampled_as_the_params_say(void **state)
{
    (void)state;
    json_t *task = make(
        "{\"data_source\": \"deepscaler\", \"instance_id\": \"a b/c\", \"trajectory_id\": 3, \"prompt\": [{\"role\": "
        "\"user\", \"content\": \"1+1?\"}], \"reward_model\": \"{\\\"ground_truth\\\": \\\"so \\\\\\\\boxed{2}\\\"}\"}",
        "{\"temperature\": 0.6, \"top_p\": 0.9, \"seed\": 7, \"max_output_tokens\": 3072, \"max_iterations\": 35, "
        "\"timeout\": 120.0, \"max_model_len\": 8192, \"model\": \"hosted_vllm/x\", \"min_p\": \"no number\"}");
    assert_text(task, "task", "a-b-c");
    assert_text(task, "prompt", "1+1?");
    assert_text(task, "eval.kind", "math");
    assert_text(task, "eval.answer", "2");
    assert_whole(task, "agent.max_turns", 35);
    assert_whole(task, "sampling.max_tokens", 3072);
    assert_whole(task, "sampling.seed", 7);
    assert_whole(task, "limits.context_tokens", 8192);
    assert_whole(task, "limits.run_s", 120);
    assert_whole(task, "limits.total_s", 250);
    assert_null(at(task, "sampling.min_p"));
    assert_whole(task, "metadata.trajectory_id", 3);
    json_decref(task);
}

static void what_is_not_said_is_prorls_own(void **state)
{
    (void)state;
    json_t *task = make("{\"data_source\": \"math_dapo\", \"prompt\": \"1+1?\", \"reward_model\": {\"ground_truth\": "
                        "2}, \"extra_info\": "
                        "{\"split\": \"train\", \"index\": 4}}",
                        "{}");
    assert_text(task, "task", "math_dapo_unknown_train_4");
    assert_text(task, "eval.answer", "2");
    assert_whole(task, "agent.max_turns", 2);
    assert_whole(task, "limits.run_s", 300);
    json_decref(task);
}

static void science_is_a_choice_where_its_truth_is_letters(void **state)
{
    (void)state;
    json_t *choice = make(
        "{\"data_source\": \"stem\", \"prompt\": \"Which?\", \"reward_model\": {\"ground_truth\": \"B\"}}", "{}");
    json_t *number = make("{\"data_source\": \"stem\", \"prompt\": \"How many?\", \"answer\": \"\\\\frac12\"}", "{}");
    assert_text(choice, "eval.kind", "choice");
    assert_text(number, "eval.kind", "math");
    json_decref(choice);
    json_decref(number);
}

static void programs_bring_their_tests(void **state)
{
    (void)state;
    json_t *task = make(
        "{\"data_source\": \"codeforces\", \"prompt\": \"[{\\\"role\\\": \\\"user\\\", \\\"content\\\": "
        "\\\"Add.\\\"}]\","
        " \"reward_model\": {\"ground_truth\": \"{\\\"inputs\\\": [\\\"1 2\\\"], \\\"outputs\\\": [\\\"3\\\"]}\"}}",
        "{\"is_reasoning_task\": true}");
    assert_text(task, "prompt", "Add.");
    assert_text(task, "eval.kind", "code");
    assert_text(task, "agent.kind", "chat");
    assert_whole(task, "limits.eval_s", 120);
    json_decref(task);
}

static void any_other_source_is_a_handlers(void **state)
{
    (void)state;
    json_t *task = make("{\"data_source\": \"mine\", \"prompt\": \"x\", \"reward_model\": {\"ground_truth\": [1, 2]}}",
                        "{}");
    assert_text(task, "eval.kind", "mine");
    assert_text(task, "eval.config.data_source", "mine");
    assert_int_equal(json_array_size(at(task, "eval.config.ground_truth")), 2);
    json_decref(task);
}

static void what_cannot_be_a_task_is_said(void **state)
{
    (void)state;
    assert_refused("{\"data_source\": \"math\"}", "no prompt");
    assert_refused("{\"data_source\": \"math\", \"prompt\": \"x\"}", "ground_truth");
    assert_refused("{\"data_source\": \"math\", \"prompt\": [{\"role\": \"tool\", \"content\": \"x\"}], \"answer\": 1}",
                   "prompt[0]");
    assert_refused("{\"data_source\": \"apps\", \"prompt\": \"x\", \"answer\": \"{\"}", "not JSON");
    assert_refused("{\"prompt\": \"x\"}", "FAIL_TO_PASS");
    assert_refused(r2e, "--prorl-images");
}

/* ---- software engineering ------------------------------------------------------------------------------- */

/* The importer's task of the same row. */
static json_t *imported(const char *instance)
{
    char path[] = "/tmp/sluice-prorl-XXXXXX.jsonl", command[1024];
    const char *source = getenv("SLUICE_SOURCE_DIR");
    const int fd = mkstemps(path, 6);
    assert_true(fd >= 0 && write(fd, instance, strlen(instance)) == (ssize_t)strlen(instance));
    close(fd);
    snprintf(command, sizeof(command),
             "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=%s/client/python %s -m sluice.importers swe %s --image-template "
             "'/images/{sif}' 2>/dev/null",
             source ? source : ".", access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3", path);
    FILE *told = popen(command, "r");
    assert_non_null(told);
    json_t *task = json_loadf(told, JSON_DISABLE_EOF_CHECK, NULL);
    pclose(told);
    unlink(path);
    return task;
}

static void assert_judged_as_imported(const char *instance)
{
    static const char *const parts[] = {"prompt", "image", "workdir", "setup", "eval", "agent.hidden"};
    json_t *task = make(instance, "{}"), *theirs = imported(instance);
    if (!theirs) { /* there is no Python here */
        json_decref(task);
        skip();
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const json_t *one = at(task, parts[i]), *other = at(theirs, parts[i]);
        char *says = json_dumps(one, JSON_ENCODE_ANY | JSON_SORT_KEYS),
             *should = json_dumps(other, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        if ((one || other) && !json_equal(one, other))
            fail_msg("%s:\n%s\n%s", parts[i], says ? says : "missing", should ? should : "missing");
        free(says);
        free(should);
    }
    json_decref(task);
    json_decref(theirs);
}

static void repositories_are_judged_as_the_importer_has_them(void **state)
{
    (void)state;
    assert_judged_as_imported(swe_bench);
    assert_judged_as_imported(django);
    assert_judged_as_imported(r2e);
}

/* Were each name sought among all before it, this would take many minutes, in which a gateway answers nobody. */
static void a_patch_of_very_many_files_is_read_soon(void **state)
{
    enum { FILES = 400000 };
    struct buffer patch = {0};
    (void)state;
    for (unsigned i = 0; i < FILES; i++)
        buffer_printf(&patch, "diff --git a/x b/%u\n", i);
    buffer_append(&patch, "", 1);
    json_t *files = swe_patch_files((const char *)patch.data);
    assert_int_equal(json_array_size(files), FILES);
    json_decref(files);
    buffer_finish(&patch);
}

static void a_patch_is_of_each_file_once(void **state)
{
    (void)state;
    json_t *files = swe_patch_files("--- a/x.py\n+++ b/x.py\n@@\n--- a/y.py\n+++ b/y.py\n");
    assert_int_equal(json_array_size(files), 2);
    assert_string_equal(json_string_value(json_array_get(files, 1)), "y.py");
    json_decref(files);
    files = swe_patch_files("diff --git a/a b/c.py b/a b/c.py\ndiff --git a/a b/c.py b/a b/c.py\n");
    assert_int_equal(json_array_size(files), 1);
    json_decref(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mathematics_is_sampled_as_the_params_say),
        cmocka_unit_test(what_is_not_said_is_prorls_own),
        cmocka_unit_test(science_is_a_choice_where_its_truth_is_letters),
        cmocka_unit_test(programs_bring_their_tests),
        cmocka_unit_test(any_other_source_is_a_handlers),
        cmocka_unit_test(what_cannot_be_a_task_is_said),
        cmocka_unit_test(repositories_are_judged_as_the_importer_has_them),
        cmocka_unit_test(a_patch_is_of_each_file_once),
        cmocka_unit_test(a_patch_of_very_many_files_is_read_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
