#include "broker/core/status/engine_metrics.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/status/scrape.h"

#define UNKNOWN "unknown"

static struct metric_label label_of(struct slice engine) { return (struct metric_label){"engine", engine}; }

/* ---- what was spent ---------------------------------------------------------------------- */

static bool has_any(const struct engine_spent *spent)
{
    return spent->turns > 0 || spent->sampled_tokens > 0 || spent->prompt_tokens > 0 ||
           observed_count(&spent->calls) > 0;
}

typedef void (*spent_writer)(struct exposition *out, const struct metric_label *label,
                             const struct engine_spent *spent);

static void each_spent(struct scrape *scrape, spent_writer write)
{
    const struct engine *engine;
    struct metric_label label;
    LIST_EACH(engine, &scrape->core->engines, link) {
        label = label_of(engine_url(engine));
        if (engine->registered)
            write(&scrape->out, &label, &engine->spent);
    }
    label = label_of(slice_from_str(UNKNOWN));
    if (has_any(&scrape->core->metrics.unknown))
        write(&scrape->out, &label, &scrape->core->metrics.unknown);
}

#define SPENT(name, member)                                                                                            \
    static void write_##name(struct exposition *out, const struct metric_label *label,                                 \
                             const struct engine_spent *spent)                                                         \
    {                                                                                                                  \
        exposition_count(out, label, 1, spent->member);                                                                \
    }                                                                                                                  \
    void engine_metrics_##name(struct scrape *scrape) { each_spent(scrape, write_##name); }

SPENT(turns, turns)
SPENT(sampled, sampled_tokens)
SPENT(prompts, prompt_tokens)
SPENT(cached, cached_tokens)

static void write_calls(struct exposition *out, const struct metric_label *label, const struct engine_spent *spent)
{
    exposition_histogram(out, label, 1, &observed_seconds, &spent->calls);
}

void engine_metrics_call_seconds(struct scrape *scrape) { each_spent(scrape, write_calls); }

/* ---- how they are ------------------------------------------------------------------------- */

typedef void (*engine_writer)(struct scrape *scrape, const struct metric_label *label, const struct engine *engine);

static void each_engine(struct scrape *scrape, engine_writer write)
{
    const struct engine *engine;
    LIST_EACH(engine, &scrape->core->engines, link) {
        const struct metric_label label = label_of(engine_url(engine));
        if (engine->registered)
            write(scrape, &label, engine);
    }
}

static void write_in_flight(struct scrape *scrape, const struct metric_label *label, const struct engine *engine)
{
    exposition_count(&scrape->out, label, 1, engine->seen.calls);
}

static void write_up(struct scrape *scrape, const struct metric_label *label, const struct engine *engine)
{
    const bool is_up = !engine->is_other && !engine_is_silent(engine) &&
                       breaker_state(scrape->core, &engine->breaker) == BREAKER_CLOSED;
    exposition_count(&scrape->out, label, 1, is_up);
}

static void write_cache(struct scrape *scrape, const struct metric_label *label, const struct engine *engine)
{
    if (engine->has_cache)
        exposition_number(&scrape->out, label, 1, engine->cache_permille / 1000.0);
}

static void write_errors(struct scrape *scrape, const struct metric_label *label, const struct engine *engine)
{
    static const char *const whys[] = {
#define X(name, word) word,
        ENGINE_ERRORS(X)
#undef X
    };
    for (size_t i = 0; i < ENGINE_ERROR_COUNT; i++) {
        const struct metric_label labels[] = {*label, {"why", slice_from_str(whys[i])}};
        exposition_count(&scrape->out, labels, 2, engine->errors[i]);
    }
}

void engine_metrics_calls(struct scrape *scrape) { each_engine(scrape, write_in_flight); }
void engine_metrics_up(struct scrape *scrape) { each_engine(scrape, write_up); }
void engine_metrics_cache(struct scrape *scrape) { each_engine(scrape, write_cache); }
void engine_metrics_errors(struct scrape *scrape) { each_engine(scrape, write_errors); }
