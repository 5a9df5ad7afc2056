#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/arena.h"

static void what_is_taken_is_whole_and_apart(void **state)
{
    struct arena arena = {0};
    uint8_t *taken[300];
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        taken[i] = arena_alloc(&arena, i);
        assert_non_null(taken[i]);
        assert_int_equal((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
        memset(taken[i], (int)(i % 251), i);
    }
    for (size_t i = 0; i < 300; i++)
        for (size_t k = 0; k < i; k++)
            assert_int_equal(taken[i][k], i % 251);
    arena_finish(&arena);
    assert_null(arena.newest);
}

static void zeroed_memory_is_zero_also_where_it_was_used(void **state)
{
    struct arena arena = {0};
    (void)state;
    assert_true(arena_reserve(&arena, 4096));
    const uint64_t *numbers = arena_zeroed(&arena, 100, sizeof(*numbers));
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    arena_finish(&arena);
}

static void what_was_reserved_holds_it_in_one_piece(void **state)
{
    struct arena arena = {0};
    (void)state;
    assert_true(arena_reserve(&arena, 1 << 20));
    const struct arena_chunk *only = arena.newest;
    assert_non_null(arena_alloc(&arena, (1 << 20) - 64));
    assert_ptr_equal(arena.newest, only);
    assert_non_null(arena_alloc(&arena, 4096));
    assert_ptr_not_equal(arena.newest, only);
    arena_finish(&arena);
}

static void sizes_that_no_memory_has_are_refused(void **state)
{
    struct arena arena = {0};
    (void)state;
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_zeroed(&arena, SIZE_MAX / 8, 16));
    assert_false(arena_reserve(&arena, SIZE_MAX - 8));
    assert_null(arena.newest);
    arena_finish(&arena);
}

static void texts_are_copied_with_their_end(void **state)
{
    struct arena arena = {0};
    char text[] = "a word";
    (void)state;
    const char *copy = arena_text(&arena, slice_of(text, 3)), *made = arena_printf(&arena, "%s=%d", text, 7);
    const char *empty = arena_text(&arena, (struct slice){NULL, 0});
    text[0] = '?';
    assert_string_equal(copy, "a w");
    assert_string_equal(made, "a word=7");
    assert_string_equal(empty, "");
    arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_whole_and_apart),
        cmocka_unit_test(zeroed_memory_is_zero_also_where_it_was_used),
        cmocka_unit_test(what_was_reserved_holds_it_in_one_piece),
        cmocka_unit_test(sizes_that_no_memory_has_are_refused),
        cmocka_unit_test(texts_are_copied_with_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
