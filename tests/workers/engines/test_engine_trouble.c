/*
 * Engines in trouble, as a rollout sees them: each trouble ends within its bound, as infra, blamed
 * on the engine and in words; a slow engine is none, nor is one that comes back the same.
 */
#include "tests/workers/agents/agent_world.h"

#define CHAT(prompt) "{'task': 't', 'prompt': '" prompt "', 'agent': {'kind': 'chat'}}"

static struct world world;

static void open_world(const char *script) { world_open_on(&world, loop, script, NULL); }

/* Answers that do not end while the caller is there, less those that saw it go. */
static int count_lingering(void)
{
    json_t *log = world_log(&world), *line;
    size_t i;
    int count = 0;
    json_array_foreach(log, i, line)
    {
        const char *answer = json_string_value(json_object_get(line, "answer"));
        if (answer) /* else it is one that ended, an object */
            count += strcmp(answer, "gone") == 0 ? -1 : 1;
    }
    json_decref(log);
    return count;
}

/* ---- every trouble ------------------------------------------------------------------------ */

struct trouble {
    const char *fault;
    int64_t deadline_ms; /* 0: it ends by itself, after its few tries */
    const char *words;
    struct attempt attempt;
};

static void trouble_fiber(void *arg)
{
    struct trouble *trouble = arg;
    attempt_fiber(&trouble->attempt);
}

static void start_troubles(struct trouble *troubles, size_t count)
{
    AUTO_BUFFER script = {0};
    buffer_append_str(&script, "{'rules': [");
    for (size_t i = 0; i < count; i++)
        buffer_printf(&script, "%s{'if': '%s;', 'reply': 'hello', 'fault': '%s'}", i ? ", " : "", troubles[i].fault,
                      troubles[i].fault);
    buffer_append_str(&script, "]}");
    AUTO_FREE char *text = buffer_take_str(&script);
    open_world(text);
    for (size_t i = 0; i < count; i++) {
        char json[256];
        snprintf(json, sizeof(json), "{\"task\": \"t\", \"prompt\": \"%s;\", \"agent\": {\"kind\": \"chat\"}}",
                 troubles[i].fault);
        troubles[i].attempt = (struct attempt){.task = parse_task(json), .deadline_ms = troubles[i].deadline_ms};
        record_init(&troubles[i].attempt.record);
    }
}

static void every_trouble_ends_within_its_bound_as_the_engines_fault(void **state)
{
    (void)state;
    static struct trouble troubles[] = {
        {.fault = "hang", .deadline_ms = 3000, .words = "gave no answer for the last"},
        {.fault = "trickle", .deadline_ms = 3000, .words = "gave no answer for the last"},
        {.fault = "stall", .words = "no byte of it for 2.0 s (tried 5 times)"},
        {.fault = "endless", .words = "the engine's answer is longer than"},
        {.fault = "500", .words = "the engine failed (500): it broke (tried 5 times)"},
        {.fault = "503", .words = "the engine is not ready (503): Loading model (tried 5 times)"},
        {.fault = "429", .words = "the engine is overloaded (429): slow down (tried 5 times)"},
        {.fault = "garbage", .words = "the JSON is broken at byte"},
        {.fault = "truncated", .words = "the JSON is broken at byte"},
        {.fault = "cut", .words = "(tried 5 times)"},
        {.fault = "close", .words = "(tried 5 times)"},
        {.fault = "one_entry_more", .words = "log-probabilities"},
        {.fault = "prompt_length", .words = "were sent"},
        {.fault = "too_many", .words = "where at most"},
    };
    start_troubles(troubles, COUNT(troubles));
    int64_t began_ms = clock_ms();
    world_run(&world, trouble_fiber, troubles, sizeof(*troubles), COUNT(troubles));
    assert_true(clock_ms() - began_ms < 30000);
    for (size_t i = 0; i < COUNT(troubles); i++) {
        struct attempt *attempt = &troubles[i].attempt;
        assert_ended(attempt, OUTCOME_INFRA, troubles[i].words);
        assert_int_equal(attempt->run.fault, FAULT_ENGINE);
        assert_int_equal(attempt->record.trace_count, 1); /* its prompt is kept */
        attempt_finish(attempt);
    }
    for (int64_t end = clock_ms() + 10000; count_lingering() > 0;)
        assert_true(clock_ms() < end);
    world_close(&world);
}

static void an_engine_that_dies_in_the_middle_of_a_call_is_told_as_gone(void **state)
{
    (void)state;
    open_world("{'rules': [{'fault': 'down'}]}");
    struct attempt attempt = {.json = CHAT("x")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_INFRA, "(tried 5 times)");
    assert_int_equal(attempt.run.fault, FAULT_ENGINE);
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_slow_engine_is_not_at_fault(void **state)
{
    (void)state;
    open_world("{'rules': [{'reply': 'at last', 'delay_ms': 3000}]}"); /* longer than any silence */
    struct attempt attempt = {.json = CHAT("x")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "1 turn");
    assert_string_equal(attempt.run.answer, "at last");
    attempt_finish(&attempt);
    world_close(&world);
}

static void an_engine_that_says_when_to_come_back_is_not_asked_before(void **state)
{
    (void)state;
    open_world("{'rules': [{'times': 1, 'fault': '503_later'}, {'reply': 'now'}]}");
    struct attempt attempt = {.json = CHAT("x")};
    int64_t began_ms = clock_ms();
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "1 turn");
    assert_true(clock_ms() - began_ms >= 1000);
    attempt_finish(&attempt);
    world_close(&world);
}

static void an_engine_that_is_slow_to_say_who_it_is_is_not_at_fault(void **state)
{
    (void)state;
    open_world("{'rules': [{'path': '/props', 'call': 4, 'delay_ms': 2500}, {'reply': 'at last'}]}");
    struct attempt attempt = {.json = CHAT("x")};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "1 turn");
    assert_record_is_the_log(&attempt.record, &world); /* nothing was sampled twice */
    attempt_finish(&attempt);
    world_close(&world);
}

static void what_an_engine_samples_that_does_not_say_who_it_is_counts_nothing(void **state)
{
    (void)state;
    open_world("{'rules': [{'path': '/props', 'call': 1}, {'path': '/props', 'call': 2}, {'path': "
               "'/props', 'call': 3},"
               "{'path': '/props', 'call': 4}, {'path': '/props', 'fault': 'hang'}, {'reply': 'who "
               "says so?'}]}");
    struct attempt attempt = {.json = CHAT("x"), .deadline_ms = 3000};
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_INFRA, "gave no answer for the last");
    assert_int_equal(attempt.run.fault, FAULT_ENGINE);
    assert_int_equal(count_turns(&attempt.record, "assistant"), 0);
    attempt_finish(&attempt);
    world_close(&world);
}

/* ---- an engine that is restarted ------------------------------------------------------------ */

#define COMMANDS "'rules': [{'replies': ['```bash\\nsleep 5; echo slept\\n```', 'TASK_DONE']}]"

static const char bash_task[] = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash'},"
                                "'limits': {'command_s': 30}}";
static const char *replacement; /* its script */

/* While the command runs, so that no call of the rollout notices. */
static void replace_engine(void *arg)
{
    struct attempt *attempt = arg;
    while (attempt->record.trace_count == 0 || !turn_in_role(&attempt->record, "assistant", 0))
        assert_int_equal(await_sleep(5), 0);
    world_engine_replace(&world, replacement);
}

static void run_over_a_restart(struct attempt *attempt, const char *before, const char *after)
{
    AUTO_FREE char *json = strdup(bash_task);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    open_world(before);
    replacement = after;
    attempt->task = parse_task(json);
    record_init(&attempt->record);
    fiber_world = &world;
    assert_non_null(fiber_start(loop, attempt_fiber, fiber_ended, attempt));
    assert_non_null(fiber_start(loop, replace_engine, fiber_ended, attempt));
    world.running = 2;
    loop_run(loop);
}

static void an_engine_that_comes_back_the_same_costs_the_rollout_nothing(void **state)
{
    (void)state;
    struct attempt attempt = {0};
    run_over_a_restart(&attempt, "{'model': 'a', " COMMANDS "}", "{'model': 'a', " COMMANDS "}");
    assert_ended(&attempt, OUTCOME_OK, "2 turns");
    assert_record_is_the_log(&attempt.record, &world);
    attempt_finish(&attempt);
    world_close(&world);
}

static void a_rollout_does_not_go_on_with_another_model_template_or_tokenizer(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } others[] = {
        {"{'model': 'b', " COMMANDS "}", "its name, path or vocabulary is another"},
        {"{'model': 'a', 'template': 'trim', " COMMANDS "}", "its chat template is another"},
        {"{'model': 'a', 'other_tokenizer': true, " COMMANDS "}", "its tokenizer is another"},
        /* two words that stand in no sample */
        {"{'model': 'a', 'swapped': [1, 2], " COMMANDS "}", "its name, path or vocabulary is another"},
    };
    for (size_t i = 0; i < COUNT(others); i++) {
        struct attempt attempt = {0};
        run_over_a_restart(&attempt, "{'model': 'a', " COMMANDS "}", others[i].script);
        assert_ended(&attempt, OUTCOME_INFRA, "serves another model than the rollout began with");
        assert_ended(&attempt, OUTCOME_INFRA, others[i].words);
        assert_int_equal(attempt.run.fault, FAULT_ENGINE);
        const struct record_trace *trace = &attempt.record.traces[0];
        assert_int_equal(trace->turn_count, 2); /* what the first one sampled is kept, and no more */
        attempt_finish(&attempt);
        world_close(&world);
    }
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_trouble_ends_within_its_bound_as_the_engines_fault),
        TEST(an_engine_that_dies_in_the_middle_of_a_call_is_told_as_gone),
        TEST(a_slow_engine_is_not_at_fault),
        TEST(an_engine_that_says_when_to_come_back_is_not_asked_before),
        TEST(an_engine_that_is_slow_to_say_who_it_is_is_not_at_fault),
        TEST(what_an_engine_samples_that_does_not_say_who_it_is_counts_nothing),
        TEST(an_engine_that_comes_back_the_same_costs_the_rollout_nothing),
        TEST(a_rollout_does_not_go_on_with_another_model_template_or_tokenizer),
    };
    return cmocka_run_group_tests_name("engine_trouble", tests, NULL, NULL);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return group();
}
