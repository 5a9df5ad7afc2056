/* Answers with an end in their middle, ids beyond the vocabulary, a key given twice, or ids without a text. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {.temperature = 1, .top_p = 1, .max_tokens = 64, .seed = 7};

static const struct {
    const char *settings, *route; /* route: that samples */
    bool says_vocabulary;
} servers[] = {
    {"'x': 0", "/completion", true},
    {"'lacks': ['/v1/models']", "/completion", false},
    {"'dialect': 'vllm'", "/inference/v1/generate", false},
    {"'dialect': 'vllm', 'generate': false", "/v1/completions", false},
    {"'dialect': 'sglang'", "/generate", false},
    {"'dialect': 'openai'", "/v1/completions", false},
};

static void open_server(size_t which, const char *rules)
{
    AUTO_BUFFER script = {0};
    buffer_printf(&script, "{%s, 'rules': [%s]}", servers[which].settings, rules);
    AUTO_FREE char *text = buffer_take_str(&script);
    world_open(&world, text, NULL);
}

static void assert_refused(const char *rules, const char *words)
{
    for (size_t i = 0; i < COUNT(servers); i++) {
        open_server(i, rules);
        struct asking asking = {.user = "hi", .expected = -EPROTO, .words = words};
        ask_one(&asking);
        generation_finish(&asking.generation);
        world_close(&world);
    }
}

static void a_turn_that_goes_on_behind_its_end_is_refused(void **state)
{
    (void)state;
    assert_refused("{'if': 'hi', 'ids': [104, 257, 105, 257]}", "sampled 2 tokens behind token 257, which ends a turn");
}

/* One end is what the template has, another was seen to end a turn. */
static void an_end_that_was_learnt_is_an_end_too(void **state)
{
    (void)state;
    open_server(0, "{'if': 'first', 'end': '<|endoftext|>'},"
                   "{'if': 'then', 'ids': [104, 258, 105, 257]}");
    struct asking first = {.user = "first"}, then = {.user = "then", .expected = -EPROTO, .words = "behind token 258"};
    ask_one(&first);
    ask_one(&then);
    generation_finish(&first.generation);
    world_close(&world);
}

static void an_id_beyond_the_vocabulary_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(servers); i++) {
        open_server(i, "{'if': 'hi', 'ids': [104, 60000, 257]}");
        struct asking asking = {.user = "hi",
                                .expected = -EPROTO,
                                .words = servers[i].says_vocabulary
                                             ? "sampled token 60000 of a vocabulary of 260"
                                             : "sampled token 60000, which it does not know itself"};
        ask_one(&asking);
        world_close(&world);
    }
}

/* An id above those of all prompts is shown to the engine once, and then known. */
static void the_vocabularys_last_ids_are_taken_and_asked_about_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(servers); i++) {
        open_server(i, "{'if': 'hi', 'ids': [104, 259, 257]}");
        size_t calls[3];
        for (size_t time = 0; time < 3; time++) {
            struct asking asking = {.user = "hi"};
            ask_one(&asking);
            assert_int_equal(asking.generation.sampled.ids[1], 259);
            calls[time] = requests_to(servers[i].route);
            generation_finish(&asking.generation);
        }
        assert_int_equal(calls[1] - calls[0], 1);
        assert_int_equal(calls[2] - calls[1], 1);
        world_close(&world);
    }
}

static void a_key_given_twice_is_refused(void **state)
{
    (void)state;
    assert_refused("{'if': 'hi', 'fault': 'all_twice'}", "gives a key twice");
    open_server(2, "{'if': 'hi', 'fault': 'logprob_twice'}");
    struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "gives a key twice"};
    ask_one(&asking);
    world_close(&world);
}

/* Also where it is asked for other things than samples. */
static void what_an_engine_says_of_itself_twice_is_refused(void **state)
{
    (void)state;
    open_server(0, "{'path': '/tokenize', 'fault': 'all_twice'}");
    struct asking asking = {.user = "hi", .expected = -EPROTO, .words = "gives a key twice"};
    ask_one(&asking);
    world_close(&world);
}

static void say(void *arg)
{
    struct asking *asking = arg;
    AUTO_BUFFER text = {0};
    struct tokens ids = prompt_of(asking->user);
    asking->code = engine_say(world_engine(fiber_world), &ids, &text, &asking->fail);
    tokens_finish(&ids);
}

static void what_it_says_of_ids_is_a_text_or_refused(void **state)
{
    (void)state;
    static const struct {
        size_t server;
        const char *rule, *words;
    } rows[] = {
        {0, "{'path': '/detokenize', 'fault': 'not_an_object'}", "answer to /detokenize has no content"},
        {2, "{'path': '/detokenize', 'fault': 'not_an_object'}", "answer to /detokenize has no text"},
        {0, "{'path': '/detokenize', 'fault': 'garbage'}", "the JSON is broken at byte 0"},
        {2, "{'path': '/detokenize', 'fault': 'all_twice'}", "gives a key twice"},
        {3, "{'path': '/detokenize', 'fault': 'latin'}", "answer to /detokenize is not UTF-8"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_server(rows[i].server, rows[i].rule);
        struct asking asking = {.user = "hi", .expected = -EPROTO, .words = rows[i].words};
        world_run(&world, say, &asking, sizeof(asking), 1);
        assert_answered(&asking);
        world_close(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_goes_on_behind_its_end_is_refused),
        cmocka_unit_test(an_end_that_was_learnt_is_an_end_too),
        cmocka_unit_test(an_id_beyond_the_vocabulary_is_refused),
        cmocka_unit_test(the_vocabularys_last_ids_are_taken_and_asked_about_once),
        cmocka_unit_test(a_key_given_twice_is_refused),
        cmocka_unit_test(what_an_engine_says_of_itself_twice_is_refused),
        cmocka_unit_test(what_it_says_of_ids_is_a_text_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
