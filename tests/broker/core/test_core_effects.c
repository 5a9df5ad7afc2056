/* Effects that are carried out while the core goes on. */
#include "tests/broker/core/core_world.h"

static struct world *open_world(struct effect_list *list)
{
    struct world *world = world_open();
    *list = (struct effect_list){0};
    return world;
}

static void submit(struct world *world, const char *id)
{
    const struct msg_group_submit in = {
        .tag = 7, .group = TEXT(id), .stream = TEXT("train"), .samples = 1, .task = TEXT("{}")};
    const struct caller caller = {.route = TEXT("trainer"), .name = TEXT(NULL), .is_admin = true};
    core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_group_submit, &in, &world->task, 1);
}

static const struct effect *find(const struct effect_list *list, enum effect_kind kind)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind == kind)
            return &list->items[i];
    fail_msg("there is no effect %d", kind);
    return NULL;
}

static void what_was_taken_stays_while_the_core_goes_on(void **state)
{
    struct effect_list list;
    struct world *world = open_world(&list);
    (void)state;
    submit(world, "a");
    const size_t count = core_effects(world->core).count;
    core_effects_take(world->core, &list);
    assert_int_equal(list.count, count);
    assert_int_equal(core_effects(world->core).count, 0);
    for (char id[16] = "b"; id[0] < 'z'; id[0]++)
        submit(world, id);
    const struct effect *persist = find(&list, PERSIST_GROUP);
    assert_true(slice_is(persist->group, "a"));
    assert_true(slice_is(persist->stream, "train"));
    assert_true(slice_is(persist->summary->id, "add"));
    core_effects_done(world->core);
    effect_list_clear(&list);
    core_effects_take(world->core, &list);
    assert_true(slice_is(find(&list, PERSIST_GROUP)->group, "b"));
    effect_list_finish(&list);
    world_close(world);
}

/* They lie in no memory of the core's. */
static void what_was_taken_outlives_the_core(void **state)
{
    struct effect_list list;
    struct world *world = open_world(&list);
    (void)state;
    submit(world, "a");
    core_effects_take(world->core, &list);
    world_close(world);
    assert_true(slice_is(find(&list, PERSIST_GROUP)->group, "a"));
    assert_true(slice_is(find(&list, SEND_CLIENT)->client, "trainer"));
    effect_list_finish(&list);
}

static void acknowledge_all(struct world *world)
{
    const struct caller caller = {.route = TEXT("trainer"), .name = TEXT(NULL), .is_admin = true};
    const struct msg_rollout_cancel cancel = {.tag = 1, .stream = TEXT("train"), .has_stream = true};
    core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_rollout_cancel, &cancel, NULL, 0);
    core_tick(world->core, world->now_ms, WALL_MS);
    const struct msg_stream_ack ack = {.tag = 2, .stream = TEXT("train"), .seq = 1};
    core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_stream_ack, &ack, NULL, 0);
}

/* So the ledger, which is asked for what the core does not remember, knows of it by then. */
static void a_name_is_forgotten_when_what_was_said_of_it_is_carried_out(void **state)
{
    struct effect_list list = {0};
    struct world *world = world_create();
    (void)state;
    world->settings.forgotten_max = 0;
    world_start(world);
    world_settle(world);
    submit(world, "a");
    core_effects_take(world->core, &list);
    acknowledge_all(world); /* in effects that come after those */
    core_effects_done(world->core);
    assert_true(core_remembers(world->core, TEXT("a")));
    effect_list_clear(&list);
    core_effects_take(world->core, &list);
    assert_true(core_remembers(world->core, TEXT("a")));
    core_effects_done(world->core);
    assert_false(core_remembers(world->core, TEXT("a")));
    effect_list_finish(&list);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_taken_stays_while_the_core_goes_on),
        cmocka_unit_test(what_was_taken_outlives_the_core),
        cmocka_unit_test(a_name_is_forgotten_when_what_was_said_of_it_is_carried_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
