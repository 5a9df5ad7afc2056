/* Generating, against a scripted server: every fault and its code, trying again, asking once. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/engines.h"
#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {.temperature = 1, .top_p = 1, .max_tokens = 64, .seed = 7};

static void finish_all(struct asking *askings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        generation_finish(&askings[i].generation);
}

/* ---- generating ----------------------------------------------------------------------------- */

static void a_generation_is_what_the_engine_sampled_with_its_logprobs(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'reply': 'h\\u00e9 \\ud83d\\ude00!'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_all(&asking, 1);
    const struct generation *got = &asking.generation;
    const char *said = "h\xc3\xa9 \xf0\x9f\x98\x80!";
    struct tokens prompt = prompt_of("hi");
    assert_string_equal(got->text, said);
    assert_string_equal(got->finish, "stop");
    assert_int_equal(got->sampled.count, strlen(said) + 1);
    assert_int_equal(got->sampled.ids[strlen(said)], BYTE_END);
    /* also those inside the characters, which the server does not report unasked */
    for (size_t i = 0; i < got->sampled.count; i++) {
        assert_true(i == strlen(said) || got->sampled.ids[i] == (uint8_t)said[i]);
        assert_true(got->logprobs[i] == scripted_logprob(prompt.count + i, got->sampled.ids[i]));
    }
    assert_int_equal(got->prompt_tokens, prompt.count);
    assert_true(got->seconds > 0);
    tokens_finish(&prompt);
    finish_all(&asking, 1);
    world_close(&world);
}

static void every_setting_that_shapes_the_distribution_is_sent(void **state)
{
    (void)state;
    world_open(&world, NULL, NULL);
    struct asking asking = {.user = "hi"};
    ask_all(&asking, 1);
    AUTO_FREE char *sent = NULL;
    json_t *log = world_log(&world), *line;
    size_t i;
    json_array_foreach(log, i, line) if (strcmp(json_string_value(json_object_get(line, "path")), "/completion") == 0)
        sent = json_dumps(json_object_get(line, "request"), JSON_COMPACT);
    static const char *const said[] = {
        "\"temperature\":1.0",
        "\"top_k\":0",
        "\"top_p\":1.0",
        "\"min_p\":0.0",
        "\"typical_p\":1.0",
        "\"repeat_penalty\":1.0",
        "\"presence_penalty\":0.0",
        "\"frequency_penalty\":0.0",
        "\"dry_multiplier\":0.0",
        "\"xtc_probability\":0.0",
        "\"dynatemp_range\":0.0",
        "\"mirostat\":0",
        "\"cache_prompt\":true",
        "\"return_tokens\":true",
        "\"post_sampling_probs\":false",
        "\"seed\":8",
        "\"n_predict\":64",
        "\"stop\":[]",
        "\"ignore_eos\":false",
    };
    for (i = 0; i < COUNT(said); i++)
        if (!strstr(sent, said[i]))
            fail_msg("%s is not in %s", said[i], sent);
    json_decref(log);
    finish_all(&asking, 1);
    world_close(&world);
}

static void a_turn_that_does_not_fit_is_asked_for_only_as_far_as_it_does(void **state)
{
    (void)state;
    struct tokens prompt = prompt_of("hi");
    char script[128];
    snprintf(script, sizeof(script), "{'context': %zu, 'rules': [{'reply': 'a long reply'}]}", prompt.count + 5);
    world_open(&world, script, NULL);
    struct asking asking = {.user = "hi", .max_tokens = 1000};
    ask_all(&asking, 1);
    assert_int_equal(asking.generation.sampled.count, 5);
    assert_string_equal(asking.generation.finish, "length");
    assert_string_equal(asking.generation.text, "a lon");
    finish_all(&asking, 1);
    tokens_finish(&prompt);
    world_close(&world);
}

static void a_prompt_that_fills_the_context_is_too_big_and_is_not_sent(void **state)
{
    (void)state;
    struct tokens prompt = prompt_of("hi");
    char script[64];
    snprintf(script, sizeof(script), "{'context': %zu}", prompt.count);
    world_open(&world, script, NULL);
    struct asking asking = {.user = "hi", .expected = -E2BIG, .words = "leaves no room"};
    ask_all(&asking, 1);
    json_t *log = world_log(&world);
    assert_int_equal(log_count(log, "/completion"), 0);
    json_decref(log);
    tokens_finish(&prompt);
    world_close(&world);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* For each fault one rule that holds for the user who says its name. */
static char *fault_script(const struct asking *askings, size_t count)
{
    AUTO_BUFFER script = {0};
    buffer_append_str(&script, "{'rules': [");
    for (size_t i = 0; i < count; i++)
        buffer_printf(&script, "%s{'if': '%s', 'reply': 'hello', 'fault': '%s'}", i ? ", " : "", askings[i].user,
                      askings[i].user);
    buffer_append_str(&script, "]}");
    return buffer_take_str(&script);
}

static void every_fault_gets_the_code_it_was_promised_and_a_sentence(void **state)
{
    (void)state;
    struct asking askings[] = {
        {.user = "500", .expected = -EIO, .words = "it broke"},
        {.user = "503", .expected = -EAGAIN, .words = "Loading model"},
        {.user = "429", .expected = -EAGAIN, .words = "overloaded"},
        {.user = "400", .expected = -EINVAL, .words = "no such thing"},
        {.user = "long", .expected = -E2BIG, .words = "exceeds the available context size"},
        {.user = "garbage", .expected = -EPROTO, .words = "the JSON is broken"},
        {.user = "cut", .expected = -EIO},
        {.user = "close", .expected = -EIO},
        {.user = "hang", .expected = -ETIMEDOUT, .deadline_ms = 2000},
        {.user = "not_an_object", .expected = -EPROTO, .words = "no token ids"},
        {.user = "one_entry_less", .expected = -EPROTO, .words = "the log-probability of token 257"},
        {.user = "one_entry_more", .expected = -EPROTO, .words = "of which 6 fit"},
        {.user = "no_entries", .expected = -EPROTO, .words = "the log-probability of token 104"},
        {.user = "other_id", .expected = -EPROTO, .words = "log-probabilities are of other tokens: 255, not 104"},
        {.user = "positive", .expected = -EPROTO, .words = "not a log-probability"},
        {.user = "null", .expected = -EPROTO, .words = "not a log-probability"},
        {.user = "huge", .expected = -EPROTO, .words = "not a log-probability"},
        {.user = "text_for_ids", .expected = -EPROTO, .words = "is not an id"},
        {.user = "negative_ids", .expected = -EPROTO, .words = "is not an id"},
        {.user = "no_tokens", .expected = -EPROTO, .words = "no token ids"},
        {.user = "no_end", .expected = -EPROTO, .words = "which is plain text"},
        {.user = "stop_word", .expected = -EPROTO, .words = "stopped for another reason"},
        {.user = "prompt_length", .expected = -EPROTO, .words = "where 23 were sent"},
        {.user = "too_many", .expected = -EPROTO, .words = "where at most 64"},
        {.user = "other_text", .expected = -EPROTO, .words = "text is not what its ids say"},
        {.user = "more_text", .expected = -EPROTO, .words = "text is not what its ids say"},
        {.user = "other_bytes", .expected = -EPROTO, .words = "text is not what its ids say"},
    };
    AUTO_FREE char *script = fault_script(askings, COUNT(askings));
    world_open(&world, script, NULL);
    for (size_t i = 0; i < COUNT(askings); i++)
        if (strcmp(askings[i].user, "prompt_length") == 0) {
            struct tokens prompt = prompt_of("prompt_length");
            static char words[32];
            snprintf(words, sizeof(words), "where %zu were sent", prompt.count);
            askings[i].words = words;
            tokens_finish(&prompt);
        }
    ask_all(askings, COUNT(askings));
    finish_all(askings, COUNT(askings));
    world_close(&world);
}

/* What it sampled says that the turn is whole. */
static void a_turn_cut_exactly_at_its_end_has_ended(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'fault': 'end_at_limit'}]}", NULL);
    struct asking asking = {.user = "hi"};
    ask_all(&asking, 1);
    assert_string_equal(asking.generation.finish, "stop");
    assert_int_equal(asking.generation.sampled.ids[asking.generation.sampled.count - 1], BYTE_END);
    finish_all(&asking, 1);
    world_close(&world);
}

static size_t completions_for(const char *user)
{
    json_t *log = world_log(&world), *line;
    size_t i, count = 0;
    struct tokens prompt = prompt_of(user);
    json_array_foreach(log, i, line)
    {
        const json_t *ids = json_object_get(json_object_get(line, "request"), "prompt");
        count += json_array_size(ids) == prompt.count;
    }
    tokens_finish(&prompt);
    json_decref(log);
    return count;
}

static void what_may_pass_is_tried_again_and_what_may_not_is_not(void **state)
{
    (void)state;
    world_open(&world,
               "{'rules': [{'if': 'twice', 'times': 2, 'fault': '503'}, {'if': 'always it is', "
               "'fault': '500'},"
               "{'if': 'never a request', 'fault': '400'}, {'reply': 'ok'}]}",
               NULL);
    struct asking askings[] = {
        {.user = "twice", .expected = 0},
        {.user = "always it is", .expected = -EIO, .words = "tried 5 times"},
        {.user = "never a request", .expected = -EINVAL},
    };
    ask_all(askings, 3);
    assert_string_equal(askings[0].generation.text, "ok");
    assert_int_equal(completions_for("twice"), 3);
    assert_int_equal(completions_for("always it is"), ENGINE_TRIES);
    assert_int_equal(completions_for("never a request"), 1);
    finish_all(askings, 3);
    world_close(&world);
}

static void when_time_runs_out_after_failures_the_failure_is_told(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'fault': '500'}]}", NULL);
    struct asking asking = {.user = "hi", .deadline_ms = 600, .expected = -EIO, .words = "it broke"};
    ask_all(&asking, 1);
    world_close(&world);
}

static void when_time_runs_out_in_a_call_after_a_failure_the_failure_is_told(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'call': 1, 'fault': '503'}, {'fault': 'hang'}]}", NULL);
    struct asking asking = {.user = "hi", .deadline_ms = 1500, .expected = -EAGAIN, .words = "Loading model"};
    ask_all(&asking, 1);
    world_close(&world);
}

static void nobody_at_the_url_is_a_refused_connection(void **state)
{
    (void)state;
    world_open(&world, NULL, NULL);
    child_stop(&world.pid);
    struct asking asking = {.user = "hi", .expected = -ECONNREFUSED, .words = "tried 5 times"};
    ask_all(&asking, 1);
    world_close(&world);
}

static void another_kind_of_server_is_told_from_a_broken_one(void **state)
{
    (void)state;
    world_open(&world, "{'other_server': true}", NULL);
    struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "speaks no dialect"};
    ask_all(&asking, 1);
    world_close(&world);
}

/* ---- cancelling and asking once ---------------------------------------------------------------
 */

static void cancel_when_it_hangs(void *arg)
{
    struct asking *asking = arg;
    for (;;) { /* until the request is at the server */
        json_t *log = world_log(fiber_world);
        const json_t *last = json_array_get(log, json_array_size(log) - 1);
        const char *answer = json_string_value(json_object_get(last, "answer"));
        bool there = answer && strcmp(answer, "hang") == 0;
        json_decref(log);
        if (there)
            break;
        assert_int_equal(await_sleep(10), 0);
    }
    fiber_cancel(asking->fiber);
}

static void a_cancelled_fiber_gets_its_call_back_at_once(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'fault': 'hang'}]}", NULL);
    struct asking asking = {.user = "hi", .expected = -ECANCELED};
    fiber_world = &world;
    int64_t start_ms = clock_ms();
    assert_non_null(fiber_start(world.loop, ask, fiber_ended, &asking));
    assert_non_null(fiber_start(world.loop, cancel_when_it_hangs, fiber_ended, &asking));
    world.running = 2;
    loop_run(world.loop);
    assert_answered(&asking);
    assert_true(clock_ms() - start_ms < 5000);
    world_close(&world);
}

static void many_at_once_find_out_once_what_an_engine_is(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'path': '/props', 'delay_ms': 100}]}", NULL);
    struct asking askings[16];
    for (size_t i = 0; i < COUNT(askings); i++)
        askings[i] = (struct asking){.user = "hi"};
    ask_all(askings, COUNT(askings));
    json_t *log = world_log(&world);
    assert_int_equal(log_count(log, "/v1/models"), 1); /* it is described */
    assert_int_equal(log_count(log, "/completion"), COUNT(askings));
    json_decref(log);
    finish_all(askings, COUNT(askings));
    world_close(&world);
}

static void those_who_wait_share_a_failure_and_try_again_together(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'path': '/props', 'delay_ms': 100, 'times': 1, 'fault': '503'}]}", NULL);
    struct asking askings[16];
    for (size_t i = 0; i < COUNT(askings); i++)
        askings[i] = (struct asking){.user = "hi"};
    ask_all(askings, COUNT(askings));
    json_t *log = world_log(&world);
    assert_int_equal(log_count(log, "/v1/models"), 1);
    assert_true(log_count(log, "/props") <= 1 + 3 + 2 * COUNT(askings));
    json_decref(log);
    finish_all(askings, COUNT(askings));
    world_close(&world);
}

static void who_waits_takes_over_from_one_that_ran_out_of_time(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'path': '/props', 'call': 1, 'fault': 'hang'}]}", NULL);
    struct asking askings[] = {{.user = "late", .deadline_ms = 300, .expected = -ETIMEDOUT}, {.user = "hi"}};
    ask_all(askings, 2);
    finish_all(askings, 2);
    world_close(&world);
}

static void who_waits_is_not_cancelled_with_the_one_that_was(void **state)
{
    (void)state;
    world_open(&world, "{'rules': [{'path': '/props', 'call': 1, 'fault': 'hang'}]}", NULL);
    struct asking askings[] = {{.user = "first", .expected = -ECANCELED}, {.user = "second"}};
    fiber_world = &world;
    for (size_t i = 0; i < 2; i++)
        assert_non_null(fiber_start(world.loop, ask, fiber_ended, &askings[i]));
    assert_non_null(fiber_start(world.loop, cancel_when_it_hangs, fiber_ended, &askings[0]));
    world.running = 3;
    loop_run(world.loop);
    assert_answered(&askings[0]);
    assert_answered(&askings[1]);
    finish_all(askings, 2);
    world_close(&world);
}

static void urls_that_differ_in_a_slash_are_one_engine(void **state)
{
    (void)state;
    struct engines *engines = engines_create(NULL);
    struct engine *one = engines_get(engines, "http://a:1/");
    assert_ptr_equal(one, engines_get(engines, "http://a:1"));
    assert_ptr_not_equal(one, engines_get(engines, "http://a:12"));
    assert_string_equal(engine_base_url(one), "http://a:1");
    engines_destroy(&engines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_is_what_the_engine_sampled_with_its_logprobs),
        cmocka_unit_test(every_setting_that_shapes_the_distribution_is_sent),
        cmocka_unit_test(a_turn_cut_exactly_at_its_end_has_ended),
        cmocka_unit_test(a_turn_that_does_not_fit_is_asked_for_only_as_far_as_it_does),
        cmocka_unit_test(a_prompt_that_fills_the_context_is_too_big_and_is_not_sent),
        cmocka_unit_test(every_fault_gets_the_code_it_was_promised_and_a_sentence),
        cmocka_unit_test(what_may_pass_is_tried_again_and_what_may_not_is_not),
        cmocka_unit_test(when_time_runs_out_after_failures_the_failure_is_told),
        cmocka_unit_test(when_time_runs_out_in_a_call_after_a_failure_the_failure_is_told),
        cmocka_unit_test(nobody_at_the_url_is_a_refused_connection),
        cmocka_unit_test(another_kind_of_server_is_told_from_a_broken_one),
        cmocka_unit_test(a_cancelled_fiber_gets_its_call_back_at_once),
        cmocka_unit_test(many_at_once_find_out_once_what_an_engine_is),
        cmocka_unit_test(those_who_wait_share_a_failure_and_try_again_together),
        cmocka_unit_test(who_waits_takes_over_from_one_that_ran_out_of_time),
        cmocka_unit_test(who_waits_is_not_cancelled_with_the_one_that_was),
        cmocka_unit_test(urls_that_differ_in_a_slash_are_one_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
