/* Turns that are told of while they are sampled: what is heard stands, and is what was sampled in the end. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/calls.h"

static const struct task_sampling asked_with = {.temperature = 1, .top_p = 1, .max_tokens = 64, .seed = -1};

/* ---- listening ----------------------------------------------------------------------------------- */

struct listening {
    struct asking asking;
    bool is_aborted; /* by a pause, once something is heard; then it is another version */
    bool only_looks;
    size_t taken_back;
    struct buffer heard;
    int64_t first_ms, end_ms;
};

static void set_version(void *arg)
{
    (void)arg;
    engine_told(world_engine(&world), slice_from_str("v2"), 2, slice_from_str("finish"), 50);
}

static void on_heard(void *arg, struct slice text)
{
    struct listening *listening = arg;
    if (listening->heard.len == 0)
        listening->first_ms = loop_now_ms();
    if (listening->heard.len == 0 && listening->is_aborted) {
        listening->is_aborted = false;
        engine_told(world_engine(&world), slice_from_str("v1"), 1, slice_from_str("abort"), 1000);
        assert_non_null(loop_after(world.loop, 50, set_version, NULL));
    }
    buffer_append(&listening->heard, text.data, text.len);
}

static void on_taken_back(void *arg)
{
    struct listening *listening = arg;
    listening->taken_back++;
    buffer_clear(&listening->heard);
}

static void listen(void *arg)
{
    struct listening *listening = arg;
    struct asking *asking = &listening->asking;
    struct tokens prompt = prompt_of(asking->user);
    const struct engine_listener listener = {
        .heard = on_heard, .taken_back = listening->only_looks ? on_taken_back : NULL, .arg = listening};
    const struct engine_turn turn = {.prompt = &prompt,
                                     .sampling = &asked_with,
                                     .max_tokens = asking->max_tokens ? asking->max_tokens : 64,
                                     .seed_offset = 1,
                                     .listener = &listener};
    asking->code = engine_generate_turn(world_engine(fiber_world), &turn, &asking->generation, &asking->fail);
    listening->end_ms = loop_now_ms();
    tokens_finish(&prompt);
}

static void listen_to_all(struct listening *all, size_t count)
{
    world_run(&world, listen, all, sizeof(*all), count);
    for (size_t i = 0; i < count; i++) {
        const struct slice heard = buffer_peek(&all[i].heard);
        assert_answered(&all[i].asking);
        if (all[i].asking.code == 0 && heard.len > 0 &&
            strncmp(all[i].asking.generation.text, (char *)heard.data, heard.len) != 0)
            fail_msg("%s: heard '%.*s' of '%s'", all[i].asking.user, SLICE_ARG(heard), all[i].asking.generation.text);
    }
}

static void listen_to(struct listening *one) { listen_to_all(one, 1); }

static void finish(struct listening *listening)
{
    generation_finish(&listening->asking.generation);
    buffer_finish(&listening->heard);
}

static bool has_heard(const struct listening *listening, const char *text)
{
    return slice_is(buffer_peek(&listening->heard), text);
}

/* Ids and log-probabilities are those of one call. */
static void assert_as_one(const struct listening *listening, const char *said)
{
    const struct generation *got = &listening->asking.generation;
    struct tokens prompt = prompt_of(listening->asking.user);
    assert_string_equal(got->text, said);
    assert_int_equal(got->sampled.count, strlen(said) + (strcmp(got->finish, "stop") == 0));
    for (size_t i = 0; i < got->sampled.count; i++) {
        assert_true(i == strlen(said) ? got->sampled.ids[i] == BYTE_END : got->sampled.ids[i] == (uint8_t)said[i]);
        assert_true(got->logprobs[i] == scripted_logprob(prompt.count + i, got->sampled.ids[i]));
    }
    assert_int_equal(got->prompt_tokens, prompt.count);
    tokens_finish(&prompt);
}

/* ---- each server ---------------------------------------------------------------------------------- */

static void what_is_sampled_is_heard_before_the_turn_ends(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "{'dialect': 'vllm', 'generate': false, 'rules': [{'reply': 'h\\u00e9llo', 'token_ms': 20}]}",
        "{'dialect': 'openai', 'rules': [{'reply': 'h\\u00e9llo', 'token_ms': 20}]}",
        "{'dialect': 'sglang', 'rules': [{'reply': 'h\\u00e9llo', 'token_ms': 20}]}"};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        world_open(&world, scripts[i], NULL);
        struct listening one = {.asking = {.user = "hi"}};
        listen_to(&one);
        assert_true(has_heard(&one, "h\xc3\xa9llo"));
        assert_true(one.end_ms - one.first_ms >= 60);
        assert_as_one(&one, "h\xc3\xa9llo");
        assert_int_equal(one.asking.generation.cached_tokens + 1, one.asking.generation.prompt_tokens);
        finish(&one);
        world_close(&world);
    }
}

static void what_ends_a_turn_by_its_length_is_not_heard_before(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'h\\u00e9llo'}]}", NULL);
    struct listening one = {.asking = {.user = "hi", .max_tokens = 4}};
    listen_to(&one);
    assert_true(has_heard(&one, "h\xc3\xa9"));
    assert_as_one(&one, "h\xc3\xa9l");
    assert_string_equal(one.asking.generation.finish, "length");
    finish(&one);
    world_close(&world);
}

static void a_server_whose_text_is_not_known_or_that_does_not_stream_is_not_heard(void **state)
{
    (void)state;
    static const char *const scripts[] = {"{'dialect': 'vllm', 'rules': [{'reply': 'hello'}]}",
                                          "{'rules': [{'reply': 'hello'}]}",
                                          "{'dialect': 'openai', 'streams': 'whole', 'rules': [{'reply': 'hello'}]}",
                                          "{'dialect': 'openai', 'streams': false, 'rules': [{'reply': 'hello'}]}",
                                          "{'dialect': 'sglang', 'streams': false, 'rules': [{'reply': 'hello'}]}"};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        world_open(&world, scripts[i], NULL);
        for (int again = 0; again < 2; again++) {
            struct listening one = {.asking = {.user = "hi"}};
            listen_to(&one);
            assert_int_equal(one.heard.len, 0);
            assert_as_one(&one, "hello");
            finish(&one);
        }
        world_close(&world);
    }
}

static void who_refuses_to_stream_is_asked_for_it_once(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'streams': false, 'rules': [{'reply': 'hello'}]}", NULL);
    struct listening one = {.asking = {.user = "hi"}}, other = {.asking = {.user = "hi"}};
    listen_to(&one);
    const size_t requests = requests_to("/v1/completions");
    listen_to(&other);
    assert_int_equal(requests_to("/v1/completions"), requests + 1);
    finish(&one);
    finish(&other);
    world_close(&world);
}

/* ---- calls that break off --------------------------------------------------------------------------- */

enum { CUTS = 8 };

/* Before each of its events, the last ones among them. */
static void a_call_that_breaks_off_goes_on_behind_what_it_sampled(void **state)
{
    (void)state;
    static const char *const faults[] = {"cut_after", "stream_error"};
    for (size_t fault = 0; fault < COUNT(faults); fault++) {
        AUTO_BUFFER script = {0};
        struct listening all[CUTS] = {0};
        char users[CUTS][16];
        buffer_append_str(&script, "{'dialect': 'openai', 'rules': [");
        for (int i = 0; i < CUTS; i++) {
            snprintf(users[i], sizeof(users[i]), "cut %d;", i);
            all[i].asking.user = users[i];
            buffer_printf(&script, "{'if': '%s', 'reply': 'h\\u00e9llo', 'times': 1, '%s': %d},", users[i],
                          faults[fault], i);
        }
        buffer_append_str(&script, "{'reply': 'h\\u00e9llo'}]}");
        AUTO_FREE char *text = buffer_take_str(&script);
        world_open(&world, text, NULL);
        listen_to_all(all, CUTS);
        for (int i = 0; i < CUTS; i++) {
            assert_as_one(&all[i], "h\xc3\xa9llo");
            finish(&all[i]);
        }
        world_close(&world);
    }
}

static void a_call_that_a_pause_aborts_goes_on_by_the_next_version(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'hello there', 'token_ms': 30}]}", NULL);
    struct listening one = {.asking = {.user = "hi"}, .is_aborted = true};
    engine_told(world_engine(&world), slice_from_str("v1"), 1, slice_from_str(""), 0);
    listen_to(&one);
    const struct generation *got = &one.asking.generation;
    assert_as_one(&one, "hello there");
    assert_string_equal(got->version, "v1+v2");
    assert_int_equal(got->policy_number, 1);
    assert_int_equal(got->span_count, 2);
    assert_string_equal(got->spans[0].version, "v1");
    assert_string_equal(got->spans[1].version, "v2");
    assert_int_equal(got->spans[1].offset, got->spans[0].length);
    assert_int_equal(got->spans[0].length + got->spans[1].length, got->sampled.count);
    finish(&one);
    world_close(&world);
}

static void where_what_was_told_cannot_stand_there_is_no_other_try(void **state)
{
    (void)state;
    static const struct {
        const char *fault, *words;
    } faults[] = {{"prompt_length", "were sent"}, {"one_entry_less", "for 6 tokens"}};
    for (size_t i = 0; i < COUNT(faults); i++) {
        char script[160];
        snprintf(script, sizeof(script),
                 "{'dialect': 'openai', 'rules': [{'if': 'hi', 'reply': 'hello', 'fault': '%s'}]}", faults[i].fault);
        world_open(&world, script, NULL);
        struct listening one = {.asking = {.user = "hi", .expected = -EPROTO, .words = faults[i].words}};
        listen_to(&one);
        assert_true(one.heard.len > 0);
        assert_int_equal(one.asking.generation.sampled.count, 0);
        finish(&one);
        world_close(&world);
    }
}

/* As a trainer lets it, by its own routes. */
static void a_call_that_the_engine_aborts_itself_goes_on(void **state)
{
    (void)state;
    static const char *const scripts[] = {"{'dialect': 'openai', 'rules': [{'if': 'hi', 'reply': 'hello', 'fault': "
                                          "'aborted', 'times': 1}, {'reply': 'hello'}]}",
                                          "{'dialect': 'sglang', 'rules': [{'if': 'hi', 'reply': 'hello', 'fault': "
                                          "'sgl_aborted', 'times': 1}, {'reply': 'hello'}]}"};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        world_open(&world, scripts[i], NULL);
        struct listening one = {.asking = {.user = "hi"}};
        listen_to(&one);
        assert_true(has_heard(&one, "hello"));
        assert_as_one(&one, "hello");
        finish(&one);
        world_close(&world);
    }
}

static void an_engine_that_is_gone_ends_it_after_its_tries(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'hell', 'cut_after': 1}]}", NULL);
    struct listening one = {.asking = {.user = "hi"}};
    listen_to(&one); /* a token a try is enough */
    assert_as_one(&one, "hell");
    finish(&one);
    world_close(&world);
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'hello there', 'cut_after': 1}]}", NULL);
    struct listening other = {.asking = {.user = "hi", .expected = -EIO, .words = "(tried 5 times)"}};
    listen_to(&other);
    assert_true(has_heard(&other, "h"));
    finish(&other);
    world_close(&world);
}

/* ---- who only looks --------------------------------------------------------------------------------- */

/* The turn is what it would be without a listener: another try, and as many of them. */
static void for_who_only_looks_a_call_that_breaks_off_is_made_again(void **state)
{
    (void)state;
    world_open(&world,
               "{'dialect': 'openai', 'rules': [{'if': 'hi', 'reply': 'hello', 'cut_after': 3, 'times': 1}, {'reply': "
               "'hello'}]}",
               NULL);
    struct listening one = {.asking = {.user = "hi"}, .only_looks = true};
    listen_to(&one);
    assert_as_one(&one, "hello");
    assert_int_equal(one.taken_back, 1);
    assert_true(has_heard(&one, "hello"));
    assert_int_equal(one.asking.generation.span_count, 0);
    finish(&one);
    world_close(&world);
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'hell', 'cut_after': 1}]}", NULL);
    struct listening other = {.asking = {.user = "hi", .expected = -EIO, .words = "(tried 5 times)"},
                              .only_looks = true};
    listen_to(&other);
    assert_int_equal(other.taken_back, 5);
    assert_int_equal(other.heard.len, 0);
    finish(&other);
    world_close(&world);
}

static void for_who_only_looks_a_pause_begins_the_turn_again(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'reply': 'hello there', 'token_ms': 30}]}", NULL);
    struct listening one = {.asking = {.user = "hi"}, .is_aborted = true, .only_looks = true};
    engine_told(world_engine(&world), slice_from_str("v1"), 1, slice_from_str(""), 0);
    listen_to(&one);
    assert_as_one(&one, "hello there");
    assert_string_equal(one.asking.generation.version, "v2");
    assert_int_equal(one.asking.generation.span_count, 0);
    assert_true(one.taken_back > 0);
    finish(&one);
    world_close(&world);
}

static void a_stream_that_cannot_be_believed_is_asked_for_no_more_and_fails_no_turn(void **state)
{
    (void)state;
    world_open(&world,
               "{'dialect': 'openai', 'rules': [{'if': 'hi', 'reply': 'hello', 'fault': 'prompt_length', 'times': 1}, "
               "{'reply': 'hello', 'token_ms': 1}]}",
               NULL);
    struct listening one = {.asking = {.user = "hi"}, .only_looks = true},
                     next = {.asking = {.user = "hi"}, .only_looks = true};
    listen_to(&one);
    assert_as_one(&one, "hello");
    assert_int_equal(one.taken_back, 1);
    assert_int_equal(one.heard.len, 0);
    const size_t requests = requests_to("/v1/completions");
    listen_to(&next);
    assert_as_one(&next, "hello");
    assert_int_equal(next.heard.len, 0);
    assert_int_equal(requests_to("/v1/completions"), requests + 1);
    finish(&one);
    finish(&next);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sampled_is_heard_before_the_turn_ends),
        cmocka_unit_test(what_ends_a_turn_by_its_length_is_not_heard_before),
        cmocka_unit_test(a_server_whose_text_is_not_known_or_that_does_not_stream_is_not_heard),
        cmocka_unit_test(who_refuses_to_stream_is_asked_for_it_once),
        cmocka_unit_test(a_call_that_breaks_off_goes_on_behind_what_it_sampled),
        cmocka_unit_test(a_call_that_a_pause_aborts_goes_on_by_the_next_version),
        cmocka_unit_test(where_what_was_told_cannot_stand_there_is_no_other_try),
        cmocka_unit_test(a_call_that_the_engine_aborts_itself_goes_on),
        cmocka_unit_test(an_engine_that_is_gone_ends_it_after_its_tries),
        cmocka_unit_test(for_who_only_looks_a_call_that_breaks_off_is_made_again),
        cmocka_unit_test(for_who_only_looks_a_pause_begins_the_turn_again),
        cmocka_unit_test(a_stream_that_cannot_be_believed_is_asked_for_no_more_and_fails_no_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
