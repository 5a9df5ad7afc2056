/* Unicode's form C: what becomes of characters, marks in any order, Hangul, and texts that are in it already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "workers/tokenizer/nfc.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void texts_become_their_form_c(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"", ""},
        {"plain ASCII\n", "plain ASCII\n"},
        {"e\u0301", "\u00e9"},
        {"\u00e9", "\u00e9"},
        {"A\u030a", "\u00c5"},
        {"\u212b", "\u00c5"},              /* a sign that is only made of another */
        {"a\u0323\u0307", "\u1ea1\u0307"}, /* two marks, of which one joins */
        {"a\u0307\u0323", "\u1ea1\u0307"}, /* in the other order */
        {"\u1e9b\u0323", "\u1e9b\u0323"},
        {"q\u0307\u0323", "q\u0323\u0307"}, /* ordered, and none joins */
        {"s\u0323\u0307", "\u1e69"},        /* both join */
        {"\u1100\u1161\u11a8", "\uac01"},   /* Hangul */
        {"\uac00\u11a8", "\uac01"},
        {"\u0958", "\u0915\u093c"}, /* excluded from composition */
        {"\u0915\u093c", "\u0915\u093c"},
        {"\uf900", "\u8c48"}, /* a compatibility ideograph */
        {"\U0001d15e", "\U0001d157\U0001d165"},
        {"o\u0302\u0303 x\u0338 =\u0338", "\u1ed7 x\u0338 \u2260"},
        {"\u0301a", "\u0301a"},                       /* a mark without a character */
        {"\u0b47\u0300\u0b3e", "\u0b47\u0300\u0b3e"}, /* blocked by what stands between */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        AUTO_BUFFER out = {0};
        assert_true(nfc_append(&out, slice_from_str(cases[i].text)));
        if (!slice_is(buffer_peek(&out), cases[i].expected))
            fail_msg("%zu: '%s' became '%.*s', not '%s'", i, cases[i].text, SLICE_ARG(buffer_peek(&out)),
                     cases[i].expected);
    }
}

static void a_mountain_of_marks_is_refused(void **state)
{
    (void)state;
    AUTO_BUFFER text = {0}, out = {0};
    buffer_append_str(&text, "a");
    for (int i = 0; i < 5000; i++)
        buffer_append_str(&text, i % 2 ? "\u0323" : "\u0307");
    assert_false(nfc_append(&out, buffer_peek(&text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_become_their_form_c),
        cmocka_unit_test(a_mountain_of_marks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
