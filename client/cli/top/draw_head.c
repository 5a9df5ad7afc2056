#include "client/cli/top/draw_head.h"
#include "client/json/told.h"

#include <stdio.h>
#include <string.h>

enum { LABEL = 10, BAR_LEAST = 10, BAR_MOST = 40 };

void draw_title(struct screen *screen, const struct model *model, const struct view *view,
                const struct draw_facts *facts)
{
    char up[32];
    screen_mark(screen, MARK_HEAD);
    screen_put(screen, " sluice top  %s", facts->url);
    if (model->status) {
        cell_age(told_number(model->status, "uptime_ms"), up, sizeof(up));
        screen_put(screen, "  up %s", up);
    }
    screen_put(screen, "  every %.3gs%s", (double)facts->interval_ms / 1000, view->is_paused ? "  PAUSED" : "");
    screen_pad(screen, screen->columns);
    screen_next(screen);
}

static enum mark mark_of_health(const char *health)
{
    return strcmp(health, "healthy") == 0 ? MARK_GOOD : strcmp(health, "down") == 0 ? MARK_BAD : MARK_WARN;
}

static void label(struct screen *screen, const char *text) { screen_cell(screen, text, LABEL, false); }

void draw_health(struct screen *screen, const struct model *model, size_t reasons_max)
{
    const json_t *reasons = model_part(model, "reasons"), *bottleneck = model_part(model, "bottleneck");
    const char *health = told_text(model->status, "health");
    const size_t count = json_array_size(reasons);
    label(screen, "health");
    screen_mark(screen, mark_of_health(health));
    screen_put(screen, "%s", *health ? health : "not told");
    screen_mark(screen, MARK_PLAIN);
    for (size_t i = 0; i < count && i < reasons_max; i++) {
        const char *reason = json_string_value(json_array_get(reasons, i));
        if (i) {
            screen_next(screen);
            screen_pad(screen, LABEL);
        }
        screen_put(screen, "%s%s", i ? "" : ": ", reason ? reason : "?");
        if (i == reasons_max - 1 && count > reasons_max)
            screen_put(screen, " (and %zu more: Notices)", count - reasons_max);
    }
    screen_next(screen);
    label(screen, "waits for");
    screen_mark(screen, json_is_object(bottleneck) ? MARK_WARN : MARK_PLAIN);
    if (json_is_object(bottleneck))
        screen_put(screen, "%s: %s", told_text(bottleneck, "part"), told_text(bottleneck, "why"));
    else
        screen_put(screen, "nothing: no part of the service is short");
    screen_next(screen);
}

static void draw_outcomes(struct screen *screen, const struct model *model, const json_t *rollouts)
{
    const bool has_rates = model_rate_of_all(model) >= 0;
    label(screen, has_rates ? "ended/s" : "ended");
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++) {
        const double rate = model_rate(model, i);
        screen_put(screen, i ? ", " : "");
        if (rate > 0)
            screen_mark(screen, i == OUTCOME_OK ? MARK_GOOD : MARK_WARN);
        if (has_rates)
            screen_put(screen, "%.1f %s", rate, outcome_wire(i));
        else
            screen_put(screen, "%lld %s", told_number(rollouts, outcome_wire(i)), outcome_wire(i));
        screen_mark(screen, MARK_PLAIN);
    }
    screen_next(screen);
}

void draw_rates(struct screen *screen, const struct model *model)
{
    const json_t *rollouts = model_part(model, "rollouts");
    const double all = model_rate_of_all(model), tokens = model_token_rate(model);
    long long ended = 0;
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
        ended += told_number(rollouts, outcome_wire(i));
    label(screen, "rollouts");
    screen_put(screen, "%lld live of at most %lld; %lld have ended", told_number(rollouts, "live"),
               told_number(rollouts, "limit"), ended);
    if (all >= 0)
        screen_put(screen, ", %.1f a second", all);
    if (tokens >= 0)
        screen_put(screen, "; %.0f tokens/s", tokens);
    screen_next(screen);
    draw_outcomes(screen, model, rollouts);
}

/* "[######....]" */
static void draw_bar(struct screen *screen, int64_t part, int64_t whole, size_t width)
{
    size_t full = whole > 0 ? (size_t)(part * (int64_t)width / whole) : 0;
    if (part > 0 && !full)
        full = 1;
    screen_put(screen, "[");
    screen_mark(screen, part >= whole && whole > 0 ? MARK_WARN : MARK_GOOD);
    for (size_t i = 0; i < width; i++) {
        if (i == full)
            screen_mark(screen, MARK_DIM);
        screen_put(screen, i < full ? "#" : ".");
    }
    screen_mark(screen, MARK_PLAIN);
    screen_put(screen, "]");
}

static void draw_stage(struct screen *screen, const char *name, const json_t *stage)
{
    static const struct {
        const char *key, *words;
    } waits[] = {
        {"delayed", "delayed"}, {"alone", "alone"}, {"no_engine", "without engine"}, {"no_offer", "without offer"}};
    const int64_t slots = told_number(stage, "slots"), free_slots = told_number(stage, "free");
    const int64_t leased = told_number(stage, "leased");
    const size_t spare = screen->columns > 80 ? (screen->columns - 80) / 2 : 0;
    const size_t width = BAR_LEAST + spare > BAR_MOST ? BAR_MOST : BAR_LEAST + spare;
    label(screen, name);
    if (json_object_get(stage, "slots")) {
        draw_bar(screen, slots - free_slots, slots, width);
        screen_put(screen, " %lld of %lld slots", (long long)(slots - free_slots), (long long)slots);
    } else {
        screen_put(screen, "%lld at work", (long long)leased);
    }
    screen_pad(screen, LABEL + width + 22);
    screen_put(screen, " %lld queued", told_number(stage, "queued"));
    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
        if (told_number(stage, waits[i].key))
            screen_put(screen, ", %lld %s", told_number(stage, waits[i].key), waits[i].words);
    if (json_object_get(stage, "workers"))
        screen_put(screen, "; %lld worker%s", told_number(stage, "workers"),
                   told_number(stage, "workers") == 1 ? "" : "s");
    screen_next(screen);
}

void draw_stages(struct screen *screen, const struct model *model)
{
    for (enum stage i = 0; i < STAGE_COUNT; i++)
        draw_stage(screen, stage_wire(i), json_object_get(model_part(model, "stages"), stage_wire(i)));
}
