/* top_world.h - a service that is busy, as the broker would tell of it, for what `sluice top` makes of it. */
#ifndef SLUICE_TESTS_CLIENT_CLI_TOP_TOP_WORLD_H
#define SLUICE_TESTS_CLIENT_CLI_TOP_TOP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/cli/top/draw.h"
#include "common/base/cleanup.h"

static const char busy_status[] =
    "{\"health\": \"degraded\", \"reasons\": [\"the engine http://gpu2:8000 is set aside\", \"a worker was lost\"],"
    " \"epoch\": 3, \"uptime_ms\": 4000000,"
    " \"rollouts\": {\"accepted\": 900, \"live\": 214, \"limit\": 100000, \"ok\": 500, \"agent\": 100, \"task\": 6,"
    " \"infra\": 1, \"cancelled\": 0},"
    " \"stages\": {"
    "\"init\": {\"queued\": 4, \"leased\": 2, \"workers\": 1, \"slots\": 8, \"free\": 6},"
    "\"run\": {\"queued\": 120, \"leased\": 32, \"delayed\": 3, \"workers\": 2, \"slots\": 32, \"free\": 0},"
    "\"eval\": {\"queued\": 0, \"leased\": 1, \"workers\": 1, \"slots\": 8, \"free\": 7}},"
    " \"bottleneck\": {\"part\": \"run\", \"why\": \"all 32 run slots are taken, and 120 jobs wait\"},"
    " \"workers\": ["
    "{\"worker\": \"run-node7-1\", \"stage\": \"run\", \"host\": \"node7\", \"state\": \"ready\", \"slots\": 16,"
    " \"jobs\": 16, \"beat_ago_ms\": 400, \"sandbox\": \"namespace\", \"sandboxes\": 16, \"kernel\": \"6.1.0\"},"
    "{\"worker\": \"run-node3-1\", \"stage\": \"run\", \"host\": \"node3\", \"state\": \"draining\", \"slots\": 16,"
    " \"jobs\": 3, \"beat_ago_ms\": 900}],"
    " \"lost\": [{\"worker\": \"run-node9-1\", \"stage\": \"run\", \"host\": \"node9\", \"ago_ms\": 61000,"
    " \"why\": \"no beat\", \"jobs\": 4}],"
    " \"engines\": ["
    "{\"url\": \"http://gpu1:8000\", \"state\": \"healthy\", \"live\": 20, \"calls\": 12, \"cache_permille\": 634,"
    " \"version\": \"step-12\"},"
    "{\"url\": \"http://gpu2:8000\", \"state\": \"failing\", \"live\": 0, \"error\": \"HTTP 500\", \"faults\": 5}],"
    " \"streams\": [{\"name\": \"train\", \"pending\": 214, \"head\": 606, \"first\": 1, \"kept_bytes\": 2500000}],"
    " \"advice\": [\"register another engine\"]}";

static const char busy_list[] =
    "{\"matched\": 3, \"rollouts\": ["
    "{\"rollout\": \"young/0\", \"stream\": \"train\", \"task\": \"t\", \"stage\": \"run\", \"state\": \"leased\","
    " \"attempt\": 1, \"for_ms\": 1500, \"worker\": \"run-node7-1\", \"turn\": 2, \"tool\": \"bash\"},"
    "{\"rollout\": \"old/1\", \"stream\": \"train\", \"task\": \"t\", \"stage\": \"run\", \"state\": \"queued\","
    " \"attempt\": 2, \"for_ms\": 7500000, \"why\": \"no engine is free\"},"
    "{\"rollout\": \"middle/2\", \"stream\": \"train\", \"task\": \"t\", \"stage\": \"eval\", \"state\": \"leased\","
    " \"attempt\": 1, \"for_ms\": 61000, \"worker\": \"run-node3-1\", \"engine\": \"http://gpu1:8000\"}]}";

struct world {
    struct model model;
    struct view view;
    char *rows[SCREEN_ROWS_MAX]; /* of the last screen, without marks */
    size_t row_count;
};

static inline json_t *parse(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

static inline void forget(struct world *world)
{
    for (size_t i = 0; i < world->row_count; i++)
        free(world->rows[i]);
    world->row_count = 0;
}

static inline void look(struct world *world, size_t columns, size_t rows)
{
    AUTO_ROWS shown = {0};
    AUTO_SCREEN screen = {0};
    const struct table_order order = view_order(&world->view);
    const struct draw_facts facts = {.url = "tcp://127.0.0.1:5750", .interval_ms = 2000, .now_ms = 65000};
    forget(world);
    assert_true(rows_make(&shown, &world->model, world->view.panel, &order));
    assert_true(screen_init(&screen, columns, rows, true));
    draw_all(&screen, &world->model, &world->view, &shown, &facts);
    for (world->row_count = 0; world->row_count < screen.rows; world->row_count++)
        world->rows[world->row_count] = screen_row(&screen, world->row_count);
}

static inline void press(struct world *world, int key)
{
    AUTO_ROWS shown = {0};
    const struct table_order order = view_order(&world->view);
    assert_true(rows_make(&shown, &world->model, world->view.panel, &order));
    view_key(&world->view, key, &shown);
}

/* The row that holds the text, or -1. */
static inline int row_with(const struct world *world, const char *text)
{
    for (size_t i = 0; i < world->row_count; i++)
        if (strstr(world->rows[i], text))
            return (int)i;
    return -1;
}

static inline void expect_row(const struct world *world, const char *text)
{
    if (row_with(world, text) >= 0)
        return;
    for (size_t i = 0; i < world->row_count; i++)
        printf("|%s\n", world->rows[i]);
    fail_msg("no row with '%s'", text);
}

static inline int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    view_init(&world->view);
    model_hear(&world->model, parse(busy_status), parse(busy_list), 60000);
    *state = world;
    return 0;
}

static inline int tear_down(void **state)
{
    struct world *world = *state;
    forget(world);
    model_finish(&world->model);
    free(world);
    return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
