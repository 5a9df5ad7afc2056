/* ProRL's messages of traces of every shape: joined they are the trace, and the assistant's are what was sampled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/gateway/prorl/messages.h"

enum { TOKENS = 64 };

/* Ids count from 100 on; what is sampled has a mask of 1. */
struct made {
    uint32_t ids[TOKENS];
    uint8_t mask[TOKENS];
    float logprobs[TOKENS];
    struct sluice_turn turns[16];
    struct sluice_trace trace;
};

static void add_turn(struct made *made, const char *role, uint32_t length, bool is_sampled)
{
    const uint32_t offset = (uint32_t)made->trace.token_count;
    made->turns[made->trace.turn_count++] = (struct sluice_turn){.offset = offset, .length = length, .role = role};
    for (uint32_t i = offset; i < offset + length; i++) {
        made->ids[i] = 100 + i;
        made->mask[i] = is_sampled;
        made->logprobs[i] = is_sampled ? -0.5f : 0;
    }
    made->trace.token_count += length;
    made->trace.token_ids = made->ids;
    made->trace.mask = made->mask;
    made->trace.logprobs = made->logprobs;
    made->trace.turns = made->turns;
    made->trace.label = made->trace.reason = "";
}

static json_t *written(const struct sluice_trajectory *trajectory, bool with_input_ids)
{
    struct buffer text = {0};
    messages_write(trajectory, with_input_ids, &text);
    json_t *messages = json_loadb((char *)text.data, text.len, 0, NULL);
    assert_non_null(messages);
    buffer_finish(&text);
    return messages;
}

/* Up to `count` tokens, with the mask that roles give. */
static void assert_is_trace(const json_t *messages, const struct sluice_trace *trace, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i), *ids = json_object_get(message, "token_ids");
        const bool is_reply = strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
        for (size_t k = 0; k < json_array_size(ids); k++, at++) {
            assert_int_equal(json_integer_value(json_array_get(ids, k)), trace->token_ids[at]);
            assert_int_equal(is_reply, trace->mask[at]);
        }
        if (is_reply)
            assert_int_equal(json_array_size(json_object_get(message, "logprobs")), json_array_size(ids));
    }
    assert_int_equal(at, count);
}

static const char *text_at(const json_t *messages, size_t i, const char *name)
{
    return json_string_value(json_object_get(json_array_get(messages, i), name));
}

/* ---- one trace ----------------------------------------------------------------------------------------- */

static void what_stands_between_replies_belongs_to_the_message_behind(void **state)
{
    (void)state;
    struct made made = {0};
    add_turn(&made, "prompt", 5, false);
    add_turn(&made, "assistant", 3, true);
    add_turn(&made, "tool", 4, false);
    add_turn(&made, "assistant", 2, true);
    const struct sluice_message said[] = {{"system", "s", "", 0, false},
                                          {"user", "u", "", 0, false},
                                          {"assistant", "a", "", 0, true},
                                          {"tool", "1", "bash: ls -l", 0, false},
                                          {"tool", "2", "edit: {\"x\":1}", 0, false},
                                          {"assistant", "b", "", 0, true},
                                          {"tool", "never told", "submit: {}", 0, false}};
    const struct sluice_trajectory trajectory = {
        .traces = &made.trace, .trace_count = 1, .messages = said, .message_count = 7};
    json_t *messages = written(&trajectory, true);
    assert_int_equal(json_array_size(messages), 6);
    assert_is_trace(messages, &made.trace, 14);
    json_t *calls = json_object_get(json_array_get(messages, 2), "tool_calls");
    assert_int_equal(json_array_size(calls), 2);
    assert_string_equal(text_at(calls, 0, "name"), "bash");
    assert_string_equal(text_at(calls, 0, "arguments"), "{\"command\":\"ls -l\"}");
    assert_string_equal(text_at(calls, 1, "arguments"), "{\"x\":1}");
    assert_string_equal(text_at(json_object_get(json_array_get(messages, 5), "tool_calls"), 0, "name"), "submit");
    assert_int_equal(json_array_size(json_object_get(json_array_get(messages, 5), "input_ids")), 12);
    json_decref(messages);
    messages = written(&trajectory, false);
    assert_true(json_is_null(json_object_get(json_array_get(messages, 5), "input_ids")));
    json_decref(messages);
}

static void replies_that_came_with_the_task_have_no_tokens(void **state)
{
    (void)state;
    struct made made = {0};
    add_turn(&made, "prompt", 6, false);
    add_turn(&made, "assistant", 2, true);
    const struct sluice_message said[] = {
        {"assistant", "given", "", 0, false}, {"user", "u", "", 0, false}, {"assistant", "a", "", 0, true}};
    const struct sluice_trajectory trajectory = {
        .traces = &made.trace, .trace_count = 1, .messages = said, .message_count = 3};
    json_t *messages = written(&trajectory, true);
    assert_is_trace(messages, &made.trace, 8);
    assert_string_equal(text_at(messages, json_array_size(messages) - 1, "content"), "a");
    json_decref(messages);
}

static void what_nobody_said_in_words_is_there(void **state)
{
    (void)state;
    struct made made = {0};
    add_turn(&made, "prompt", 3, false);
    add_turn(&made, "assistant", 2, true);
    add_turn(&made, "user", 2, false);
    add_turn(&made, "assistant", 1, true);
    const struct sluice_message said[] = {{"user", "u", "", 0, false}};
    const struct sluice_trajectory trajectory = {
        .traces = &made.trace, .trace_count = 1, .messages = said, .message_count = 1};
    json_t *messages = written(&trajectory, true);
    assert_is_trace(messages, &made.trace, 8);
    assert_string_equal(text_at(messages, json_array_size(messages) - 1, "role"), "assistant");
    json_decref(messages);
}

static void a_reply_that_does_not_train_is_no_reply_of_tokens(void **state)
{
    (void)state;
    struct made made = {0};
    add_turn(&made, "prompt", 3, false);
    add_turn(&made, "assistant", 2, false);
    add_turn(&made, "user", 2, false);
    add_turn(&made, "assistant", 2, true);
    const struct sluice_message said[] = {{"user", "u", "", 0, false},
                                          {"assistant", "masked", "", 0, true},
                                          {"user", "v", "", 0, false},
                                          {"assistant", "a", "", 0, true}};
    const struct sluice_trajectory trajectory = {
        .traces = &made.trace, .trace_count = 1, .messages = said, .message_count = 4};
    json_t *messages = written(&trajectory, true);
    assert_is_trace(messages, &made.trace, 9);
    json_decref(messages);
}

/* ---- several -------------------------------------------------------------------------------------------- */

static void the_main_trace_that_ends_last_is_told_and_the_others_beside(void **state)
{
    (void)state;
    struct made first = {0}, last = {0}, side = {0};
    add_turn(&first, "prompt", 2, false);
    add_turn(&first, "assistant", 1, true);
    add_turn(&last, "prompt", 6, false);
    add_turn(&last, "assistant", 2, true);
    add_turn(&side, "prompt", 1, false);
    add_turn(&side, "assistant", 1, true);
    side.trace.label = "sub-agent";
    struct sluice_trace traces[] = {first.trace, last.trace, side.trace};
    const struct sluice_message said[] = {{"user", "u", "", 0, false},
                                          {"assistant", "a", "", 0, true},
                                          {"user", "v", "", 0, false},
                                          {"assistant", "b", "", 0, true}};
    const struct sluice_trajectory trajectory = {
        .traces = traces, .trace_count = 3, .messages = said, .message_count = 4};
    json_t *messages = written(&trajectory, true);
    assert_is_trace(messages, &last.trace, 8);
    assert_string_equal(text_at(messages, 3, "content"), "b");
    json_decref(messages);
    struct buffer text = {0};
    messages_write_others(&trajectory, &text);
    json_t *others = json_loadb((char *)text.data, text.len, 0, NULL);
    assert_int_equal(json_array_size(others), 2);
    assert_string_equal(text_at(others, 1, "label"), "sub-agent");
    json_decref(others);
    buffer_finish(&text);
}

static void nothing_sampled_is_no_messages(void **state)
{
    (void)state;
    struct made made = {0};
    add_turn(&made, "prompt", 3, false);
    const struct sluice_message said[] = {{"user", "u", "", 0, false}};
    const struct sluice_trajectory trajectory = {
        .traces = &made.trace, .trace_count = 1, .messages = said, .message_count = 1};
    json_t *messages = written(&trajectory, true);
    assert_int_equal(json_array_size(messages), 0);
    json_decref(messages);
    const struct sluice_trajectory nothing = {0};
    messages = written(&nothing, true);
    assert_int_equal(json_array_size(messages), 0);
    json_decref(messages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_between_replies_belongs_to_the_message_behind),
        cmocka_unit_test(replies_that_came_with_the_task_have_no_tokens),
        cmocka_unit_test(what_nobody_said_in_words_is_there),
        cmocka_unit_test(a_reply_that_does_not_train_is_no_reply_of_tokens),
        cmocka_unit_test(the_main_trace_that_ends_last_is_told_and_the_others_beside),
        cmocka_unit_test(nothing_sampled_is_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
