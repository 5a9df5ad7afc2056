#include "client/cli/top/plain.h"
#include "client/json/told.h"

#include "common/base/sanitize.h"

static void add_stage(struct buffer *line, const char *name, const json_t *stage)
{
    buffer_printf(line, "  %s %lld queued", name, told_number(stage, "queued"));
    if (json_object_get(stage, "slots"))
        buffer_printf(line, " %lld/%lld", (long long)(told_number(stage, "slots") - told_number(stage, "free")),
                      told_number(stage, "slots"));
    else
        buffer_printf(line, " %lld at work", told_number(stage, "leased"));
}

static void add_rates(struct buffer *line, const struct model *model)
{
    const json_t *rollouts = model_part(model, "rollouts");
    const double all = model_rate_of_all(model);
    buffer_append_str(line, "  ended");
    for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
        buffer_printf(line, " %lld %s", told_number(rollouts, outcome_wire(i)), outcome_wire(i));
    if (all >= 0)
        buffer_printf(line, "  %.1f/s", all);
    if (model_token_rate(model) >= 0)
        buffer_printf(line, "  %.0f tokens/s", model_token_rate(model));
}

static void add_engines(struct buffer *line, const json_t *engines)
{
    size_t healthy = 0, at;
    const json_t *engine;
    json_array_foreach(engines, at, engine) healthy += strcmp(told_text(engine, "state"), "healthy") == 0;
    if (json_array_size(engines))
        buffer_printf(line, "  engines %zu/%zu", healthy, json_array_size(engines));
}

void plain_line(const struct model *model, const char *time_of_day, struct buffer *ret)
{
    const json_t *bottleneck = model_part(model, "bottleneck"), *reasons = model_part(model, "reasons"), *reason;
    size_t at;
    buffer_printf(ret, "%s  ", time_of_day);
    if (*model->away) {
        buffer_append_str(ret, model->away);
    } else {
        buffer_printf(ret, "%s  %lld live", told_text(model->status, "health"),
                      told_number(model_part(model, "rollouts"), "live"));
        for (enum stage i = 0; i < STAGE_COUNT; i++)
            add_stage(ret, stage_wire(i), json_object_get(model_part(model, "stages"), stage_wire(i)));
        add_rates(ret, model);
        add_engines(ret, model_part(model, "engines"));
        if (json_is_object(bottleneck))
            buffer_printf(ret, "  waits for %s: %s", told_text(bottleneck, "part"), told_text(bottleneck, "why"));
        json_array_foreach(reasons, at, reason)
            buffer_printf(ret, "  ! %s", json_is_string(reason) ? json_string_value(reason) : "?");
    }
    if (ret->data)
        ret->len = sanitize((char *)ret->data, ret->len, false);
}
