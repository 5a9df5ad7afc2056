/* The table against a plain list, and the heap against a sorted one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/containers/heap.h"
#include "common/containers/table.h"

enum { THINGS = 500 };

struct thing {
    char name[16];
    bool in;
    struct heap_node node;
};

static struct thing *make_things(void)
{
    struct thing *things = calloc(THINGS, sizeof(*things));
    for (unsigned i = 0; i < THINGS; i++)
        snprintf(things[i].name, sizeof(things[i].name), "thing-%u", i);
    return things;
}

static unsigned next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static struct slice name_of(const void *thing) { return slice_from_str(((const struct thing *)thing)->name); }

static void put_find_and_take(struct table table)
{
    struct thing *things = make_things();
    uint32_t seed = 1;
    size_t count = 0;
    for (unsigned step = 0; step < 20000; step++) {
        struct thing *thing = &things[next_random(&seed) % THINGS];
        struct slice name = slice_from_str(thing->name);
        assert_ptr_equal(table_find(&table, name), thing->in ? thing : NULL);
        if (thing->in)
            assert_ptr_equal(table_take(&table, name), thing);
        else
            assert_true(table_put(&table, name, thing));
        thing->in = !thing->in;
        count += thing->in ? 1 : (size_t)-1;
        assert_int_equal(table.count, count);
    }
    for (unsigned i = 0; i < THINGS; i++)
        assert_ptr_equal(table_find(&table, slice_from_str(things[i].name)), things[i].in ? &things[i] : NULL);
    table_finish(&table);
    free(things);
}

static void what_is_put_is_found_until_it_is_taken(void **state)
{
    (void)state;
    put_find_and_take((struct table){.seed = 42});
}

static void a_table_that_reads_names_from_its_things_finds_the_same(void **state)
{
    (void)state;
    put_find_and_take((struct table){.seed = 42, .name_of = name_of});
}

static void iterating_meets_each_thing_once(void **state)
{
    (void)state;
    struct thing *things = make_things();
    struct table table = {0};
    size_t at = 0, met = 0;
    assert_null(table_next(&table, &at));
    for (unsigned i = 0; i < THINGS; i++)
        assert_true(table_put(&table, slice_from_str(things[i].name), &things[i]));
    at = 0;
    for (struct thing *thing; (thing = table_next(&table, &at)); met++) {
        assert_false(thing->in);
        thing->in = true;
    }
    assert_int_equal(met, THINGS);
    table_finish(&table);
    free(things);
}

static void room_that_was_made_is_enough(void **state)
{
    (void)state;
    struct thing *things = make_things();
    struct table table = {.name_of = name_of};
    assert_true(table_reserve(&table, THINGS));
    const size_t capacity = table.capacity;
    for (unsigned i = 0; i < THINGS; i++)
        assert_true(table_put(&table, slice_from_str(things[i].name), &things[i]));
    assert_int_equal(table.capacity, capacity);
    assert_true(table_reserve(&table, THINGS / 2)); /* never less than there is */
    assert_ptr_equal(table_find(&table, slice_from_str(things[0].name)), &things[0]);
    assert_false(table_reserve(&table, SIZE_MAX));
    assert_ptr_equal(table_find(&table, slice_from_str(things[0].name)), &things[0]);
    table_finish(&table);
    free(things);
}

static void many_are_put_in_at_once(void **state)
{
    (void)state;
    struct thing *things = make_things();
    void *each[TABLE_MANY];
    struct table table = {.seed = 42, .name_of = name_of};
    for (unsigned begun = 0; begun < THINGS; begun += TABLE_MANY) {
        const size_t count = THINGS - begun < TABLE_MANY ? THINGS - begun : TABLE_MANY;
        for (size_t i = 0; i < count; i++)
            each[i] = &things[begun + i];
        assert_int_equal(table_put_many(&table, each, count), count);
    }
    assert_int_equal(table.count, THINGS);
    for (unsigned i = 0; i < THINGS; i++)
        assert_ptr_equal(table_find(&table, slice_from_str(things[i].name)), &things[i]);
    table_finish(&table);
    free(things);
}

static void of_many_none_goes_in_from_a_name_on_that_is_there(void **state)
{
    (void)state;
    struct thing *things = make_things();
    struct table table = {.name_of = name_of};
    assert_true(table_put(&table, slice_from_str(things[2].name), &things[2]));
    assert_int_equal(table_put_many(&table, (void *[]){&things[0], &things[1], &things[2], &things[3]}, 4), 2);
    assert_int_equal(table_put_many(&table, (void *[]){&things[4], &things[4]}, 2), 1);
    assert_int_equal(table_put_many(&table, NULL, 0), 0);
    assert_int_equal(table.count, 4);
    assert_null(table_find(&table, slice_from_str(things[3].name)));
    assert_ptr_equal(table_find(&table, slice_from_str(things[4].name)), &things[4]);
    table_finish(&table);
    free(things);
}

static void an_empty_table_knows_nothing(void **state)
{
    (void)state;
    struct table table = {0};
    assert_null(table_find(&table, slice_from_str("x")));
    assert_null(table_take(&table, slice_from_str("x")));
    table_finish(&table);
}

static void the_heap_always_shows_its_smallest(void **state)
{
    (void)state;
    struct thing *things = make_things();
    struct heap heap = {0};
    uint32_t seed = 7;
    for (unsigned step = 0; step < 5000; step++) {
        struct thing *thing = &things[next_random(&seed) % THINGS];
        if (next_random(&seed) % 3)
            assert_true(heap_put(&heap, &thing->node, next_random(&seed) % 1000));
        else
            heap_remove(&heap, &thing->node);
        assert_true(heap_is_sound(&heap));
        const struct heap_node *first = heap_peek(&heap);
        for (unsigned i = 0; i < THINGS; i++)
            if (things[i].node.place)
                assert_true(first->key <= things[i].node.key);
    }
    while (heap_peek(&heap))
        heap_remove(&heap, heap_peek(&heap));
    assert_int_equal(heap.count, 0);
    heap_finish(&heap);
    free(things);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_is_found_until_it_is_taken),
        cmocka_unit_test(a_table_that_reads_names_from_its_things_finds_the_same),
        cmocka_unit_test(iterating_meets_each_thing_once),
        cmocka_unit_test(room_that_was_made_is_enough),
        cmocka_unit_test(many_are_put_in_at_once),
        cmocka_unit_test(of_many_none_goes_in_from_a_name_on_that_is_there),
        cmocka_unit_test(an_empty_table_knows_nothing),
        cmocka_unit_test(the_heap_always_shows_its_smallest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
