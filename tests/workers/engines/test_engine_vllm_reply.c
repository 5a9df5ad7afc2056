/* Real answers of vLLM 0.32.0 (fixtures/vllm), and what may be made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/vllm/vllm_reply.h"

/* A recorded exchange: its request, and the answer's text as a tree. */
struct exchange {
    json_t *line;
    char *text;
    struct json_doc tree;
    struct tokens prompt;
};

static void take_prompt(struct exchange *exchange)
{
    const json_t *request = json_object_get(exchange->line, "request"), *id;
    const json_t *ids = json_object_get(request, "token_ids");
    size_t i;
    if (!ids)
        ids = json_object_get(request, "prompt");
    json_array_foreach(ids, i, id) tokens_append(&exchange->prompt, &(uint32_t){(uint32_t)json_integer_value(id)}, 1);
}

static struct exchange open_exchange(const char *name)
{
    struct exchange exchange = {0};
    struct fail fail = {0};
    char path[512];
    const char *dir = getenv("SLUICE_SOURCE_DIR");
    snprintf(path, sizeof(path), "%s/tests/workers/fixtures/vllm/%s.json", dir ? dir : ".", name);
    exchange.line = json_load_file(path, JSON_ALLOW_NUL, NULL);
    assert_non_null(exchange.line);
    exchange.text = json_dumps(json_object_get(exchange.line, "answer"), JSON_COMPACT);
    assert_int_equal(json_doc_parse(slice_from_str(exchange.text), &exchange.tree, &fail), 0);
    take_prompt(&exchange);
    return exchange;
}

static void close_exchange(struct exchange *exchange)
{
    json_doc_finish(&exchange->tree);
    tokens_finish(&exchange->prompt);
    free(exchange->text);
    json_decref(exchange->line);
}

typedef int read_reply(const struct json_doc *tree, struct sampled_tokens *streamed, const struct tokens *prompt,
                       uint64_t max_tokens, struct generation *ret, struct fail *fail);

static struct generation read_as(const char *name, read_reply *read)
{
    struct exchange exchange = open_exchange(name);
    struct generation got = {0};
    struct fail fail = {0};
    int error = read(&exchange.tree, NULL, &exchange.prompt, 64, &got, &fail);
    if (error < 0)
        fail_msg("%s: %s", name, fail.text);
    assert_int_equal(got.prompt_tokens, exchange.prompt.count);
    for (size_t i = 0; i < got.sampled.count; i++)
        assert_true(isfinite(got.logprobs[i]) && got.logprobs[i] <= 0);
    close_exchange(&exchange);
    return got;
}

/* ---- answers ----------------------------------------------------------------------------- */

static void both_routes_tell_the_same_of_the_same_seed(void **state)
{
    (void)state;
    static const struct {
        const char *ids, *completion, *finish;
    } pairs[] = {{"generate_stop", "completion_stop", "stop"}, {"generate_length", "completion_length", "length"}};
    for (size_t i = 0; i < 2; i++) {
        struct generation one = read_as(pairs[i].ids, vllm_reply_generate);
        struct generation two = read_as(pairs[i].completion, vllm_reply_complete);
        assert_string_equal(one.finish, pairs[i].finish);
        assert_string_equal(two.finish, pairs[i].finish);
        assert_int_equal(one.sampled.count, two.sampled.count);
        for (size_t t = 0; t < one.sampled.count; t++) {
            assert_int_equal(one.sampled.ids[t], two.sampled.ids[t]);
            assert_true(fabsf(one.logprobs[t] - two.logprobs[t]) < 1e-3f);
        }
        const bool ends = one.sampled.ids[one.sampled.count - 1] == 2;
        assert_true(ends == (i == 0));
        assert_null(one.text);
        assert_non_null(two.text);
        assert_null(strstr(two.text, "<|im_end|>"));
        assert_string_equal(one.version, "");
        generation_finish(&one);
        generation_finish(&two);
    }
}

static void the_models_own_end_ends_a_turn_without_being_asked_for(void **state)
{
    (void)state;
    struct generation got = read_as("generate_no_stop_ids", vllm_reply_generate);
    assert_string_equal(got.finish, "stop");
    assert_int_equal(got.sampled.ids[got.sampled.count - 1], 2);
    generation_finish(&got);
}

static void text_in_many_bytes_comes_whole(void **state)
{
    (void)state;
    struct generation got = read_as("completion_emoji", vllm_reply_complete);
    assert_non_null(strstr(got.text, "\xf0\x9f\x98\x80"));
    generation_finish(&got);
}

static void the_likeliest_token_tells_raw_from_processed(void **state)
{
    (void)state;
    static const char *const names[] = {"generate_top", "generate_top_hot", "completion_top", "completion_top_hot"};
    double top[4];
    for (size_t i = 0; i < 4; i++) {
        struct exchange exchange = open_exchange(names[i]);
        assert_true(vllm_reply_top(&exchange.tree, &top[i]));
        close_exchange(&exchange);
    }
    for (size_t i = 1; i < 4; i++) /* recorded with the default --logprobs-mode, raw_logprobs */
        assert_true(fabs(top[0] - top[i]) < 1e-3);
    assert_true(top[0] < -0.01);
}

static void a_completion_to_another_prompt_is_not_taken(void **state)
{
    (void)state;
    struct exchange exchange = open_exchange("completion_stop");
    struct generation got = {0};
    struct fail fail = {0};
    exchange.prompt.ids[3]++;
    assert_int_equal(vllm_reply_complete(&exchange.tree, NULL, &exchange.prompt, 64, &got, &fail), -EPROTO);
    assert_non_null(strstr(fail.text, "token 3 is not"));
    generation_finish(&got);
    close_exchange(&exchange);
}

/* As older releases write it (entrypoints/serve/disagg in the source of 0.18). */
static void entries_that_name_their_token_in_words_are_read_too(void **state)
{
    (void)state;
    static const char text[] = "{\"choices\":[{\"index\":0,\"finish_reason\":\"length\",\"token_ids\":[262,7],"
                               "\"logprobs\":{\"content\":[{\"token\":\"token_id:262\",\"logprob\":-0.5,"
                               "\"top_logprobs\":[]},{\"token\":\"token_id:7\",\"logprob\":0}]}}]}";
    const uint32_t ids[] = {1, 2};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 2};
    struct json_doc tree;
    struct fail fail = {0};
    struct generation got = {0};
    assert_int_equal(json_doc_parse(slice_from_str(text), &tree, &fail), 0);
    assert_int_equal(vllm_reply_generate(&tree, NULL, &prompt, 8, &got, &fail), 0);
    assert_int_equal(got.sampled.count, 2);
    assert_true(got.logprobs[0] == -0.5f);
    assert_int_equal(got.prompt_tokens, 2); /* such a release says no usage */
    generation_finish(&got);
    json_doc_finish(&tree);
}

static void a_reply_that_says_its_mode_itself_is_believed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *mode;
    } replies[] = {{"{\"choices\":[{\"logprobs\":{\"mode\":\"raw\"}}]}", "raw"},
                   {"{\"choices\":[{\"logprobs\":{\"mode\":\"processed\"}}]}", "processed"},
                   {"{\"choices\":[{\"logprobs\":{\"mode\":\"other\"}}]}", NULL},
                   {"{\"choices\":[{\"logprobs\":{}}]}", NULL},
                   {"[]", NULL}};
    for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
        struct json_doc tree;
        struct fail fail = {0};
        assert_int_equal(json_doc_parse(slice_from_str(replies[i].text), &tree, &fail), 0);
        const char *mode = vllm_reply_mode(&tree);
        assert_true((mode == NULL) == (replies[i].mode == NULL));
        if (mode)
            assert_string_equal(mode, replies[i].mode);
        json_doc_finish(&tree);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void recorded_refusals_get_the_promised_codes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
    } refusals[] = {{"generate_prompt_too_long", -E2BIG}, {"completion_prompt_too_long", -E2BIG},
                    {"completion_bad_model", -EPROTO},    {"generate_bad_id", -EINVAL},
                    {"completion_bad_id", -EINVAL},       {"not_found", -EPROTO},
                    {"template_raises", -EINVAL}};
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
        struct exchange exchange = open_exchange(refusals[i].name);
        struct fail fail = {0};
        long status = (long)json_integer_value(json_object_get(exchange.line, "status"));
        assert_int_equal(call_refusal(status, json_object_get(exchange.line, "answer"), &fail), refusals[i].code);
        close_exchange(&exchange);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_routes_tell_the_same_of_the_same_seed),
        cmocka_unit_test(the_models_own_end_ends_a_turn_without_being_asked_for),
        cmocka_unit_test(text_in_many_bytes_comes_whole),
        cmocka_unit_test(the_likeliest_token_tells_raw_from_processed),
        cmocka_unit_test(a_completion_to_another_prompt_is_not_taken),
        cmocka_unit_test(entries_that_name_their_token_in_words_are_read_too),
        cmocka_unit_test(a_reply_that_says_its_mode_itself_is_believed),
        cmocka_unit_test(recorded_refusals_get_the_promised_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
