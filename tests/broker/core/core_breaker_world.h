/* core_breaker_world.h - what tests of breakers share. */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_BREAKER_WORLD_H
#define SLUICE_TESTS_BROKER_CORE_CORE_BREAKER_WORLD_H

#include <jansson.h>

#include "tests/broker/core/core_world.h"

/* The state of the first engine or image in status.get, and its faults. */
static inline const char *state_in(struct world *world, const char *list, json_int_t *ret_faults)
{
    static char word[16];
    struct buffer out = {0};
    assert_true(core_status(world->core, world->now_ms, &out));
    json_t *status = json_loadb((const char *)out.data, out.len, 0, NULL);
    json_t *first = json_array_get(json_object_get(status, list), 0);
    snprintf(word, sizeof(word), "%s", first ? json_string_value(json_object_get(first, "state")) : "none");
    if (ret_faults)
        *ret_faults = json_integer_value(json_object_get(first, "faults"));
    json_decref(status);
    buffer_finish(&out);
    return word;
}

static inline struct world *open_with(uint64_t breaker_faults)
{
    struct world *world = world_create();
    world->settings.breaker_faults = breaker_faults;
    world->settings.beat_timeout_ms = 100000000;
    world_start(world);
    world_settle(world);
    return world;
}

static inline const char *state_of(struct world *world, const char *rollout)
{
    world_get(world, rollout);
    return expect_answer(world, MSG_rollout_state)->state;
}

#endif
