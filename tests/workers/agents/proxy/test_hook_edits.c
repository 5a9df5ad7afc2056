/* Where what a hook made of a conversation is made again, and where it is not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workers/agents/proxy/hooks/hook_edits.h"

/* Messages by the letter of their role, each with its text: "sa ub" is a system's a and a user's b. */
static void make(const char *words, bool has_tool, struct said_request *ret)
{
    static const char roles[] = "suat";
    *ret = (struct said_request){0};
    for (const char *at = words; *at; at += at[2] ? 3 : 2) {
        struct said *message = said_add(ret, (enum said_role)(strchr(roles, at[0]) - roles));
        assert_non_null(message);
        message->text = strndup(at + 1, 1);
        message->call_id = at[0] == 't' ? strdup("") : NULL;
    }
    if (!has_tool)
        return;
    struct said_tool *tool = said_add_tool(ret);
    assert_non_null(tool);
    *tool = (struct said_tool){.name = strdup("bash"), .doc = strdup(""), .parameters = json_object()};
}

static void edit(struct hook_edits *edits, const char *words, size_t at, size_t count, const char *becomes)
{
    struct said_request request, more;
    struct fail fail = {0};
    make(words, true, &request);
    make(becomes, false, &more);
    assert_int_equal(hook_edits_make(edits, &request, at, count, &more, &fail), 0);
    said_request_finish(&request);
    said_request_finish(&more);
}

static void assert_repeated(const struct hook_edits *edits, const char *words, bool has_tool, const char *texts)
{
    struct said_request request;
    struct fail fail = {0};
    make(words, has_tool, &request);
    assert_int_equal(hook_edits_repeat(edits, &request, &fail), 0);
    assert_int_equal(request.count, strlen(texts));
    for (size_t i = 0; i < request.count; i++)
        assert_int_equal(request.messages[i].text[0], texts[i]);
    said_request_finish(&request);
}

static void what_is_put_in_front_is_known_by_what_follows_and_by_the_tools(void **state)
{
    (void)state;
    struct hook_edits edits = {0};
    edit(&edits, "sa ub", 0, 0, "sX");
    assert_repeated(&edits, "sa ub", true, "Xab");
    assert_repeated(&edits, "sa ub ac ud", true, "Xabcd");
    assert_repeated(&edits, "sa ub", false, "ab");
    assert_repeated(&edits, "sa uc", true, "ac");
    assert_repeated(&edits, "sc ub", true, "cb");
    assert_repeated(&edits, "sa", true, "a");
    hook_edits_finish(&edits);
}

static void what_is_put_at_the_end_is_known_by_nothing_or_a_turn_behind_it(void **state)
{
    (void)state;
    struct hook_edits edits = {0};
    edit(&edits, "ua", 1, 0, "uX");
    assert_repeated(&edits, "ua", true, "aX");
    assert_repeated(&edits, "ua ab uc", true, "aXbc");
    assert_repeated(&edits, "ua ub", true, "ab");
    assert_repeated(&edits, "ua", false, "a");
    hook_edits_finish(&edits);
}

static void what_was_replaced_behind_another_stays_so_whatever_follows(void **state)
{
    (void)state;
    struct hook_edits edits = {0};
    edit(&edits, "ua tb", 1, 1, "tX");
    assert_repeated(&edits, "ua tb uc", false, "aXc");
    assert_repeated(&edits, "ud tb", true, "db");
    hook_edits_finish(&edits);
}

static void one_edit_too_many_is_said_to_be_that(void **state)
{
    (void)state;
    struct hook_edits edits = {0};
    for (size_t i = 0; i < HOOK_EDITS_MAX; i++)
        edit(&edits, "ua", 1, 0, "uX");
    struct said_request request, more;
    struct fail fail = {0};
    make("ua", true, &request);
    make("uX", false, &more);
    assert_int_equal(hook_edits_make(&edits, &request, 1, 0, &more, &fail), -E2BIG);
    assert_string_equal(fail.text, "hooks have made 4096 changes in the rollout, which is the most");
    assert_int_equal(json_array_size(edits.tools), 1);
    said_request_finish(&request);
    said_request_finish(&more);
    hook_edits_finish(&edits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_front_is_known_by_what_follows_and_by_the_tools),
        cmocka_unit_test(what_is_put_at_the_end_is_known_by_nothing_or_a_turn_behind_it),
        cmocka_unit_test(what_was_replaced_behind_another_stays_so_whatever_follows),
        cmocka_unit_test(one_edit_too_many_is_said_to_be_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
