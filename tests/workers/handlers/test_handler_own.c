/* Handlers that come with a task: in the sandbox of its stage, offering what the task names them for, and its fault. */
#include "tests/workers/handlers/handler_run_world.h"

#include "workers/handlers/roles/agent.h"

static char program[4096]; /* own_handler.py as a text of JSON */

static int read_program(void **state)
{
    char text[4096];
    FILE *file = fopen(SOURCE_DIR "/tests/workers/handlers/own_handler.py", "r");
    if (set_up_kinds(state) < 0 || !file)
        return -1;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    json_t *json = json_string(text);
    AUTO_FREE char *quoted = json_dumps(json, JSON_ENCODE_ANY);
    json_decref(json);
    snprintf(program, sizeof(program), "%s", quoted);
    return 0;
}

/* A task whose evaluator `referee` is the program, which does as `what` says. */
static void expect_judged(const char *what, const struct layer *left, enum outcome outcome, double reward,
                          const char *words)
{
    static char json[16384];
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"bash\"},\"eval\":{\"kind\":\"referee\","
             "\"files\":{\"/tests/judge.py\":%s}},\"handlers\":[{\"name\":\"referee\",\"command\":"
             "\"exec /usr/bin/python3 /tests/judge.py evaluator %s\"}]}",
             program, what);
    struct job job = make_job(json);
    job.start.task = slice_from_str(json);
    job.start.group = slice_from_str("g");
    give_layer(&job.start.run_layer_digest, &job.start.run_layer, left);
    job_begin(&job, STAGE_EVAL);
    kind_sandbox.eval(&job);
    fiber_pop_deadline();
    expect(&job, outcome, words);
    assert_int_equal(job.result.fault, FAULT_NONE);
    assert_true(outcome != OUTCOME_OK || job.result.verdict.reward == reward);
    end_evaluation(&job);
}

FIBER_TEST(an_evaluator_of_the_task_judges_what_the_agent_left_in_its_sandbox)
{
    struct job run = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"echo -n this > left\"}", NULL, NULL, NULL);
    expect_judged("scores", &run.result.layer, OUTCOME_OK, 1, "this");
    expect_judged("scores", NULL, OUTCOME_OK, 1, "nothing");
    end_job(&run);
}

FIBER_TEST(its_death_and_its_wrongs_are_the_tasks_fault)
{
    expect_judged("dies", NULL, OUTCOME_TASK, 0, "the task's handler referee: it closed its socket");
    expect_judged("exits", NULL, OUTCOME_TASK, 0, "the task's handler referee: it closed its socket");
    expect_judged("other", NULL, OUTCOME_TASK, 0, "it does not offer what the task names it for");
}

FIBER_TEST(a_command_is_refused_to_one_that_is_inside_itself)
{
    expect_judged("asks", NULL, OUTCOME_OK, 0.5, "nothing");
}

/* A run whose agent or tool `mine` is the program, put into the sandbox by the agent's own files. */
static void expect_run(const char *role, const char *agent_json, const struct agent *agent, const char *script,
                       enum outcome outcome, const char *words, struct attempt *attempt)
{
    static char json[8192];
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":%s,\"handlers\":[{\"name\":\"mine\",\"command\":"
             "\"cat > /tmp/mine.py <<'END'\\n%.*s\\nEND\\nexec /usr/bin/python3 /tmp/mine.py %s works\"}]}",
             agent_json, (int)strlen(program) - 2, program + 1, role);
    world_open_on(&world, loop, script, NULL);
    *attempt = (struct attempt){.json = json};
    run_as_it_stands(agent, attempt, json);
    assert_ended(attempt, outcome, words);
    world_close(&world);
}

FIBER_TEST(an_agent_of_the_task_works_in_the_runs_sandbox)
{
    struct attempt attempt;
    expect_run("agent", "{\"kind\":\"mine\"}", &agent_handler, "{'context': 32768, 'rules': [{'replies': ['hm']}]}",
               OUTCOME_OK, "ended after 1 turns", &attempt);
    assert_string_equal(attempt.run.answer, "done by run");
    assert_true(attempt_opened);
    attempt_finish(&attempt);
}

FIBER_TEST(a_tool_of_the_task_is_called_in_the_runs_sandbox)
{
    struct attempt attempt;
    expect_run(
        "tool", "{\"kind\":\"tools\",\"tools\":[\"mine\"]}", &agent_tools,
        "{'context': 32768, 'rules': [{'replies': ['<tool_call>\\n{\\\"name\\\": \\\"mine\\\", \\\"arguments\\\": "
        "{}}\\n</tool_call>', 'done']}]}",
        OUTCOME_OK, "2 turns", &attempt);
    assert_string_equal(message_in_role(&attempt.record, "tool", 0)->content, "the tool sees ");
    assert_non_null(strstr(attempt.record.messages[0].content, "It is the task's."));
    attempt_finish(&attempt);
}

#define OWN_TEST(name) cmocka_unit_test_setup_teardown(name, read_program, tear_down_handlers)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        OWN_TEST(an_evaluator_of_the_task_judges_what_the_agent_left_in_its_sandbox),
        OWN_TEST(its_death_and_its_wrongs_are_the_tasks_fault),
        OWN_TEST(a_command_is_refused_to_one_that_is_inside_itself),
        OWN_TEST(an_agent_of_the_task_works_in_the_runs_sandbox),
        OWN_TEST(a_tool_of_the_task_is_called_in_the_runs_sandbox),
    };
    int failed = cmocka_run_group_tests_name("handler own", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
