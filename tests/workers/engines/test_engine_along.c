/* Turns that nobody hears, whose tokens are read while they are sampled: they are what the whole answers would be. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/calls.h"
#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {.temperature = 1, .top_p = 1, .max_tokens = 1024, .seed = -1};

enum { MOST = 600, LONG = 520 };

static const char *const dialects[] = {"'dialect': 'vllm'", "'dialect': 'vllm', 'generate': false",
                                       "'dialect': 'openai'", "'dialect': 'sglang'"};

static enum engine_along *along(void) { return &world_engine(&world)->info.along; }

/* A rule that says `count` characters, of which some are long, and more of it. */
static void write_rule(const char *user, size_t count, const char *more, struct buffer *out)
{
    static const char *const words[] = {"a", "\\u00e9", "b", " ", "\\ud83d\\ude00", "\\n"};
    buffer_printf(out, "{'if': '%s;', %s%s'reply': '", user, more, more[0] ? ", " : "");
    for (size_t i = 0; i < count; i++)
        buffer_append_str(out, words[i % COUNT(words)]);
    buffer_append_str(out, "'},");
}

/* How many of the requests that sample have asked for a stream so far. */
static size_t count_streams(void)
{
    static const char *const routes[] = {"/inference/v1/generate", "/v1/completions", "/generate"};
    json_t *log = world_log(&world);
    const json_t *line;
    size_t count = 0, i;
    json_array_foreach(log, i, line)
    {
        const char *path = json_string_value(json_object_get(line, "path"));
        const bool is_stream = json_is_true(json_object_get(json_object_get(line, "request"), "stream"));
        for (size_t k = 0; k < COUNT(routes); k++)
            count += is_stream && strcmp(path, routes[k]) == 0;
    }
    json_decref(log);
    return count;
}

static void assert_same(const struct asking *a, const struct asking *b)
{
    const struct generation *one = &a->generation, *other = &b->generation;
    assert_true(tokens_equal(&one->sampled, &other->sampled));
    assert_memory_equal(one->logprobs, other->logprobs, one->sampled.count * sizeof(*one->logprobs));
    assert_string_equal(one->text, other->text);
    assert_string_equal(one->finish, other->finish);
    assert_string_equal(one->version, other->version);
    assert_int_equal(one->prompt_tokens, other->prompt_tokens);
    assert_int_equal(one->cached_tokens, other->cached_tokens);
    assert_int_equal(one->span_count, other->span_count);
}

/* Asks for the same, streamed and whole. */
static void assert_streamed_as_whole(const char *user, uint64_t max_tokens)
{
    struct asking streamed = {.user = user, .max_tokens = max_tokens}, whole = streamed;
    *along() = ENGINE_ALONG_PAYS;
    const size_t before = count_streams();
    ask_one(&streamed);
    assert_int_equal(count_streams(), before + 1);
    *along() = ENGINE_ALONG_NEVER;
    ask_one(&whole);
    assert_int_equal(count_streams(), before + 1);
    assert_same(&streamed, &whole);
    generation_finish(&streamed.generation);
    generation_finish(&whole.generation);
}

static void open_world_with(const char *dialect, const char *more, const char *rules)
{
    AUTO_BUFFER script = {0};
    buffer_printf(&script, "{%s, %s'version': 'v7', 'rules': [%s{'reply': 'hello'}]}", dialect, more, rules);
    AUTO_FREE char *text = buffer_take_str(&script);
    world_open(&world, text, NULL);
}

/* So that its facts are known. */
static void meet(void)
{
    struct asking one = {.user = "who are you"};
    ask_one(&one);
    generation_finish(&one.generation);
}

/* Who asks for "much;" is answered as `rule` says, for as long as it holds, and then with no more ado. */
static void open_world_of_much(const char *dialect, const char *more, const char *rule)
{
    AUTO_BUFFER rules = {0};
    write_rule("much", LONG, rule, &rules);
    write_rule("much", LONG, "", &rules);
    AUTO_FREE char *text = buffer_take_str(&rules);
    open_world_with(dialect, more, text);
    meet();
}

/* ---- the same ------------------------------------------------------------------------------------- */

static void it_is_the_same_turn_however_long_and_however_it_ends(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 63, LONG};
    for (size_t i = 0; i < COUNT(dialects); i++) {
        AUTO_BUFFER rules = {0};
        char user[16];
        for (size_t k = 0; k < COUNT(lengths); k++) {
            snprintf(user, sizeof(user), "say %zu", lengths[k]);
            write_rule(user, lengths[k], "", &rules);
        }
        AUTO_FREE char *text = buffer_take_str(&rules);
        open_world_with(dialects[i], "", text);
        meet();
        for (size_t k = 0; k < COUNT(lengths); k++) {
            snprintf(user, sizeof(user), "say %zu;", lengths[k]);
            assert_streamed_as_whole(user, 2 * MOST);
            assert_streamed_as_whole(user, ENGINE_ALONG_TOKENS + 1);
        }
        world_close(&world);
    }
}

static void it_is_the_same_in_whatever_pieces_it_comes(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 2, 3, 7, 61, 211, 1021};
    for (size_t i = 0; i < COUNT(dialects); i++) {
        AUTO_BUFFER rules = {0};
        char user[16], more[32];
        for (size_t k = 0; k < COUNT(pieces); k++) {
            snprintf(user, sizeof(user), "cut %zu", pieces[k]);
            snprintf(more, sizeof(more), "'piece_bytes': %zu", pieces[k]);
            write_rule(user, 24, more, &rules);
        }
        AUTO_FREE char *text = buffer_take_str(&rules);
        open_world_with(dialects[i], "", text);
        meet();
        for (size_t k = 0; k < COUNT(pieces); k++) {
            snprintf(user, sizeof(user), "cut %zu;", pieces[k]);
            assert_streamed_as_whole(user, MOST);
        }
        world_close(&world);
    }
}

/* ---- where it pays ---------------------------------------------------------------------------------- */

static void one_turn_at_a_time_finds_out_and_then_all_are_streamed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(dialects); i++) {
        open_world_of_much(dialects[i], "", "'token_ms': 20");
        struct asking first[4], next[4];
        for (size_t k = 0; k < COUNT(first); k++)
            first[k] = next[k] = (struct asking){.user = "much;", .max_tokens = 2 * MOST};
        ask_all(first, COUNT(first));
        assert_int_equal(count_streams(), 1);
        assert_int_equal(*along(), ENGINE_ALONG_PAYS);
        ask_all(next, COUNT(next));
        assert_int_equal(count_streams(), 1 + COUNT(next));
        for (size_t k = 0; k < COUNT(first); k++) {
            assert_same(&first[k], &next[k]);
            generation_finish(&first[k].generation);
            generation_finish(&next[k].generation);
        }
        world_close(&world);
    }
}

static void a_short_turn_says_nothing_of_it(void **state)
{
    (void)state;
    open_world_with(dialects[0], "", "");
    struct asking one = {.user = "hi", .max_tokens = MOST}, small = {.user = "hi", .max_tokens = 64};
    ask_one(&one);
    assert_int_equal(count_streams(), 1);
    assert_int_equal(*along(), ENGINE_ALONG_UNKNOWN);
    ask_one(&small);
    assert_int_equal(count_streams(), 1);
    generation_finish(&one.generation);
    generation_finish(&small.generation);
    world_close(&world);
}

static void a_server_that_tells_each_token_or_refuses_or_does_not_stream_is_asked_once(void **state)
{
    (void)state;
    static const struct {
        size_t dialect;
        const char *more;
        size_t streams, requests; /* for three turns */
    } rows[] = {{0, "'intervals': false, ", 1, 3},     {1, "'intervals': false, ", 1, 3},
                {3, "'intervals': false, ", 1, 3},     {0, "'intervals': 'refused', ", 1, 4},
                {2, "'intervals': 'refused', ", 1, 4}, {3, "'intervals': 'refused', ", 1, 4},
                {2, "'streams': false, ", 1, 4},       {2, "'streams': 'whole', ", 1, 3},
                {3, "'streams': false, ", 0, 3}};
    static const char *const routes[] = {"/inference/v1/generate", "/v1/completions", "/v1/completions", "/generate"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_world_of_much(dialects[rows[i].dialect], rows[i].more, "");
        const size_t before = requests_to(routes[rows[i].dialect]);
        for (int again = 0; again < 3; again++) {
            struct asking one = {.user = "much;", .max_tokens = 2 * MOST};
            ask_one(&one);
            assert_int_equal(one.generation.sampled.count > LONG, true);
            generation_finish(&one.generation);
        }
        if (count_streams() != rows[i].streams || requests_to(routes[rows[i].dialect]) - before != rows[i].requests)
            fail_msg("row %zu: %zu streams, %zu requests", i, count_streams(),
                     requests_to(routes[rows[i].dialect]) - before);
        world_close(&world);
    }
}

/* ---- what goes wrong ---------------------------------------------------------------------------------- */

static void a_stream_that_breaks_off_is_one_try_and_the_next_is_whole(void **state)
{
    (void)state;
    static const char *const faults[] = {"'cut_after': 0", "'cut_after': 1", "'cut_after': 2", "'stream_error': 1",
                                         "'fault': 'aborted'"};
    for (size_t i = 0; i < COUNT(faults); i++) {
        char rule[64];
        snprintf(rule, sizeof(rule), "'times': 1, %s", faults[i]);
        open_world_of_much(dialects[2], "", rule);
        struct asking one = {.user = "much;", .max_tokens = 2 * MOST}, other = one;
        ask_one(&one);
        if (count_streams() != 1)
            fail_msg("%s: %zu streams", faults[i], count_streams());
        *along() = ENGINE_ALONG_NEVER;
        ask_one(&other);
        assert_same(&one, &other);
        generation_finish(&one.generation);
        generation_finish(&other.generation);
        world_close(&world);
    }
}

static void streams_that_always_break_off_are_asked_for_no_more(void **state)
{
    (void)state;
    open_world_of_much(dialects[0], "", "'cut_after': 1");
    for (size_t i = 0; i < ENGINE_ALONG_BREAKS + 2; i++) {
        struct asking one = {.user = "much;", .max_tokens = 2 * MOST};
        ask_one(&one);
        generation_finish(&one.generation);
    }
    assert_int_equal(count_streams(), ENGINE_ALONG_BREAKS);
    world_close(&world);
}

/* Then it is asked for whole at once; where that is wrong too, it is the engine's fault as ever. */
static void a_stream_that_cannot_be_believed_fails_no_turn_and_is_asked_for_no_more(void **state)
{
    (void)state;
    static const struct {
        size_t dialect;
        const char *fault, *words;
    } rows[] = {{0, "other_id", "is of another token"},
                {0, "one_entry_less", ""},
                {0, "text_for_ids", ""},
                {1, "other_name", ""},
                {1, "prompt_length", ""},
                {0, "positive", ""},
                {1, "one_entry_less", ""},
                {0, "no_tokens", ""}};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int lasts = 0; lasts < (i == 0 ? 2 : 1); lasts++) {
            char rule[64];
            snprintf(rule, sizeof(rule), "%s'fault': '%s'", lasts ? "" : "'times': 1, ", rows[i].fault);
            open_world_of_much(dialects[rows[i].dialect], "", rule);
            struct asking one = {.user = "much;",
                                 .max_tokens = 2 * MOST,
                                 .expected = lasts ? -EPROTO : 0,
                                 .words = lasts ? rows[i].words : NULL};
            ask_one(&one);
            assert_int_equal(count_streams(), 1);
            assert_int_equal(*along(), lasts ? ENGINE_ALONG_UNKNOWN : ENGINE_ALONG_NEVER);
            generation_finish(&one.generation);
            world_close(&world);
        }
}

static void stop_asking(void *arg) { fiber_cancel(((struct asking *)arg)->fiber); }

static void one_that_is_cancelled_or_late_is_over_and_another_finds_out(void **state)
{
    (void)state;
    open_world_of_much(dialects[1], "", "'stall_after': 1");
    struct asking late = {.user = "much;", .max_tokens = 2 * MOST, .deadline_ms = 200, .expected = -ETIMEDOUT};
    ask_one(&late);
    assert_int_equal(*along(), ENGINE_ALONG_UNKNOWN);
    struct asking gone = {.user = "much;", .max_tokens = 2 * MOST, .expected = -ECANCELED};
    assert_non_null(loop_after(world.loop, 200, stop_asking, &gone));
    ask_one(&gone);
    assert_int_equal(*along(), ENGINE_ALONG_UNKNOWN);
    assert_int_equal(count_streams(), 2);
    assert_int_equal(late.generation.sampled.count + gone.generation.sampled.count, 0);
    world_close(&world);
}

/* By what a pause says: nothing of it stands, and it is sampled by the next version alone. */
static void set_version(void *arg)
{
    (void)arg;
    engine_told(world_engine(&world), slice_from_str("v2"), 2, slice_from_str("finish"), 50);
}

static void abort_calls(void *arg)
{
    (void)arg;
    engine_told(world_engine(&world), slice_from_str("v1"), 1, slice_from_str("abort"), 1000);
    assert_non_null(loop_after(world.loop, 50, set_version, NULL));
}

static void one_that_a_pause_aborts_is_sampled_anew(void **state)
{
    (void)state;
    world_open(&world, "{'dialect': 'openai', 'rules': [{'if': 'much;', 'reply': 'hello there', 'token_ms': 400}]}",
               NULL);
    meet();
    engine_told(world_engine(&world), slice_from_str("v1"), 1, slice_from_str(""), 0);
    struct asking one = {.user = "much;", .max_tokens = 2 * MOST};
    assert_non_null(loop_after(world.loop, 150, abort_calls, NULL));
    ask_one(&one);
    assert_string_equal(one.generation.text, "hello there");
    assert_string_equal(one.generation.version, "v2");
    assert_int_equal(one.generation.span_count, 0);
    assert_int_equal(count_streams(), 1);
    generation_finish(&one.generation);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_same_turn_however_long_and_however_it_ends),
        cmocka_unit_test(it_is_the_same_in_whatever_pieces_it_comes),
        cmocka_unit_test(one_turn_at_a_time_finds_out_and_then_all_are_streamed),
        cmocka_unit_test(a_short_turn_says_nothing_of_it),
        cmocka_unit_test(a_server_that_tells_each_token_or_refuses_or_does_not_stream_is_asked_once),
        cmocka_unit_test(a_stream_that_breaks_off_is_one_try_and_the_next_is_whole),
        cmocka_unit_test(streams_that_always_break_off_are_asked_for_no_more),
        cmocka_unit_test(a_stream_that_cannot_be_believed_fails_no_turn_and_is_asked_for_no_more),
        cmocka_unit_test(one_that_is_cancelled_or_late_is_over_and_another_finds_out),
        cmocka_unit_test(one_that_a_pause_aborts_is_sampled_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
