#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/template/bridge.h"

enum { START = 256, END = 257, LONGER = 258, ROW = 3 };

static const struct turn_template_special specials[] = {
    {START, (char *)"<|start|>"}, {END, (char *)"<|end|>"}, {LONGER, (char *)"<|end|>>"}};

static struct turn_template_tail tail_of(const char *before, const char *after)
{
    return (struct turn_template_tail){slice_from_str(before), slice_from_str(after)};
}

static int build(struct turn_template *turn_template, const char *before, const char *after, struct fail *fail)
{
    struct turn_template_tail tail = tail_of(before, after);
    return turn_template_build(turn_template, &tail, specials, 3, fail);
}

/* A byte a token; specials are known only where the turn template puts them. */
static struct tokens bytes_of(const char *text)
{
    struct tokens ids = {0};
    for (; *text; text++)
        assert_true(tokens_append(&ids, &(uint32_t){(uint8_t)*text}, 1));
    return ids;
}

static void encode_literals(struct turn_template_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->list[i].kind == TURN_TEMPLATE_LITERAL)
            parts->list[i].ids = bytes_of(parts->list[i].text);
}

/* The bridge as text: specials as < and >. At most ROW contents. */
static char *bridge_text(const struct turn_template *turn_template, const struct slice *contents, size_t count)
{
    AUTO_BUFFER out = {0};
    struct tokens ids[ROW] = {0}, bridge = {0};
    struct fail fail = {0};
    const size_t runs = turn_template_runs(turn_template, count);
    for (size_t i = 0; i < runs; i++) {
        AUTO_BUFFER text = {0};
        assert_true(turn_template_text(turn_template, contents, count, i, &text));
        AUTO_FREE char *run = buffer_take_str(&text);
        ids[i] = bytes_of(run);
    }
    assert_int_equal(turn_template_assemble(turn_template, ids, runs, &bridge, &fail), 0);
    for (size_t i = 0; i < bridge.count; i++)
        buffer_append(&out, bridge.ids[i] == START ? "<" : bridge.ids[i] == END ? ">" : (char *)&bridge.ids[i], 1);
    for (size_t i = 0; i < runs; i++)
        tokens_finish(&ids[i]);
    tokens_finish(&bridge);
    return buffer_take_str(&out);
}

static void assert_bridge(const struct turn_template *turn_template, const char *content, const char *expected)
{
    const struct slice one = slice_from_str(content);
    AUTO_FREE char *text = bridge_text(turn_template, &one, 1);
    assert_string_equal(text, expected);
}

static void the_tail_is_what_stands_around_the_last_sentinels(void **state)
{
    (void)state;
    struct turn_template_tail tail;
    const char *text = "[" TURN_TEMPLATE_USER "](" TURN_TEMPLATE_REPLY ")-[" TURN_TEMPLATE_USER
                       "]+(" TURN_TEMPLATE_REPLY "))<" TURN_TEMPLATE_USER ">!";
    assert_true(turn_template_tail_find(slice_from_str(text), &tail));
    assert_true(slice_is(tail.before, "))<"));
    assert_true(slice_is(tail.after, ">!"));
}

static void a_template_that_drops_or_repeats_a_sentinel_has_no_tail(void **state)
{
    (void)state;
    struct turn_template_tail tail;
    static const char *const broken[] = {"", TURN_TEMPLATE_USER, TURN_TEMPLATE_REPLY,
                                         TURN_TEMPLATE_USER TURN_TEMPLATE_REPLY,
                                         TURN_TEMPLATE_REPLY TURN_TEMPLATE_USER " " TURN_TEMPLATE_USER};
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        assert_false(turn_template_tail_find(slice_from_str(broken[i]), &tail));
}

static void the_head_is_what_stands_before_the_last_reply(void **state)
{
    (void)state;
    struct slice head;
    const char *text = "[" TURN_TEMPLATE_USER "](" TURN_TEMPLATE_REPLY ")-[" TURN_TEMPLATE_USER
                       "]+(" TURN_TEMPLATE_REPLY "))<" TURN_TEMPLATE_USER ">!";
    assert_true(turn_template_head_find(slice_from_str(text), &head));
    assert_true(slice_is(head, "]+("));
    assert_false(turn_template_head_find(slice_from_str(TURN_TEMPLATE_REPLY TURN_TEMPLATE_USER), &head));
    assert_false(turn_template_head_find(slice_from_str(TURN_TEMPLATE_USER), &head));
}

static void a_frame_is_cut_at_special_tokens_only(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>\n<|start|>user\n", " tail<|end|>\n<|start|>assistant\n", &fail), 0);
    assert_int_equal(turn_template.parts.count, 8);
    assert_int_equal(turn_template.parts.list[3].kind, TURN_TEMPLATE_CONTENT);
    assert_string_equal(turn_template.parts.list[3].text, "user\n");
    assert_string_equal(turn_template.parts.list[3].text_after, " tail");
    encode_literals(&turn_template.parts);
    assert_bridge(&turn_template, "C", "\n<user\nC tail>\n<assistant\n");
    turn_template_finish(&turn_template);
}

static void a_bridge_follows_the_end_token_that_the_model_sampled(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>\n<|start|>user\n", "<|end|><|end|>", &fail), 0);
    encode_literals(&turn_template.parts);
    assert_int_equal(frame_end(&turn_template), END);
    assert_bridge(&turn_template, "C", "\n<user\nC>>");
    turn_template_finish(&turn_template);
}

static void of_two_specials_the_longer_name_wins(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>>user ", "<|end|>", &fail), 0);
    assert_int_equal(turn_template.parts.list[0].id, LONGER);
    turn_template_finish(&turn_template);
}

static void a_reply_that_no_special_token_ends_cannot_be_bridged(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "\nuser: ", "\nassistant: ", &fail), -ENOTSUP);
    turn_template_finish(&turn_template);
    assert_int_equal(build(&turn_template, "\n<|end|>user: ", "\n", &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "does not end a reply with a special token"));
    turn_template_finish(&turn_template);
}

static void too_many_parts_are_refused_and_nothing_leaks(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    AUTO_BUFFER before = {0};
    for (int i = 0; i < TURN_TEMPLATE_PARTS_MAX; i++)
        buffer_append_str(&before, "<|end|>x");
    AUTO_FREE char *text = buffer_take_str(&before);
    assert_int_equal(build(&turn_template, text, "", &fail), -ENOTSUP);
    turn_template_finish(&turn_template);
}

static void blanks_are_stripped_where_the_template_strips_them(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    struct turn_template_tail plain = tail_of("<|end|>u:", "<|end|>");
    struct turn_template_tail left = tail_of("<|end|>u:", " \n<|end|>"), both = plain,
                              none = tail_of("<|end|>u:  ", " \n<|end|>"), odd = tail_of("<|end|>u: ", "<|end|>");
    assert_true(turn_template_learn_trim(&turn_template, &plain, &none, "  ", " \n"));
    assert_false(turn_template.trims_left || turn_template.trims_right);
    assert_true(turn_template_learn_trim(&turn_template, &plain, &left, "  ", " \n"));
    assert_true(turn_template.trims_left && !turn_template.trims_right);
    assert_false(turn_template_learn_trim(&turn_template, &plain, &odd, "  ", " \n"));
    assert_true(turn_template_learn_trim(&turn_template, &plain, &both, "  ", " \n"));
    turn_template.blanks = 0x3f; /* the first six: those of ASCII */
    assert_int_equal(turn_template_build(&turn_template, &plain, specials, 3, &fail), 0);
    encode_literals(&turn_template.parts);
    assert_bridge(&turn_template, " \t\n C D \r\n", "u:C D>");
    assert_bridge(&turn_template, " \n ", "u:>");
    assert_bridge(&turn_template, "\u3000C\u00a0 ", "u:\u3000C\u00a0>");
    turn_template.blanks = ~UINT32_C(0);
    assert_bridge(&turn_template, " \u3000C\u00a0 ", "u:C>");
    turn_template_finish(&turn_template);
}

/* ---- several in a row ---------------------------------------------------------------------- */

static void assert_row(struct turn_template *turn_template, const char *expected)
{
    const struct slice row[ROW] = {slice_from_str(" a "), slice_from_str(""), slice_from_str("c")};
    encode_literals(&turn_template->parts);
    encode_literals(&turn_template->gap.parts);
    AUTO_FREE char *text = bridge_text(turn_template, row, ROW);
    assert_string_equal(text, expected);
    AUTO_FREE char *one = bridge_text(turn_template, row + 2, 1);
    assert_string_equal(one, "\n<t:c!>");
}

static void a_gap_is_what_stands_between_two_turns_in_a_row(void **state)
{
    (void)state;
    struct slice gap;
    const struct turn_template_tail tail = tail_of("[", "]end");
    const char *text = "u[" TURN_TEMPLATE_USER "](" TURN_TEMPLATE_REPLY "[" TURN_TEMPLATE_USER "][" TURN_TEMPLATE_USER
                       "]end";
    assert_true(turn_template_gap_find(slice_from_str(text), &tail, &gap));
    assert_true(slice_is(gap, "]["));
    static const char *const others[] = {TURN_TEMPLATE_REPLY "[" TURN_TEMPLATE_USER "]end",
                                         TURN_TEMPLATE_REPLY "(" TURN_TEMPLATE_USER "][" TURN_TEMPLATE_USER "]end",
                                         TURN_TEMPLATE_REPLY "[" TURN_TEMPLATE_USER "][" TURN_TEMPLATE_USER "]",
                                         TURN_TEMPLATE_REPLY "[",
                                         "[" TURN_TEMPLATE_USER "][" TURN_TEMPLATE_USER "]end",
                                         ""};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_false(turn_template_gap_find(slice_from_str(others[i]), &tail, &gap));
}

static void turns_in_a_row_are_cut_at_the_special_tokens_of_their_gap(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>\n<|start|>t:", "!<|end|>", &fail), 0);
    assert_true(turn_template_build_gap(&turn_template, slice_from_str("!<|end|>\n<|start|>t:"), specials, 3));
    assert_int_equal(turn_template_runs(&turn_template, ROW), ROW);
    assert_row(&turn_template, "\n<t: a !>\n<t:!>\n<t:c!>");
    turn_template_finish(&turn_template);
}

static void turns_in_a_row_with_no_special_token_between_are_one_text(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>\n<|start|>t:", "!<|end|>", &fail), 0);
    assert_true(turn_template_build_gap(&turn_template, slice_from_str("</r><r>"), specials, 3));
    assert_int_equal(turn_template_runs(&turn_template, ROW), 1);
    assert_row(&turn_template, "\n<t: a </r><r></r><r>c!>");
    turn_template_finish(&turn_template);
}

static void content_whose_ids_hold_a_special_of_the_frame_is_refused(void **state)
{
    (void)state;
    struct turn_template turn_template = {0};
    struct fail fail = {0};
    assert_int_equal(build(&turn_template, "<|end|>u:", "<|start|>", &fail), 0);
    struct tokens bridge = {0}, content = {.ids = (uint32_t[]){'u', ':', START, 'x'}, .count = 4};
    assert_int_equal(turn_template_assemble(&turn_template, &content, 1, &bridge, &fail), -ENOTSUP);
    assert_non_null(strstr(fail.text, "token 256"));
    assert_int_equal(bridge.count, 0);
    turn_template_finish(&turn_template);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tail_is_what_stands_around_the_last_sentinels),
        cmocka_unit_test(a_template_that_drops_or_repeats_a_sentinel_has_no_tail),
        cmocka_unit_test(the_head_is_what_stands_before_the_last_reply),
        cmocka_unit_test(a_frame_is_cut_at_special_tokens_only),
        cmocka_unit_test(a_bridge_follows_the_end_token_that_the_model_sampled),
        cmocka_unit_test(of_two_specials_the_longer_name_wins),
        cmocka_unit_test(a_reply_that_no_special_token_ends_cannot_be_bridged),
        cmocka_unit_test(too_many_parts_are_refused_and_nothing_leaks),
        cmocka_unit_test(blanks_are_stripped_where_the_template_strips_them),
        cmocka_unit_test(a_gap_is_what_stands_between_two_turns_in_a_row),
        cmocka_unit_test(turns_in_a_row_are_cut_at_the_special_tokens_of_their_gap),
        cmocka_unit_test(turns_in_a_row_with_no_special_token_between_are_one_text),
        cmocka_unit_test(content_whose_ids_hold_a_special_of_the_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
