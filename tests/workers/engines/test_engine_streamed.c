/* Turns that are streamed are those that the whole answers would have been, to the bit, wherever the stream is cut. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/sglang/sglang_reply.h"
#include "workers/engines/dialects/vllm/vllm_reply.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- answers ------------------------------------------------------------------------------------------ */

/* What each of them says, and what it is worth, in digits that round to one float alone. */
static const struct {
    uint32_t id;
    const char *text, *logprob;
} said[] = {{300, "l\\u00f6", "-0.31415926535897931"},
            {12, " \\\"", "-1.1920928955078125e-07"},
            {7, "", "-17.000000953674316"},
            {99999, "\\ud83d\\ude00", "0"},
            {4, "", "-9998.9990000000001"},
            {2, "", "-2"}};

typedef int read_reply(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                       uint64_t max_tokens, struct generation *ret, struct fail *fail);
typedef void write_answer(size_t from, size_t to, bool is_event, struct buffer *out);

static void write_ids(size_t from, size_t to, struct buffer *out)
{
    for (size_t i = from; i < to; i++)
        buffer_printf(out, "%s%u", i > from ? "," : "", said[i].id);
}

static void write_text(size_t from, size_t to, struct buffer *out)
{
    for (size_t i = from; i < to; i++)
        buffer_append_str(out, said[i].text);
}

static const char *finish_of(size_t to) { return to == COUNT(said) ? "\"stop\"" : "null"; }

static void write_generate(size_t from, size_t to, bool is_event, struct buffer *out)
{
    buffer_printf(out, "{\"choices\":[{\"finish_reason\":%s,\"token_ids\":[", finish_of(to));
    write_ids(from, to, out);
    buffer_append_str(out, "],\"logprobs\":{\"content\":[");
    for (size_t i = from; i < to; i++)
        buffer_printf(out, "%s{\"token_id\":%u,\"logprob\":%s}", i > from ? "," : "", said[i].id, said[i].logprob);
    buffer_append_str(out, "]}");
    if (to == COUNT(said))
        buffer_append_str(out, ",\"weight_versions\":[{\"version\":\"v1\",\"start\":0,\"end\":2},"
                               "{\"version\":\"v2\",\"start\":2,\"end\":6}]");
    buffer_append_str(out, is_event ? "}]}" : "}],\"usage\":{\"prompt_tokens\":3}}");
}

static void write_complete(size_t from, size_t to, bool is_event, struct buffer *out)
{
    buffer_append_str(out, "{\"choices\":[{\"text\":\"");
    write_text(from, to, out);
    buffer_printf(out, "\",\"finish_reason\":%s,%s\"token_ids\":[", finish_of(to),
                  from == 0 ? "\"prompt_token_ids\":[1,2,3]," : "");
    write_ids(from, to, out);
    buffer_append_str(out, "],\"logprobs\":{\"token_logprobs\":[");
    for (size_t i = from; i < to; i++)
        buffer_printf(out, "%s%s", i > from ? "," : "", said[i].logprob);
    buffer_append_str(out, "],\"tokens\":[");
    for (size_t i = from; i < to; i++)
        buffer_printf(out, "%s\"token_id:%u\"", i > from ? "," : "", said[i].id);
    buffer_append_str(out, is_event ? "]}}]}"
                                    : "]}}],\"usage\":{\"prompt_tokens\":3,"
                                      "\"prompt_tokens_details\":{\"cached_tokens\":2}}}");
}

static void write_sglang(size_t from, size_t to, bool is_event, struct buffer *out)
{
    (void)is_event;
    buffer_append_str(out, "{\"text\":\"");
    write_text(from, to, out);
    buffer_append_str(out, "\",\"output_ids\":[");
    write_ids(from, to, out);
    buffer_printf(out,
                  "],\"meta_info\":{\"finish_reason\":%s%s%s,\"prompt_tokens\":3,\"completion_tokens\":%zu,"
                  "\"cached_tokens\":2,\"weight_version\":\"v7\",\"output_token_logprobs\":[",
                  to == COUNT(said) ? "{\"type\":" : "", finish_of(to), to == COUNT(said) ? "}" : "", to);
    for (size_t i = from; i < to; i++)
        buffer_printf(out, "%s[%s,%u,null]", i > from ? "," : "", said[i].logprob, said[i].id);
    buffer_append_str(out, "]}}");
}

static const struct {
    const struct fold_form *form;
    read_reply *read;
    write_answer *write;
    const char *last; /* what else is told behind the last token */
} routes[] = {
    {&vllm_stream_generate, vllm_reply_generate, write_generate, "{\"choices\":[],\"usage\":{\"prompt_tokens\":3}}"},
    {&vllm_stream_complete, vllm_reply_complete, write_complete,
     "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":2}}}"},
    {&sglang_stream_form, sglang_reply_read, write_sglang, ""}};

static void write_stream(size_t route, size_t interval, struct buffer *out)
{
    for (size_t from = 0; from < COUNT(said); from += interval) {
        const size_t to = from + interval < COUNT(said) ? from + interval : COUNT(said);
        buffer_append_str(out, "data: ");
        routes[route].write(from, to, true, out);
        buffer_append_str(out, "\n\n");
    }
    if (routes[route].last[0])
        buffer_printf(out, "data: %s\n\n", routes[route].last);
    buffer_append_str(out, "data: [DONE]\n\n");
}

/* ---- reading them -------------------------------------------------------------------------------------- */

static struct generation read_document(size_t route, struct slice text, struct sampled_tokens *streamed)
{
    const uint32_t ids[] = {1, 2, 3};
    const struct tokens prompt = {.ids = (uint32_t *)ids, .count = 3};
    struct generation got = {0};
    struct json_doc doc = {0};
    struct fail fail = {0};
    if (json_doc_parse(text, &doc, &fail) < 0 || routes[route].read(&doc, streamed, &prompt, 6, &got, &fail) < 0)
        fail_msg("route %zu: %s of %.*s", route, fail.text, SLICE_ARG(text));
    json_doc_finish(&doc);
    return got;
}

static void hear_nothing(void *arg, const struct fold_event *event) { (void)arg, (void)event; }

/* In two pieces, or, where step is not 0, in many. */
static struct generation read_stream(size_t route, struct slice stream, size_t cut, size_t step)
{
    struct fold fold = {.form = routes[route].form, .sampled.most = COUNT(said)};
    struct fail fail = {0};
    AUTO_BUFFER out = {0};
    for (size_t at = 0, end; at < stream.len; at = end) {
        end = step ? at + step : at < cut ? cut : stream.len;
        end = end < stream.len ? end : stream.len;
        assert_int_equal(fold_take(&fold, slice_of(stream.data + at, end - at), hear_nothing, NULL, &fail), 0);
    }
    assert_true(fold.is_finished);
    fold_write(&fold, &out);
    struct generation got = read_document(route, buffer_peek(&out), &fold.sampled);
    fold_finish(&fold);
    return got;
}

static void assert_same(const struct generation *a, const struct generation *b)
{
    assert_true(tokens_equal(&a->sampled, &b->sampled));
    assert_memory_equal(a->logprobs, b->logprobs, a->sampled.count * sizeof(*a->logprobs));
    assert_true((!a->text && !b->text) || strcmp(a->text, b->text) == 0);
    assert_string_equal(a->finish, b->finish);
    assert_string_equal(a->version, b->version);
    assert_int_equal(a->prompt_tokens, b->prompt_tokens);
    assert_int_equal(a->cached_tokens, b->cached_tokens);
    assert_int_equal(a->span_count, b->span_count);
    for (size_t i = 0; i < a->span_count; i++) {
        assert_string_equal(a->spans[i].version, b->spans[i].version);
        assert_true(a->spans[i].offset == b->spans[i].offset && a->spans[i].length == b->spans[i].length);
    }
}

static void assert_cut_anywhere(size_t route, size_t interval, const struct generation *whole)
{
    AUTO_BUFFER stream = {0};
    write_stream(route, interval, &stream);
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct generation got = read_stream(route, buffer_peek(&stream), cut, cut == stream.len);
        assert_same(whole, &got);
        generation_finish(&got);
    }
}

static void a_streamed_turn_is_that_of_the_whole_answer_bit_for_bit_wherever_it_is_cut(void **state)
{
    (void)state;
    for (size_t route = 0; route < COUNT(routes); route++) {
        AUTO_BUFFER document = {0};
        routes[route].write(0, COUNT(said), false, &document);
        struct generation whole = read_document(route, buffer_peek(&document), NULL);
        assert_int_equal(whole.sampled.count, COUNT(said));
        for (size_t i = 0; i < COUNT(said); i++) {
            assert_int_equal(whole.sampled.ids[i], said[i].id);
            assert_true(whole.logprobs[i] == (float)strtod(said[i].logprob, NULL));
        }
        for (size_t interval = 1; interval <= COUNT(said); interval++)
            assert_cut_anywhere(route, interval, &whole);
        generation_finish(&whole);
    }
}

static void what_a_token_is_worth_may_come_behind_its_id_and_not_before(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        int code;
    } rows[] = {{"\"token_ids\":[5]", "\"logprobs\":{\"content\":[{\"token_id\":5,\"logprob\":-1}]}", 0},
                {"\"logprobs\":{\"content\":[{\"token_id\":5,\"logprob\":-1}]}", "\"token_ids\":[5]", -EPROTO},
                {"\"token_ids\":[5]", "\"logprobs\":{\"content\":[{\"token_id\":6,\"logprob\":-1}]}", -EPROTO},
                {"\"token_ids\":[5]", "\"logprobs\":{\"content\":[{\"token_id\":5,\"logprob\":1}]}", -EPROTO}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct fold fold = {.form = &vllm_stream_generate, .sampled.most = 8};
        struct fail fail = {0};
        AUTO_BUFFER stream = {0};
        buffer_printf(&stream, "data: {\"choices\":[{%s}]}\n\ndata: {\"choices\":[{%s}]}\n\n", rows[i].first,
                      rows[i].second);
        const int code = fold_take(&fold, buffer_peek(&stream), hear_nothing, NULL, &fail);
        if (code != rows[i].code || (code < 0 && !fail.text[0]))
            fail_msg("row %zu: %d, %s", i, code, fail.text);
        fold_finish(&fold);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_streamed_turn_is_that_of_the_whole_answer_bit_for_bit_wherever_it_is_cut),
        cmocka_unit_test(what_a_token_is_worth_may_come_behind_its_id_and_not_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
