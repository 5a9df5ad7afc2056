/* Given tokens, scored by each kind of server: their log-probabilities, and the likeliest ids in their places. */
#include "tests/workers/engines/asking.h"

#include "workers/engines/calls.h"
#include "workers/engines/server/engine_state.h"

static const struct task_sampling asked_with = {.temperature = 1, .top_p = 1, .max_tokens = 8, .seed = 1};

enum { VOCABULARY = 260, TOPS_MAX = 8 };

/* Of a prompt, "ab", given ids "xy", and "cd". */
struct rescore {
    const char *user;
    uint32_t top_k;
    int expected;
    const char *words;
    int code;
    struct fail fail;
    struct tokens ids;
    size_t first, last; /* "ab", "cd" */
    uint8_t wanted[128];
    float logprobs[128], top_logprobs[128 * TOPS_MAX];
    uint32_t top_ids[128 * TOPS_MAX];
    uint64_t done;
};

static void score(void *arg)
{
    struct rescore *rescore = arg;
    struct engine_scoring scoring = {.ids = rescore->ids.ids,
                                     .wanted = rescore->wanted,
                                     .count = rescore->ids.count,
                                     .scores = {.logprobs = rescore->logprobs,
                                                .top_k = rescore->top_k,
                                                .top_ids = rescore->top_ids,
                                                .top_logprobs = rescore->top_logprobs},
                                     .done = &rescore->done};
    rescore->code = engine_score(world_engine(fiber_world), &scoring, &rescore->fail);
}

/* Of all from "ab" on, without trying again. */
static void score_once(void *arg)
{
    struct rescore *rescore = arg;
    struct engine *engine = world_engine(fiber_world);
    struct engine_about about;
    const struct token_scores scores = {.logprobs = rescore->logprobs,
                                        .top_k = rescore->top_k,
                                        .top_ids = rescore->top_ids,
                                        .top_logprobs = rescore->top_logprobs};
    rescore->code = engine_describe(engine, &about, &rescore->fail);
    if (rescore->code == 0)
        rescore->code = engine->dialect->score(engine, &rescore->ids, rescore->first, &scores, &rescore->fail);
}

static void rescore_run_by(struct rescore *rescore, void (*run)(void *arg))
{
    rescore->ids = prompt_of(rescore->user);
    rescore->first = rescore->ids.count;
    tokens_say(&rescore->ids, "abxycd<rest>");
    rescore->last = rescore->first + 4;
    for (size_t i = 0; i < 2; i++)
        rescore->wanted[rescore->first + i] = rescore->wanted[rescore->last + i] = 1;
    world_run(&world, run, rescore, 0, 1);
    if (rescore->code != rescore->expected)
        fail_msg("%s: %d (%s), not %d", rescore->user, rescore->code, rescore->fail.text, rescore->expected);
    if (rescore->words && !strstr(rescore->fail.text, rescore->words))
        fail_msg("%s: '%s' does not say '%s'", rescore->user, rescore->fail.text, rescore->words);
}

static void rescore_run(struct rescore *rescore) { rescore_run_by(rescore, score); }

static void assert_tops(const struct rescore *rescore, size_t at)
{
    const uint32_t *ids = rescore->top_ids + at * rescore->top_k;
    const float *logprobs = rescore->top_logprobs + at * rescore->top_k;
    for (uint32_t k = 0; k < rescore->top_k; k++) {
        assert_true(logprobs[k] == scripted_logprob(at, ids[k]));
        assert_true(k == 0 || logprobs[k] < logprobs[k - 1]);
    }
    uint32_t likelier = 0;
    for (uint32_t id = 0; rescore->top_k && id < VOCABULARY; id++)
        likelier += scripted_logprob(at, id) >= logprobs[rescore->top_k - 1];
    assert_int_equal(likelier, rescore->top_k);
}

static void assert_scored(const struct rescore *rescore)
{
    for (size_t i = 0; i < rescore->ids.count; i++) {
        if (!rescore->wanted[i])
            continue;
        assert_true(rescore->logprobs[i] == scripted_logprob(i, rescore->ids.ids[i]));
        assert_tops(rescore, i);
    }
    assert_int_equal(rescore->done, 4);
}

/* `requests`: to that path, those of the description apart. */
static void expect_scored(const char *script, uint32_t top_k, const char *path, size_t requests)
{
    struct rescore rescore = {.user = "hi", .top_k = top_k};
    world_open(&world, script, NULL);
    struct rescore before = {.user = "before"};
    rescore_run(&before);
    const size_t asked = requests_to(path);
    rescore_run(&rescore);
    assert_scored(&rescore);
    assert_int_equal(requests_to(path) - asked, requests);
    tokens_finish(&before.ids);
    tokens_finish(&rescore.ids);
    world_close(&world);
}

static const char llama[] = "{}", vllm[] = "{'dialect': 'vllm'}", sglang[] = "{'dialect': 'sglang'}";

static void llama_cpp_scores_by_a_request_a_token(void **state)
{
    (void)state;
    expect_scored(llama, 0, "/completion", 4);
    expect_scored(llama, 5, "/completion", 4);
}

static void others_score_all_of_a_trace_in_one_request(void **state)
{
    (void)state;
    expect_scored(vllm, 0, "/inference/v1/generate", 1);
    expect_scored(vllm, 5, "/inference/v1/generate", 1);
    expect_scored(sglang, 0, "/generate", 1);
    expect_scored(sglang, 5, "/generate", 1);
}

/* llama.cpp has no entry of a token within a character: the likeliest come of another question. */
static void a_token_within_a_character_has_its_likeliest_too(void **state)
{
    (void)state;
    struct rescore rescore = {.user = "hi", .top_k = 5};
    world_open(&world, llama, NULL);
    rescore.ids = prompt_of(rescore.user);
    tokens_say(&rescore.ids, "\xf0\x9f\x98\x80");
    for (size_t i = 1; i <= 4; i++)
        rescore.wanted[rescore.ids.count - i] = 1;
    world_run(&world, score, &rescore, 0, 1);
    assert_int_equal(rescore.code, 0);
    assert_scored(&rescore);
    tokens_finish(&rescore.ids);
    world_close(&world);
}

static void what_is_no_score_is_none(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int code;
        const char *words;
    } cases[] = {
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_null'}]}", -EPROTO, "no log-probability"},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_clamped'}]}", -EPROTO, "-9999"},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_less'}]}", -EPROTO, "the engine scored"},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_tops_less'}]}", -EPROTO, "of the 3 likeliest"},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_tops_named'}]}", -EPROTO, "has no id"},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_tops_one_less'}]}", -EPROTO,
         "told 2 of the 3 likeliest tokens in place "},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_tops_more'}]}", -EPROTO,
         "told token 1 as one that is not wanted, of rank 5 in place "},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_tops_ranked'}]}", -EPROTO,
         "told token 1 as one more of rank 1 in place "},
        {"{'dialect': 'vllm', 'rules': [{'if': 'hi', 'fault': 'prompt_no_rank'}]}", -EPROTO, "tells no rank of token "},
        {"{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_clamped'}]}", -EPROTO, "-9999"},
        {"{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_tops_more'}]}", -EPROTO,
         "told 4 likeliest tokens in place "},
        {"{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_tops_twice'}]}", -EPROTO,
         "twice among the likeliest in place "},
        {"{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_tops_less'}]}", -EPROTO, "of the 3 likeliest"},
        {"{'dialect': 'sglang', 'rules': [{'if': 'hi', 'fault': 'sgl_no_tops'}]}", -EPROTO, "the engine scored 0"},
        {"{'rules': [{'path': '/completion', 'if': 'hi', 'fault': 'tops_less'}]}", -EPROTO, "of the 3 likeliest"},
        {"{'rules': [{'path': '/completion', 'if': 'hi', 'fault': '400'}]}", -EINVAL, "no such thing"},
        {"{'dialect': 'openai'}", -ENOTSUP, "does not tell a prompt's log-probabilities"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rescore rescore = {.user = "hi", .top_k = 3, .expected = cases[i].code, .words = cases[i].words};
        world_open(&world, cases[i].script, NULL);
        rescore_run_by(&rescore, score_once);
        tokens_finish(&rescore.ids);
        world_close(&world);
    }
}

/* Once: tried again it is well. */
static void a_likeliest_id_beyond_the_vocabulary_is_no_score(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "{'rules': [{'path': '/completion', 'if': 'hi', 'times': 1, 'fault': 'tops_beyond'}]}",
        "{'dialect': 'vllm', 'rules': [{'if': 'hi', 'times': 1, 'fault': 'prompt_tops_beyond'}]}",
        "{'dialect': 'sglang', 'rules': [{'if': 'hi', 'times': 1, 'fault': 'sgl_tops_beyond'}]}"};
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct rescore rescore = {.user = "hi", .top_k = 3};
        world_open(&world, scripts[i], NULL);
        rescore_run(&rescore);
        assert_scored(&rescore);
        tokens_finish(&rescore.ids);
        world_close(&world);
    }
}

/* "x", which stands between, is of no interest. */
static void what_nobody_asked_about_is_not_looked_at(void **state)
{
    (void)state;
    expect_scored("{'dialect': 'vllm', 'rules': [{'fault': 'prompt_clamped_within'}]}", 0, "/inference/v1/generate", 1);
    expect_scored("{'dialect': 'sglang', 'rules': [{'fault': 'sgl_clamped_within'}]}", 5, "/generate", 1);
}

static void a_server_that_tells_no_scores_is_refused_at_once(void **state)
{
    (void)state;
    struct rescore rescore = {.user = "hi", .expected = -EINVAL, .words = "tells no log-probabilities of given tokens"};
    world_open(&world, "{'dialect': 'openai'}", NULL);
    rescore_run(&rescore);
    tokens_finish(&rescore.ids);
    world_close(&world);
}

/* ---- pauses ------------------------------------------------------------------------------------ */

struct pausing {
    struct rescore rescore;
    bool was_in_flight;
};

static void score_between_pauses(void *arg)
{
    struct pausing *pausing = arg;
    struct engine *engine = world_engine(fiber_world);
    score(&pausing->rescore);
    assert_int_equal(engine->use.calls, 0);
}

static void pause_within(void *arg)
{
    struct pausing *pausing = arg;
    struct engine *engine = world_engine(fiber_world);
    while (engine->use.calls == 0)
        await_sleep(1);
    pausing->was_in_flight = true;
    engine_told(engine, slice_from_str("v2"), 2, slice_from_str("abort"), 50);
    assert_true(engine->policy.is_paused);
}

struct both {
    void (*run)(void *arg);
    struct pausing *pausing;
};

static void run_both(void *arg)
{
    struct both *both = arg;
    both->run(both->pausing);
}

static void a_pause_aborts_a_scoring_and_it_is_made_again_behind_it(void **state)
{
    (void)state;
    struct pausing pausing = {.rescore = {.user = "hi", .top_k = 2}};
    struct both both[] = {{score_between_pauses, &pausing}, {pause_within, &pausing}};
    world_open(&world, "{'rules': [{'path': '/completion', 'call': 1, 'fault': 'hang'}]}", NULL);
    pausing.rescore.ids = prompt_of("hi");
    tokens_say(&pausing.rescore.ids, "abcd");
    for (size_t i = 1; i <= 4; i++)
        pausing.rescore.wanted[pausing.rescore.ids.count - i] = 1;
    world_run(&world, run_both, both, sizeof(both[0]), COUNT(both));
    assert_true(pausing.was_in_flight);
    assert_int_equal(pausing.rescore.code, 0);
    assert_scored(&pausing.rescore);
    tokens_finish(&pausing.rescore.ids);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_cpp_scores_by_a_request_a_token),
        cmocka_unit_test(others_score_all_of_a_trace_in_one_request),
        cmocka_unit_test(a_token_within_a_character_has_its_likeliest_too),
        cmocka_unit_test(what_is_no_score_is_none),
        cmocka_unit_test(a_likeliest_id_beyond_the_vocabulary_is_no_score),
        cmocka_unit_test(what_nobody_asked_about_is_not_looked_at),
        cmocka_unit_test(a_server_that_tells_no_scores_is_refused_at_once),
        cmocka_unit_test(a_pause_aborts_a_scoring_and_it_is_made_again_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
