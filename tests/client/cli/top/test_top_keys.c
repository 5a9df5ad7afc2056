/* The keys of `sluice top`: what bytes are which, and what each does to the view. */
#include "tests/client/cli/top/top_world.h"

static void bytes_are_keys(void **state)
{
    static const struct {
        const char *bytes;
        int key;
        size_t used;
    } cases[] = {
        {"q", 'q', 1},
        {"\x1b[A", KEY_UP, 3},
        {"\x1bOB", KEY_DOWN, 3},
        {"\x1b[5~x", KEY_PAGE_UP, 4},
        {"\x1b[Z", KEY_BACK_TAB, 3},
        {"\r", KEY_ENTER, 1},
        {"\n", KEY_ENTER, 1},
        {"\x08", KEY_DELETE, 1},
        {"\x1b[1;5A", KEY_NONE, 6},
        {"\x1bq", KEY_ESCAPE, 1},
        {"\x1b[", KEY_NONE, 0},
        {"\x1b", KEY_NONE, 0},
    };
    size_t used;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(key_next(cases[i].bytes, strlen(cases[i].bytes), false, &used), cases[i].key);
        assert_int_equal(used, cases[i].used);
    }
    assert_int_equal(key_next("\x1b", 1, true, &used), KEY_ESCAPE);
    assert_int_equal(used, 1);
    assert_int_equal(key_next("\x1b[999999999999999999999", 20, false, &used), KEY_NONE);
    assert_int_equal(used, 20);
}

static void tab_goes_through_the_panels(void **state)
{
    struct world *world = *state;
    static const char *const shown[] = {"run-node3-1", "http://gpu2:8000", "train", "register another engine"};
    for (size_t i = 0; i < 4; i++) {
        press(world, KEY_TAB);
        look(world, 80, 24);
        expect_row(world, shown[i]);
    }
    expect_row(world, "lost worker");
    press(world, KEY_TAB);
    assert_int_equal(world->view.panel, PANEL_ROLLOUTS);
    press(world, KEY_BACK_TAB);
    assert_int_equal(world->view.panel, PANEL_NOTICES);
}

static void workers_stand_by_host(void **state)
{
    struct world *world = *state;
    press(world, KEY_TAB);
    look(world, 80, 24);
    assert_true(row_with(world, "node3") < row_with(world, "node7"));
    expect_row(world, "node7 run-node7-1 run   ready    16/16");
    press(world, 'r');
    look(world, 80, 24);
    assert_true(row_with(world, "node3") > row_with(world, "node7"));
}

static void the_chosen_row_stays_the_chosen_one(void **state)
{
    struct world *world = *state;
    look(world, 80, 24);
    press(world, 'j');
    press(world, KEY_DOWN);
    press(world, 'j');
    look(world, 80, 24);
    assert_string_equal(world->view.panels[PANEL_ROLLOUTS].chosen, "young/0");
    press(world, 'k');
    look(world, 80, 24);
    assert_string_equal(world->view.panels[PANEL_ROLLOUTS].chosen, "middle/2");
    press(world, 's');
    press(world, 'r');
    look(world, 80, 24);
    assert_string_equal(world->view.panels[PANEL_ROLLOUTS].chosen, "middle/2");
    model_hear(&world->model, parse(busy_status), parse("{\"matched\": 0, \"rollouts\": []}"), 61000);
    look(world, 80, 24);
    expect_row(world, "no rollout is live");
}

static void a_filter_is_typed_and_taken_away(void **state)
{
    struct world *world = *state;
    press(world, 'f');
    for (const char *at = "NO ENGX"; *at; at++)
        press(world, *at);
    press(world, KEY_DELETE);
    look(world, 80, 24);
    expect_row(world, "filter: NO ENG_");
    expect_row(world, "Rollouts 1 of 3");
    expect_row(world, "old/1");
    assert_int_equal(row_with(world, "young/0"), -1);
    press(world, KEY_ENTER);
    press(world, 'q');
    assert_true(world->view.ends);
    press(world, KEY_ESCAPE);
    look(world, 80, 24);
    expect_row(world, "young/0");
    press(world, '/');
    press(world, 'q');
    press(world, 0xc3);
    press(world, 0xa4);
    press(world, KEY_DELETE);
    assert_string_equal(world->view.panels[PANEL_ROLLOUTS].filter, "q");
}

static void details_show_all_and_what_is_there(void **state)
{
    struct world *world = *state;
    look(world, 80, 24);
    press(world, KEY_ENTER);
    look(world, 80, 24);
    expect_row(world, "why                 no engine is free");
    expect_row(world, "attempt             2");
    press(world, KEY_ENTER);
    press(world, KEY_TAB);
    press(world, KEY_END);
    look(world, 80, 24);
    press(world, KEY_ENTER);
    look(world, 80, 24);
    expect_row(world, "sandboxes           16");
    expect_row(world, "rollout             young/0: run leased for 1.5s: turn 2, bash");
    press(world, KEY_END);
    look(world, 80, 14);
    expect_row(world, "young/0");
    press(world, KEY_ESCAPE);
    assert_false(world->view.shows_details);
}

static void help_names_every_key_and_any_key_ends_it(void **state)
{
    struct world *world = *state;
    press(world, '?');
    look(world, 80, 24);
    for (size_t i = 0; i < view_help_count; i++)
        expect_row(world, view_help[i].keys);
    press(world, 'x');
    assert_false(world->view.shows_help);
    press(world, 'p');
    look(world, 80, 24);
    expect_row(world, "PAUSED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(bytes_are_keys),
        CASE(tab_goes_through_the_panels),
        CASE(workers_stand_by_host),
        CASE(the_chosen_row_stays_the_chosen_one),
        CASE(a_filter_is_typed_and_taken_away),
        CASE(details_show_all_and_what_is_there),
        CASE(help_names_every_key_and_any_key_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
