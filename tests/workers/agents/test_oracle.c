/* The agent that does what a task's solution says, and the answer that it gives where there is none. */
#include "tests/workers/agents/agent_world.h"

#include "workers/agents/kinds/oracle_answer.h"
#include "workers/evaluators/answers/grade.h"

static struct world world;

#define ORACLE(solution, more) "{'task': 't', 'agent': {'kind': 'oracle'}, 'solution': {" solution "}" more "}"

/* ---- a solution ---------------------------------------------------------------------------- */

static const struct ending {
    const char *task;
    enum outcome outcome;
    const char *words, *answer, *last; /* last: what the last command printed */
    size_t commands;
} endings[] = {
    {ORACLE("'files': {'a.txt': 'one'}, 'commands': ['cat a.txt', 'cd /; echo $X > b; set -e; pwd'], 'env': {'X': '1'}",
            ""),
     OUTCOME_OK, "1 files written, 2 commands run", NULL, "/\n", 2},
    {ORACLE("'commands': ['echo \\u0027it\\u0027; cd /tmp', 'pwd; echo \\u0027a b\\u0027'], 'answer': 'all done'", ""),
     OUTCOME_OK, "2 commands run", "all done", "/workspace\na b\n", 2},
    {ORACLE("'commands': ['sleep 1000 & echo $! > pid', 'kill -0 $(cat pid) && echo lives']", ""), OUTCOME_OK,
     "2 commands run", NULL, "lives\n", 2},
    {ORACLE("'commands': ['echo broken; exit 3', 'touch never'], 'answer': 'x'", ""), OUTCOME_AGENT,
     "solution: command 1 of 2 exited with 3: broken", "x", "broken\n", 1},
    {ORACLE("'commands': ['kill -9 $$']", ""), OUTCOME_AGENT, "solution: command 1 of 1 exited with 137", NULL, NULL,
     1},
    {ORACLE("'answer': 'the words'", ""), OUTCOME_OK, "0 commands run", "the words", NULL, 0},
    {ORACLE("'files': {'/proc/none/x': ''}", ""), OUTCOME_TASK, "cannot write /proc/none/x", NULL, NULL, 0},
};

static const char *last_output(const struct record *record)
{
    const char *found = NULL;
    for (size_t i = 0; i < record->message_count; i++)
        if (strcmp(record->messages[i].role, "tool") == 0)
            found = record->messages[i].content;
    return found;
}

static void it_does_what_the_solution_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        const struct ending *ending = &endings[i];
        print_message("%s %s\n", outcome_wire(ending->outcome), ending->words);
        world_open_on(&world, loop, "{'rules': []}", NULL);
        struct attempt attempt = {.json = ending->task};
        attempt_run(&world, &attempt);
        assert_ended(&attempt, ending->outcome, ending->words);
        assert_string_equal(attempt.record.agent, "oracle");
        assert_int_equal(attempt.record.trace_count, 0);
        if (ending->answer)
            assert_string_equal(attempt.run.answer, ending->answer);
        if (ending->last)
            assert_string_equal(last_output(&attempt.record), ending->last);
        attempt_finish(&attempt);
        world_close(&world);
    }
}

static void its_time_is_that_of_the_run(void **state)
{
    (void)state;
    world_open_on(&world, loop, "{'rules': []}", NULL);
    struct attempt attempt = {.json = ORACLE("'commands': ['sleep 60']", ", 'limits': {'command_s': 1}"),
                              .deadline_ms = 1500};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_AGENT, "time: limits.run_s is used up");
    attempt_finish(&attempt);
    world_close(&world);
}

/* ---- the accepted answer --------------------------------------------------------------------- */

static void expect_right(const char *kind, const char *extract, const char *answer)
{
    AUTO_BUFFER words = {0};
    json_t *json = json_pack("{s:s, s:s, s:{s:s, s:s, s:s}}", "task", "t", "prompt", "p", "eval", "kind", kind,
                             "extract", extract, "answer", answer);
    AUTO_FREE char *text = json_dumps(json, 0);
    struct task *task = parse_task(text);
    struct grade_options how = {.normalize = NORMALIZE_BLANKS};
    struct grade grade;
    assert_true(grade_kind_parse(kind, &how.kind) && extract_parse(extract, &how.extract));
    oracle_answer(task, &words);
    grade_text(&how, buffer_peek(&words), &answer, 1, &grade);
    if (!grade.is_right)
        fail_msg("%s by %s: %s was said as %.*s: %s", kind, extract, answer, (int)words.len, (char *)words.data,
                 grade.why);
    grade_finish(&grade);
    task_destroy(task);
    json_decref(json);
}

static void the_accepted_answer_is_said_as_each_evaluator_looks_for_it(void **state)
{
    (void)state;
    static const char *const extracts[] = {"auto", "box", "hashes", "answer", "all"};
    for (size_t i = 0; i < sizeof(extracts) / sizeof(*extracts); i++) {
        expect_right("math", extracts[i], "\\frac{1}{2}");
        expect_right("math", extracts[i], "x^2+1");
        expect_right("math", extracts[i], "\\{1, 2\\}");
        expect_right("choice", extracts[i], "B");
        expect_right("choice", extracts[i], "A, C");
        expect_right("exact", extracts[i], "Paris");
        expect_right("exact", extracts[i], "a (b) {c}");
    }
    expect_right("math", "number", "-42.5");
    expect_right("math", "auto", "\\boxed{7}");
    expect_right("math", "box", "\\boxed{7}");
    expect_right("choice", "letter", "D");
    expect_right("exact", "auto", "two\nlines, and { a brace");
    expect_right("exact", "auto", "The answer is here");
    expect_right("exact", "auto", "# a #### b");
}

static void expect_says(const char *json, const char *words)
{
    AUTO_BUFFER said = {0};
    struct task *task = parse_task(json);
    oracle_answer(task, &said);
    if (!slice_is(buffer_peek(&said), words))
        fail_msg("%s: %.*s", json, (int)said.len, (char *)said.data);
    task_destroy(task);
}

static void a_solution_comes_before_the_accepted_answer(void **state)
{
    (void)state;
#define MATH "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"math\",\"answer\":\"1\"}"
    expect_says(MATH ",\"solution\":{\"answer\":\"\\\\boxed{2}\"}}", "\\boxed{2}");
    expect_says(MATH ",\"solution\":{\"commands\":[\"true\"]}}", "");
    expect_says(MATH "}", "\\boxed{1}");
    expect_says(
        "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"exact\",\"extract\":\"all\",\"answers\":[\"x\",\"y\"]}}",
        "x");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_does_what_the_solution_says),
        TEST(its_time_is_that_of_the_run),
        TEST(the_accepted_answer_is_said_as_each_evaluator_looks_for_it),
        TEST(a_solution_comes_before_the_accepted_answer),
    };
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
