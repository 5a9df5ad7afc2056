/* status.get: health in a word, the workers lost of late, and who sees what. */
#include "tests/broker/core/core_world.h"

#include <jansson.h>

/* What status.get says to whoever speaks in this world. */
static json_t *ask(struct world *world)
{
    struct caller caller = {TEXT("client"), TEXT(world->name), !world->name || world->is_admin};
    struct msg_status_get in = {.tag = 14};
    core_handle(world->core, world->now_ms, WALL_MS, &caller, MSG_status_get, &in, NULL, 0);
    struct effects effects = core_effects(world->core);
    assert_int_equal(effects.items[effects.count - 1].kind, SEND_CLIENT);
    struct msg_status out;
    struct refusal no;
    assert_true(message_decode(MSG_status, effects.items[effects.count - 1].bytes, &out, &no));
    json_t *status = json_loadb((const char *)out.json.data, out.json.len, 0, NULL);
    assert_non_null(status);
    core_effects_clear(world->core);
    return status;
}

static void expect_health(struct world *world, const char *health, const char *reason)
{
    json_t *status = ask(world), *sentence, *reasons = json_object_get(status, "reasons");
    bool is_said = !reason && json_array_size(reasons) == 0;
    size_t i;
    json_array_foreach(reasons, i, sentence) is_said |= reason && strstr(json_string_value(sentence), reason);
    const char *found = json_string_value(json_object_get(status, "health"));
    if (strcmp(found, health) != 0 || !is_said)
        fail_msg("%s %s", found, json_dumps(reasons, 0));
    json_decref(status);
}

static void hire(struct world *world)
{
    world_beat(world, "i1", "init", 4, NULL);
    world_beat(world, "r1", "run", 4, NULL);
    world_beat(world, "e1", "eval", 4, NULL);
}

static void a_broker_without_a_worker_of_each_stage_is_down(void **state)
{
    (void)state;
    struct world *world = world_open();
    expect_health(world, "down", "no init worker is ready");
    hire(world);
    expect_health(world, "healthy", NULL);
    world_submit(world, "g", 2);
    world_beat_with(world, "i1", "init", (struct beat){.slots = 4, .draining = true}, NULL);
    expect_health(world, "down", "no init worker is ready");
    world_submit(world, "h", 2);
    expect_health(world, "down", "no init worker is ready, and 1 jobs wait for one");
    world_close(world);
}

static void a_broker_whose_last_worker_of_a_stage_hangs_is_down(void **state)
{
    (void)state;
    struct world *world = world_open();
    hire(world);
    world_beat_with(world, "r1", "run", (struct beat){.slots = 4, .progress = 7}, NULL);
    for (unsigned i = 0; i < 8; i++) {
        world_wait(world, 1000);
        world_beat(world, "i1", "init", 4, NULL);
        world_beat(world, "e1", "eval", 4, NULL);
        world_beat_with(world, "r1", "run", (struct beat){.slots = 4, .progress = 7}, NULL);
    }
    expect_health(world, "down", "no run worker is ready");
    world_close(world);
}

static void a_lost_worker_degrades_until_its_slots_are_made_up_for(void **state)
{
    (void)state;
    struct world *world = world_open();
    hire(world);
    world_beat(world, "i2", "init", 4, NULL);
    world_break_lane(world, "i2");
    world->now_ms += 2000;
    expect_health(world, "degraded",
                  "1 init workers were lost, the last 2 s ago: 4 slots are left "
                  "of 8");
    world_beat(world, "i3", "init", 4, NULL);
    expect_health(world, "healthy", NULL);
    world_close(world);
}

static void a_loss_is_forgiven_after_a_time(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.lost_shown_ms = 3000;
    world_start(world);
    hire(world);
    world_beat(world, "i2", "init", 4, NULL);
    world_break_lane(world, "i2");
    world_wait(world, 3000);
    expect_health(world, "degraded", "4 slots are left of 8");
    world_wait(world, 1);
    expect_health(world, "healthy", NULL);
    world_close(world);
}

static void a_worker_that_had_drained_is_not_lost(void **state)
{
    (void)state;
    struct world *world = world_open();
    hire(world);
    world_beat(world, "i2", "init", 4, NULL);
    world_beat_with(world, "i2", "init", (struct beat){.slots = 4, .draining = true}, NULL);
    world_break_lane(world, "i2");
    expect_health(world, "healthy", NULL);
    json_t *status = ask(world);
    assert_int_equal(json_array_size(json_object_get(status, "lost")), 0);
    json_decref(status);
    world_close(world);
}

static void what_runs_short_degrades(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.rollouts_max = 100;
    world_start(world);
    hire(world);
    core_disk_is_low(world->core, true);
    expect_health(world, "degraded", "the disk of the broker's data directory is nearly full");
    core_disk_is_low(world->core, false);
    world_submit(world, "g", 94);
    expect_health(world, "healthy", NULL);
    world_submit(world, "h", 1);
    expect_health(world, "degraded", "95 % of the rollouts that fit are live");
    world_close(world);
}

static void runs_without_an_engine_degrade(void **state)
{
    (void)state;
    struct world *world = world_open();
    world->task.needs_engine = true;
    world_engine(world, MSG_engine_add, "http://127.0.0.1:8080");
    hire(world);
    world_beat(world, "r1", "run", 1, NULL);
    world_submit(world, "g", 2);
    world_engine(world, MSG_engine_remove, "http://127.0.0.1:8080");
    world_result(world, "i1", "init:g", token_of(world, "init:g"), "ok");
    expect_health(world, "degraded", "2 jobs wait for an engine, and none is registered");
    world_close(world);
}

static const char *word(const json_t *part, const char *name)
{
    const char *text = json_string_value(json_object_get(part, name));
    return text ? text : "-";
}

static void what_workers_tell_of_their_nodes_is_shown_and_a_weak_tier_is_advice(void **state)
{
    (void)state;
    struct world *world = world_open();
    struct beat best = {.sandbox = "overlay-tmpfs", .sandboxes = 12, .kernel = "6.1.0"};
    struct beat weak = {.sandbox = "overlay-disk", .sandbox_why = "overlay on tmpfs: refused", .kernel = "5.14.0"};
    hire(world); /* which tell nothing, as older ones */
    world_beat_with(world, "r1", "run", best, NULL);
    json_t *status = ask(world), *workers = json_object_get(status, "workers");
    json_t *last = json_array_get(workers, json_array_size(workers) - 1);
    assert_string_equal(word(last, "sandbox"), "overlay-tmpfs");
    assert_string_equal(word(last, "kernel"), "6.1.0");
    assert_string_equal(word(last, "sandbox_why"), "-");
    assert_int_equal(json_integer_value(json_object_get(last, "sandboxes")), 12);
    assert_null(json_object_get(json_array_get(workers, 0), "sandbox"));
    assert_int_equal(json_array_size(json_object_get(status, "advice")), 0);
    json_decref(status);
    world_beat_with(world, "r1", "run", weak, NULL); /* the same worker: what it says last counts */
    status = ask(world);
    workers = json_object_get(status, "workers");
    last = json_array_get(workers, json_array_size(workers) - 1);
    assert_string_equal(word(last, "sandbox"), "overlay-disk");
    assert_string_equal(word(last, "sandbox_why"), "overlay on tmpfs: refused");
    assert_string_equal(json_string_value(json_array_get(json_object_get(status, "advice"), 0)),
                        "1 workers have sandboxes of a weaker tier or none, r1 on node7 among them, with "
                        "overlay-disk: overlay on tmpfs: refused: run sluice doctor there");
    assert_string_equal(word(status, "health"), "healthy");
    json_decref(status);
    world_close(world);
}

static void an_error_on_a_node_is_shown_and_degrades_until_its_worker_tells_of_none(void **state)
{
    (void)state;
    struct world *world = world_open();
    hire(world);
    world_beat_with(world, "r1", "run", (struct beat){.node_error = "/var/tmp/cache was removed"}, NULL);
    expect_health(world, "degraded",
                  "1 of the workers report an error on their nodes, node7 among them: "
                  "/var/tmp/cache was removed");
    json_t *status = ask(world), *workers = json_object_get(status, "workers");
    assert_string_equal(word(json_array_get(workers, json_array_size(workers) - 1), "node_error"),
                        "/var/tmp/cache was removed");
    assert_string_equal(json_string_value(json_array_get(json_object_get(status, "advice"), 0)),
                        "r1 on node7 says: /var/tmp/cache was removed: see who does that there, and its log");
    json_decref(status);
    world_beat_with(world, "r1", "run", (struct beat){0}, NULL);
    expect_health(world, "healthy", NULL);
    world_close(world);
}

static void lost_workers_are_listed_with_why_and_what_they_had(void **state)
{
    (void)state;
    struct world *world = world_open();
    hire(world);
    world_submit(world, "g", 2);
    world_submit(world, "h", 2);
    world_break_lane(world, "i1");
    world_wait(world, 5000); /* the others say nothing any more */
    json_t *status = ask(world), *lost = json_object_get(status, "lost");
    assert_int_equal(json_array_size(lost), 3);
    json_t *first = json_array_get(lost, 2), *last = json_array_get(lost, 0);
    assert_string_equal(json_string_value(json_object_get(first, "worker")), "i1");
    assert_string_equal(json_string_value(json_object_get(first, "host")), "node7");
    assert_string_equal(json_string_value(json_object_get(first, "stage")), "init");
    assert_string_equal(json_string_value(json_object_get(first, "why")), "its lane broke");
    assert_int_equal(json_integer_value(json_object_get(first, "jobs")), 2);
    assert_int_equal(json_integer_value(json_object_get(first, "ago_ms")), 5000);
    assert_string_equal(json_string_value(json_object_get(last, "why")), "no beat");
    json_decref(status);
    world_close(world);
}

static void the_list_of_lost_workers_is_bounded(void **state)
{
    (void)state;
    struct world *world = world_open();
    for (unsigned i = 0; i < 300; i++) {
        char id[16];
        snprintf(id, sizeof(id), "w%u", i);
        world_beat(world, id, "init", 4, NULL);
        world_break_lane(world, id);
    }
    json_t *status = ask(world), *lost = json_object_get(status, "lost");
    assert_int_equal(json_array_size(lost), 256);
    assert_string_equal(json_string_value(json_object_get(json_array_get(lost, 0), "worker")), "w299");
    json_decref(status);
    world_close(world);
}

/* ---- who sees what ----------------------------------------------------------------- */

static struct world *world_of_two(void)
{
    struct world *world = world_open();
    hire(world);
    world->name = "alice";
    world_submit_task(world, "a", "hers", 3, "{}");
    world_cancel(world, "a/0", NULL, NULL);
    world->name = "bob";
    world_submit_task(world, "b", "his", 5, "{}");
    return world;
}

static json_int_t number_in(json_t *status, const char *part, const char *name)
{
    json_t *value = json_object_get(json_object_get(status, part), name);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void a_client_sees_its_own_streams_and_numbers_and_nobody_elses(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    world->name = "alice";
    json_t *status = ask(world), *streams = json_object_get(status, "streams");
    assert_int_equal(json_array_size(streams), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(streams, 0), "name")), "hers");
    assert_int_equal(number_in(status, "rollouts", "accepted"), 3);
    assert_int_equal(number_in(status, "rollouts", "live"), 2);
    assert_int_equal(number_in(status, "rollouts", "cancelled"), 1);
    assert_int_equal(number_in(status, "totals", "streams"), 1);
    json_t *limits = json_object_get(status, "limits");
    assert_int_equal(number_in(limits, "results_max", "used"), 1);
    json_t *init = json_object_get(json_object_get(status, "stages"), "init");
    assert_int_equal(json_integer_value(json_object_get(init, "leased")), 1);
    assert_int_equal(json_integer_value(json_object_get(init, "slots")), 4);
    static const char *const hidden[] = {"workers", "lost", "engines", "images", "clients", "counters"};
    for (unsigned i = 0; i < 6; i++)
        assert_null(json_object_get(status, hidden[i]));
    char *bytes = json_dumps(status, 0);
    assert_null(strstr(bytes, "bob"));
    assert_null(strstr(bytes, "\"his\""));
    assert_null(strstr(bytes, "node7"));
    free(bytes);
    json_decref(status);
    world->name = "carol"; /* has nothing */
    status = ask(world);
    assert_int_equal(json_array_size(json_object_get(status, "streams")), 0);
    assert_int_equal(number_in(status, "rollouts", "live"), 0);
    json_decref(status);
    world_close(world);
}

static void an_admin_sees_all_and_whose_it_is(void **state)
{
    (void)state;
    struct world *world = world_of_two();
    world->name = "root";
    world->is_admin = true;
    json_t *status = ask(world), *clients = json_object_get(status, "clients");
    assert_int_equal(json_array_size(json_object_get(status, "streams")), 2);
    assert_int_equal(number_in(status, "rollouts", "accepted"), 8);
    assert_int_equal(json_array_size(json_object_get(status, "workers")), 3);
    assert_int_equal(json_array_size(clients), 2);
    json_t *alice = json_array_get(clients, 0);
    assert_string_equal(json_string_value(json_object_get(alice, "name")), "alice");
    assert_int_equal(json_integer_value(json_object_get(alice, "live")), 2);
    assert_int_equal(json_integer_value(json_object_get(alice, "leased")), 1);
    assert_int_equal(json_integer_value(json_object_get(alice, "queued")), 0);
    assert_int_equal(json_integer_value(json_object_get(alice, "kept")), 1);
    json_decref(status);
    world_close(world);
}

static void what_retention_forgot_is_counted_in_its_stream(void **state)
{
    (void)state;
    struct world *world = world_create();
    world->settings.keep_count = 2;
    world_start(world);
    world_submit(world, "g", 5);
    world_cancel(world, NULL, "g", NULL);
    world_wait(world, 1000);
    world_wait(world, 1000);
    json_t *status = ask(world);
    json_t *stream = json_array_get(json_object_get(status, "streams"), 0);
    assert_int_equal(json_integer_value(json_object_get(stream, "expired")), 3);
    assert_int_equal(json_integer_value(json_object_get(stream, "first")), 4);
    assert_int_equal(number_in(status, "counters", "expired"), 3);
    json_decref(status);
    world_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broker_without_a_worker_of_each_stage_is_down),
        cmocka_unit_test(a_broker_whose_last_worker_of_a_stage_hangs_is_down),
        cmocka_unit_test(a_lost_worker_degrades_until_its_slots_are_made_up_for),
        cmocka_unit_test(a_loss_is_forgiven_after_a_time),
        cmocka_unit_test(a_worker_that_had_drained_is_not_lost),
        cmocka_unit_test(what_runs_short_degrades),
        cmocka_unit_test(runs_without_an_engine_degrade),
        cmocka_unit_test(what_workers_tell_of_their_nodes_is_shown_and_a_weak_tier_is_advice),
        cmocka_unit_test(an_error_on_a_node_is_shown_and_degrades_until_its_worker_tells_of_none),
        cmocka_unit_test(lost_workers_are_listed_with_why_and_what_they_had),
        cmocka_unit_test(the_list_of_lost_workers_is_bounded),
        cmocka_unit_test(a_client_sees_its_own_streams_and_numbers_and_nobody_elses),
        cmocka_unit_test(an_admin_sees_all_and_whose_it_is),
        cmocka_unit_test(what_retention_forgot_is_counted_in_its_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
