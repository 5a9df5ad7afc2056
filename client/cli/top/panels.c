#include "client/cli/top/panels.h"
#include "client/json/told.h"

#include <string.h>

#include "common/cmdline/cmdline.h"

static const struct panel_column rollout_columns[] = {
    {"rollout", "rollout", CELL_TEXT, 28, 0}, {"stream", "stream", CELL_TEXT, 16, 6},
    {"stage", "stage", CELL_TEXT, 5, 0},      {"state", "state", CELL_TEXT, 7, 0},
    {"for", "for_ms", CELL_AGE, 7, 0},        {"try", "attempt", CELL_NUMBER, 3, 3},
    {"worker", "worker", CELL_TEXT, 20, 5},   {"engine", "engine", CELL_TEXT, 28, 7},
    {"image", "image", CELL_TEXT, 24, 8},     {"at, and what it waits for", "why", CELL_DOING, 0, 0},
};

static const struct panel_column worker_columns[] = {
    {"host", "host", CELL_TEXT, 20, 0},       {"worker", "worker", CELL_TEXT, 24, 0},
    {"stage", "stage", CELL_TEXT, 5, 0},      {"state", "state", CELL_TEXT, 9, 0},
    {"slots", "slots", CELL_SLOTS, 9, 0},     {"beat", "beat_ago_ms", CELL_AGE, 7, 2},
    {"sandbox", "sandbox", CELL_TEXT, 13, 4}, {"made", "sandboxes", CELL_NUMBER, 7, 5},
    {"kernel", "kernel", CELL_TEXT, 16, 6},   {"what is wrong", "unreached", CELL_TEXT, 0, 1},
};

static const struct panel_column engine_columns[] = {
    {"engine", "url", CELL_TEXT, 36, 0},
    {"state", "state", CELL_TEXT, 8, 0},
    {"live", "live", CELL_NUMBER, 6, 0},
    {"limit", "limit", CELL_LIMIT, 6, 3},
    {"calls", "calls", CELL_NUMBER, 6, 0},
    {"tokens", "tokens", CELL_NUMBER, 9, 4},
    {"cache", "cache_permille", CELL_PERCENT, 5, 2},
    {"faults", "faults", CELL_NUMBER, 6, 5},
    {"policy", "policy", CELL_TEXT, 12, 6},
    {"version", "version", CELL_TEXT, 14, 1},
    {"what is wrong", "error", CELL_TEXT, 0, 0},
};

static const struct panel_column stream_columns[] = {
    {"stream", "name", CELL_TEXT, 32, 0},     {"pending", "pending", CELL_NUMBER, 9, 0},
    {"head", "head", CELL_NUMBER, 10, 0},     {"oldest", "first", CELL_NUMBER, 10, 1},
    {"kept", "kept_bytes", CELL_BYTES, 8, 0}, {"expired", "expired", CELL_NUMBER, 9, 2},
    {"owner", "owner", CELL_TEXT, 0, 3},
};

static const struct panel_column notice_columns[] = {
    {"what", "kind", CELL_TEXT, 12, 0},
    {"of", "name", CELL_TEXT, 24, 0},
    {"in words", "text", CELL_TEXT, 0, 0},
};

/* ---- rows --------------------------------------------------------------------------------------- */

static json_t *copy_of(const json_t *array)
{
    json_t *rows = json_copy((json_t *)array);
    return json_is_array(rows) ? rows : (json_decref(rows), json_array());
}

static json_t *rollouts(const struct model *model) { return copy_of(json_object_get(model->list, "rollouts")); }
static json_t *workers(const struct model *model) { return copy_of(model_part(model, "workers")); }
static json_t *engines(const struct model *model) { return copy_of(model_part(model, "engines")); }
static json_t *streams(const struct model *model) { return copy_of(model_part(model, "streams")); }

static void add_notice(json_t *rows, const char *kind, const char *name, json_t *text)
{
    json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "kind", kind, "name", name, "text", text));
}

/* A string of JSON, whatever the value was. */
static json_t *text_of(const char *text) { return json_string(text ? text : "?"); }

static void add_lost(json_t *rows, const json_t *lost)
{
    char ago[32];
    cell_age(told_number(lost, "ago_ms"), ago, sizeof(ago));
    add_notice(rows, "lost worker", told_text(lost, "worker"),
               json_sprintf("%s ago, %s on %s: %s; %lld jobs handed out again", ago, told_text(lost, "stage"),
                            told_text(lost, "host"), told_text(lost, "why"), told_number(lost, "jobs")));
}

static void add_image(json_t *rows, const json_t *image)
{
    add_notice(rows, "image", told_text(image, "image"),
               json_sprintf("%s after %lld faults, %lld groups wait; %s", told_text(image, "state"),
                            told_number(image, "faults"), told_number(image, "waiting"), told_text(image, "error")));
}

static void add_conflict(json_t *rows, const json_t *conflict)
{
    add_notice(rows, "worker's id", told_text(conflict, "worker"),
               json_sprintf("the key %s spoke under it, which is %s's", told_text(conflict, "key"),
                            told_text(conflict, "owner")));
}

static json_t *notices(const struct model *model)
{
    const struct {
        const char *key;
        void (*add)(json_t *rows, const json_t *row);
    } parts[] = {{"lost", add_lost}, {"images", add_image}, {"id_conflicts", add_conflict}};
    json_t *rows = json_array();
    const json_t *row;
    size_t at;
    json_array_foreach(model_part(model, "reasons"), at, row)
        add_notice(rows, "health", told_text(model->status, "health"), text_of(json_string_value(row)));
    json_array_foreach(model_part(model, "advice"), at, row)
        add_notice(rows, "advice", "", text_of(json_string_value(row)));
    for (size_t i = 0; i < ROWS(parts); i++)
        json_array_foreach(model_part(model, parts[i].key), at, row) parts[i].add(rows, row);
    return rows;
}

/* ---- the panels ---------------------------------------------------------------------------------- */

#define COLUMNS(table) .columns = table, .column_count = ROWS(table)

const struct panel panels[PANEL_COUNT] = {
    [PANEL_ROLLOUTS] = {"Rollouts", "rollout", "no rollout is live", COLUMNS(rollout_columns), .sort = 4,
                        .rows = rollouts},
    [PANEL_WORKERS] = {"Workers", "worker", "no worker is shown to this key, or none lives", COLUMNS(worker_columns),
                       .sort = 0, .rows = workers, .related_key = "worker"},
    [PANEL_ENGINES] = {"Engines", "url", "no engine is registered, or none is shown to this key",
                       COLUMNS(engine_columns), .sort = 0, .rows = engines, .related_key = "engine"},
    [PANEL_STREAMS] = {"Streams", "name", "there is no stream", COLUMNS(stream_columns), .sort = 1, .rows = streams,
                       .related_key = "stream"},
    [PANEL_NOTICES] = {"Notices", "text", "nothing is missing", COLUMNS(notice_columns), .sort = 0, .rows = notices},
};

static bool is_one_of(const char *word, const char *const words[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

enum mark panel_mark(enum panel_id panel, const json_t *row)
{
    static const char *const bad[] = {"failing", "silent", "other", "hung", "unreached", "degraded", "down"};
    static const char *const odd[] = {"delayed", "draining", "paused", "probing"};
    const char *state = told_text(row, panel == PANEL_NOTICES ? "name" : "state");
    if (is_one_of(state, bad, ROWS(bad)))
        return MARK_BAD;
    if (is_one_of(state, odd, ROWS(odd)))
        return MARK_WARN;
    return strcmp(state, "queued") == 0 ? MARK_DIM : MARK_PLAIN;
}
