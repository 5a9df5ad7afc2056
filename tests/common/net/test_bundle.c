#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/net/bundle.h"

static void what_was_added_comes_out_in_order(void **state)
{
    (void)state;
    static const char *const texts[] = {"one", "", "a third one that is longer"};
    AUTO_BUFFER bundle = {0};
    for (int i = 0; i < 3; i++)
        assert_true(bundle_add(&bundle, slice_from_str(texts[i])));
    assert_true(is_bundle(buffer_peek(&bundle)));
    struct slice message;
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bundle_next(buffer_peek(&bundle), &at, &message), 1);
        assert_true(slice_is(message, texts[i]));
    }
    assert_int_equal(bundle_next(buffer_peek(&bundle), &at, &message), 0);
}

static void a_message_that_is_alone_goes_as_it_is(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    assert_true(bundle_add(&bundle, slice_from_str("alone")));
    assert_true(slice_is(bundle_peek(&bundle), "alone"));
    assert_true(bundle_add(&bundle, slice_from_str("no more")));
    assert_true(is_bundle(bundle_peek(&bundle)));
}

static void a_bundle_cut_short_anywhere_is_said(void **state)
{
    (void)state;
    AUTO_BUFFER bundle = {0};
    assert_true(bundle_add(&bundle, slice_from_str("first")) && bundle_add(&bundle, slice_from_str("second")));
    const size_t whole = bundle.len, first = 1 + 4 + strlen("first");
    for (size_t len = 1; len < whole; len++) {
        /* Its bytes and no more, so that a look beyond them is seen. */
        AUTO_FREE uint8_t *cut = malloc(len);
        memcpy(cut, bundle.data, len);
        struct slice message;
        size_t at = 0;
        int code;
        unsigned count = 0;
        while ((code = bundle_next(slice_of(cut, len), &at, &message)) == 1)
            count++;
        assert_int_equal(count, len >= first);
        assert_int_equal(code, len == 1 || len == first ? 0 : -1);
    }
}

static void a_length_beyond_all_is_cut_short(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {BUNDLE_MARK, 0xff, 0xff, 0xff, 0xff, 'x'};
    struct slice message;
    size_t at = 0;
    assert_int_equal(bundle_next(slice_of(bytes, sizeof(bytes)), &at, &message), -1);
}

static void a_message_is_no_bundle(void **state)
{
    (void)state;
    assert_false(is_bundle(slice_from_str("")));
    assert_false(is_bundle(slice_from_str("\xaajob.cancel")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_comes_out_in_order),
        cmocka_unit_test(a_message_that_is_alone_goes_as_it_is),
        cmocka_unit_test(a_bundle_cut_short_anywhere_is_said),
        cmocka_unit_test(a_length_beyond_all_is_cut_short),
        cmocka_unit_test(a_message_is_no_bundle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
