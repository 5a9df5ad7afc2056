/* Tasks of NeMo Gym's rows and of Polar's requests: each is one that the schema takes, and says what was asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/gateway/gym/row.h"
#include "client/gateway/json_text.h"
#include "client/gateway/polar/task_request.h"
#include "common/base/cleanup.h"
#include "schemas/task/task.h"

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

static void check_schema(const json_t *task)
{
    AUTO_BUFFER text = {0};
    struct refusal no;
    json_text_append_value(&text, task);
    struct task *read = task_parse(buffer_peek(&text), &no);
    if (!read)
        fail_msg("%s: %s", no.field, no.text);
    task_destroy(read);
}

/* Compares members of the task with those of `wanted`, deeply; others are not looked at. */
static void check_has(const json_t *task, const char *wanted)
{
    json_t *members = parsed(wanted), *value;
    const char *name;
    json_object_foreach(members, name, value)
    {
        AUTO_BUFFER given = {0};
        AUTO_BUFFER like = {0};
        const json_t *own = json_object_get(task, name);
        if (!own)
            fail_msg("there is no %s", name);
        json_text_append_value(&given, own);
        json_text_append_value(&like, value);
        if (!json_equal(own, value))
            fail_msg("%s is %.*s, not %.*s", name, (int)given.len, (const char *)given.data, (int)like.len,
                     (const char *)like.data);
    }
    json_decref(members);
}

static void check_row(const char *text, const char *wanted)
{
    struct fail why;
    json_t *row = parsed(text), *task = row_task(row, &why);
    if (!task)
        fail_msg("%s", why.text);
    check_schema(task);
    check_has(task, wanted);
    json_decref(task);
    json_decref(row);
}

#define ASKED "\"responses_create_params\": {\"input\": \"q\"}"

static void a_row_is_judged_by_what_it_holds(void **state)
{
    (void)state;
    check_row("{" ASKED ", \"expected_answer\": 0.5, \"uuid\": \"a b/c\"}",
              "{\"task\": \"a-b-c\", \"prompt\": \"q\", \"eval\": {\"kind\": \"math\", \"answer\": \"0.5\"}}");
    check_row("{" ASKED ", \"expected_answer\": \" B \", \"options\": [{\"A\": \"x\"}, {\"B\": \"y\"}], \"id\": 7}",
              "{\"task\": \"row-7\", \"eval\": {\"kind\": \"choice\", \"answer\": \"B\", \"options\": {\"A\": \"x\", "
              "\"B\": \"y\"}}}");
    check_row("{" ASKED ", \"expected_answer\": \"A\", \"options\": [{\"A\": \"x\"}], \"grading_mode\": "
              "\"strict_single_letter_boxed\"}",
              "{\"eval\": {\"kind\": \"choice\", \"answer\": \"A\", \"extract\": \"box\"}}");
    check_row(
        "{" ASKED
        ", \"verifier_metadata\": {\"unit_tests\": \"{\\\"inputs\\\": [\\\"1\\\\n[2]\\\"], \\\"outputs\\\": [3], "
        "\\\"fn_name\\\": \\\"f\\\"}\"}}",
        "{\"eval\": {\"kind\": \"code\", \"tests\": {\"inputs\": [[1, [2]]], \"outputs\": [3], \"fn_name\": \"f\"}}, "
        "\"limits\": {\"eval_s\": 120}}");
    check_row("{" ASKED
              ", \"verifier_metadata\": {\"unit_tests\": {\"test_cases\": [{\"input\": [\"1\", \"2\"], \"output\": "
              "3}]}}}",
              "{\"eval\": {\"kind\": \"code\", \"tests\": {\"inputs\": [\"1\\n2\"], \"outputs\": [\"3\"]}}}");
}

static void what_a_row_asks_is_the_prompt_and_its_sampling_counts(void **state)
{
    (void)state;
    check_row(
        "{\"responses_create_params\": {\"input\": [{\"role\": \"developer\", \"content\": \"s\"}, {\"role\": "
        "\"user\", "
        "\"content\": [{\"type\": \"input_text\", \"text\": \"a\"}, {\"type\": \"input_text\", \"text\": \"b\"}]}], "
        "\"temperature\": 0.5, \"max_output_tokens\": 9}, \"expected_answer\": \"1\"}",
        "{\"messages\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"ab\"}], "
        "\"sampling\": {\"temperature\": 0.5, \"max_tokens\": 9}}");
    check_row("{\"responses_create_params\": {\"input\": \"q\", \"top_p\": 0.9, \"tools\": [{\"type\": \"function\", "
              "\"name\": \"bash\"}]}, \"task\": {\"task\": \"t\", \"files\": null, \"sampling\": {\"top_p\": 1, "
              "\"max_tokens\": 5}}}",
              "{\"task\": \"t\", \"prompt\": \"q\", \"agent\": {\"tools\": [\"bash\"]}, \"sampling\": {\"top_p\": 0.9, "
              "\"max_tokens\": 5}}");
}

static void check_request(const char *text, const char *wanted)
{
    struct problem problem;
    struct task_request request;
    json_t *body = parsed(text);
    if (!task_request_read(body, 1, &request, &problem))
        fail_msg("%s: %s", problem.field, problem.words);
    check_schema(request.task);
    check_has(request.task, wanted);
    task_request_finish(&request);
    json_decref(body);
}

#define HEAD "\"task_id\": \"a/b\", \"instruction\": \"do\""

static void a_request_of_polar_s_is_a_task(void **state)
{
    (void)state;
    check_request(
        "{" HEAD ", \"agent\": {\"harness\": \"claude_code\", \"settings\": {\"step_limit\": 5, \"top_p\": 0.9}}, "
        "\"timeout_seconds\": 10.2, \"metadata\": {\"agent_timeout\": 5, \"eval_sampling_seed_base\": 3}}",
        "{\"task\": \"a-b\", \"prompt\": \"do\", \"agent\": {\"kind\": \"harness\", \"harness\": \"claude-code\", "
        "\"max_turns\": 5}, \"sampling\": {\"top_p\": 0.9, \"seed\": 3}, \"limits\": {\"init_s\": 11, \"run_s\": 5, "
        "\"command_s\": 5, \"eval_s\": 11}}");
    check_request(
        "{" HEAD ", \"agent\": {\"harness\": \"codex\"}, \"runtime\": {\"image\": \"/i.sif\", \"network\": \"none\", "
        "\"env\": {\"A\": \"b\"}, \"prepare\": [{\"type\": \"upload_dir\", \"source\": \"/s\", \"target\": \"/app\"}, "
        "{\"type\": \"exec\", \"command\": \"make\"}]}}",
        "{\"image\": \"/i.sif\", \"env\": {\"A\": \"b\"}, \"files\": [{\"path\": \"/app\", \"source\": \"/s\"}], "
        "\"setup\": [\"make\"]}");
    check_request(
        "{" HEAD ", \"agent\": {\"harness\": \"pi\"}, \"evaluator\": {\"strategy\": \"test_on_output\", \"config\": "
        "{\"test_command\": \"pytest\", \"expected_output_json\": {\"a\": \"PASSED\"}, \"test_timeout\": 7}}}",
        "{\"eval\": {\"kind\": \"swe\", \"swe\": {\"expected\": {\"a\": \"PASSED\"}, \"witness\": \"none\", "
        "\"test_command\": \"pytest\", \"repository\": \"/testbed\"}}}");
}

static void what_it_cannot_do_is_named(void **state)
{
    struct problem problem;
    struct task_request request;
    struct fail why;
    json_t *body = parsed("{" HEAD ", \"agent\": {\"harness\": \"codex\", \"skills_path\": \"/s\"}}");
    json_t *row = parsed("{" ASKED "}");
    (void)state;
    assert_false(task_request_read(body, 1, &request, &problem));
    assert_string_equal(problem.field, "agent.skills_path");
    assert_null(row_task(row, &why));
    assert_non_null(strstr(why.text, "expected_answer"));
    json_decref(body);
    json_decref(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_judged_by_what_it_holds),
        cmocka_unit_test(what_a_row_asks_is_the_prompt_and_its_sampling_counts),
        cmocka_unit_test(a_request_of_polar_s_is_a_task),
        cmocka_unit_test(what_it_cannot_do_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
