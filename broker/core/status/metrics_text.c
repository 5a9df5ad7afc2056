#include "broker/core/status/metrics_text.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/status/engine_metrics.h"
#include "broker/core/status/scrape.h"
#include "broker/core/status/service_health.h"
#include "broker/core/status/stages.h"
#include "broker/core/streams/quotas.h"

/* ---- the broker -------------------------------------------------------------------------- */

static void write_build(struct scrape *scrape)
{
    const struct core_process *process = &scrape->core->process;
    const struct metric_label labels[] = {{"version", slice_from_str(process->version ? process->version : "unknown")},
                                          {"commit", slice_from_str(process->commit ? process->commit : "unknown")}};
    exposition_count(&scrape->out, labels, 2, 1);
}

static void write_up(struct scrape *scrape)
{
    scrape_number(scrape, (double)(scrape->core->now_ms - scrape->core->start_ms) / 1000);
}

static void write_epoch(struct scrape *scrape) { scrape_count(scrape, scrape->core->epoch); }

static void write_health(struct scrape *scrape)
{
    static const char *const states[] = {"healthy", "degraded", "down"};
    json_t *reasons = json_array();
    const char *now = status_health(scrape->core, reasons);
    json_decref(reasons);
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        scrape_count_by(scrape, "state", states[i], strcmp(states[i], now) == 0);
}

/* ---- rollouts ---------------------------------------------------------------------------- */

static void write_accepted(struct scrape *scrape) { scrape_count(scrape, scrape->core->accepted); }

static void write_ended(struct scrape *scrape)
{
    for (enum outcome outcome = OUTCOME_OK; outcome < OUTCOME_COUNT; outcome++) {
        const uint64_t trainable = scrape->core->metrics.trainable[outcome];
        const char *word = outcome_wire(outcome);
        if (outcome_is_trainable(outcome))
            scrape_count_by_two(scrape, "outcome", word, "trainable", "true", trainable);
        scrape_count_by_two(scrape, "outcome", word, "trainable", "false", scrape->core->ended[outcome] - trainable);
    }
}

/* Where the stage's rollouts are; those of init are where their groups' jobs are. */
static uint64_t count_live(const struct core *core, enum stage stage, enum place place)
{
    if (stage == STAGE_INIT)
        return core->live_by_init[place];
    return place == PLACE_LEASED ? core->leased[stage] : core->queues[place][stage].count;
}

static void write_live(struct scrape *scrape)
{
    static const struct {
        enum place place;
        const char *word;
    } places[] = {
#define X(name, word) {PLACE_##name, word},
        PLACES(X)
#undef X
    };
    static const char *const states[] = {"queued", "leased", "delayed"};
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
            uint64_t count = 0;
            for (size_t k = 1; k < sizeof(places) / sizeof(*places); k++) /* without PLACE_NONE */
                if (strcmp(places[k].word, states[i]) == 0)
                    count += count_live(scrape->core, stage, places[k].place);
            scrape_count_by_two(scrape, "stage", stage_wire(stage), "state", states[i], count);
        }
}

/* ---- workers ------------------------------------------------------------------------------ */

static void write_slots(struct scrape *scrape)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        scrape_count_by(scrape, "stage", stage_wire(stage), scrape->workers[stage].slots);
}

static void write_slots_free(struct scrape *scrape)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        scrape_count_by(scrape, "stage", stage_wire(stage), scrape->workers[stage].free);
}

static void write_workers(struct scrape *scrape)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        for (enum worker_state state = 0; state < WORKER_STATE_COUNT; state++)
            scrape_count_by_two(scrape, "stage", stage_wire(stage), "state", worker_state_word(state),
                                scrape->workers[stage].by_state[state]);
}

static void write_lost(struct scrape *scrape)
{
    static const char *const whys[] = {
#define X(name, words, label) label,
        LOSS_WHYS(X)
#undef X
    };
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        for (size_t i = 0; i < LOSS_COUNT; i++)
            scrape_count_by_two(scrape, "stage", stage_wire(stage), "why", whys[i],
                                scrape->core->metrics.lost[stage][i]);
}

static void write_again(struct scrape *scrape)
{
    static const char *const whys[] = {
#define X(name, word) word,
        AGAIN_WHYS(X)
#undef X
    };
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        for (size_t i = 0; i < AGAIN_COUNT; i++)
            scrape_count_by_two(scrape, "stage", stage_wire(stage), "why", whys[i],
                                scrape->core->metrics.again[stage][i]);
}

static void write_by_stage(struct scrape *scrape, const struct observed *all)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        scrape_histogram_by(scrape, "stage", slice_from_str(stage_wire(stage)), &observed_seconds, &all[stage]);
}

static void write_stage_seconds(struct scrape *scrape) { write_by_stage(scrape, scrape->core->metrics.stage_seconds); }
static void write_queue_seconds(struct scrape *scrape) { write_by_stage(scrape, scrape->core->metrics.queue_seconds); }

/* ---- what others name ----------------------------------------------------------------------- */

static void write_named(struct scrape *scrape, const char *label, const struct observed_bounds *bounds,
                        const struct named_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        scrape_histogram_by(scrape, label, slice_from_str(set->each[i].name), bounds, &set->each[i].observed);
    if (set->has_other)
        scrape_histogram_by(scrape, label, slice_from_str(METRIC_OTHER), bounds, &set->other);
}

static void write_tool_seconds(struct scrape *scrape)
{
    write_named(scrape, "tool", &observed_seconds, &scrape->core->metrics.tools);
}

static void write_sandbox_seconds(struct scrape *scrape)
{
    write_named(scrape, "kind", &observed_seconds, &scrape->core->metrics.sandboxes);
}

static void write_reward(struct scrape *scrape)
{
    write_named(scrape, "stream", &counting_rewards, &scrape->core->metrics.rewards);
}

static void write_traces(struct scrape *scrape)
{
    const struct named_set *set = &scrape->core->metrics.traces;
    for (size_t i = 0; i < set->count; i++)
        scrape_count_by(scrape, "reason", set->each[i].name, set->each[i].observed.counts[0]);
    if (set->has_other)
        scrape_count_by(scrape, "reason", METRIC_OTHER, set->other.counts[0]);
}

/* Those whose rewards are told apart; all others together. */
static void write_pending(struct scrape *scrape)
{
    const struct named_set *set = &scrape->core->metrics.rewards;
    uint64_t others = scrape->core->usage[QUOTA_ROLLOUTS].used;
    for (size_t i = 0; i < set->count; i++) {
        const struct stream *stream = stream_find(scrape->core, slice_from_str(set->each[i].name));
        const uint64_t pending = stream ? stream->pending : 0;
        scrape_count_by(scrape, "stream", set->each[i].name, pending);
        others -= pending;
    }
    if (others > 0)
        scrape_count_by(scrape, "stream", METRIC_OTHER, others);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void write_version(struct scrape *scrape) { scrape_count(scrape, scrape->core->versions); }

static void write_lag(struct scrape *scrape)
{
    exposition_histogram(&scrape->out, NULL, 0, &counting_lags, &scrape->core->metrics.policy_lag);
}

static void write_limits(struct scrape *scrape)
{
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        const struct metric_label label = {"limit", slice_from_str(quota_setting(quota))};
        const double max = (double)quota_max(scrape->core, quota);
        exposition_number(&scrape->out, &label, 1, max > 0 ? (double)scrape->core->usage[quota].used / max : 0);
    }
}

static void write_ledger(struct scrape *scrape) { scrape_count(scrape, scrape->core->process.ledger_bytes); }
static void write_disk(struct scrape *scrape) { scrape_count(scrape, scrape->core->process.disk_free_bytes); }
static void write_resident(struct scrape *scrape) { scrape_count(scrape, scrape->core->process.resident_bytes); }
static void write_cpu(struct scrape *scrape) { scrape_number(scrape, scrape->core->process.cpu_seconds); }
static void write_fds(struct scrape *scrape) { scrape_count(scrape, scrape->core->process.open_fds); }
static void write_started(struct scrape *scrape) { scrape_number(scrape, scrape->core->process.started_s); }

/* ---- all of it -------------------------------------------------------------------------------- */

static void (*const writers[METRIC_COUNT])(struct scrape *) = {
    [METRIC_BUILD] = write_build,
    [METRIC_UP] = write_up,
    [METRIC_EPOCH] = write_epoch,
    [METRIC_HEALTH] = write_health,
    [METRIC_ACCEPTED] = write_accepted,
    [METRIC_ENDED] = write_ended,
    [METRIC_LIVE] = write_live,
    [METRIC_SLOTS] = write_slots,
    [METRIC_SLOTS_FREE] = write_slots_free,
    [METRIC_WORKERS] = write_workers,
    [METRIC_LOST] = write_lost,
    [METRIC_AGAIN] = write_again,
    [METRIC_STAGE_SECONDS] = write_stage_seconds,
    [METRIC_QUEUE_SECONDS] = write_queue_seconds,
    [METRIC_TURNS] = engine_metrics_turns,
    [METRIC_SAMPLED_TOKENS] = engine_metrics_sampled,
    [METRIC_PROMPT_TOKENS] = engine_metrics_prompts,
    [METRIC_CACHED_TOKENS] = engine_metrics_cached,
    [METRIC_ENGINE_CALL_SECONDS] = engine_metrics_call_seconds,
    [METRIC_ENGINE_CALLS] = engine_metrics_calls,
    [METRIC_ENGINE_UP] = engine_metrics_up,
    [METRIC_ENGINE_CACHE] = engine_metrics_cache,
    [METRIC_ENGINE_ERRORS] = engine_metrics_errors,
    [METRIC_TOOL_SECONDS] = write_tool_seconds,
    [METRIC_SANDBOX_SECONDS] = write_sandbox_seconds,
    [METRIC_TRACES] = write_traces,
    [METRIC_REWARD] = write_reward,
    [METRIC_POLICY_VERSION] = write_version,
    [METRIC_POLICY_LAG] = write_lag,
    [METRIC_STREAM_PENDING] = write_pending,
    [METRIC_LEDGER_BYTES] = write_ledger,
    [METRIC_DISK_FREE] = write_disk,
    [METRIC_LIMIT] = write_limits,
    [METRIC_RESIDENT] = write_resident,
    [METRIC_CPU] = write_cpu,
    [METRIC_FDS] = write_fds,
    [METRIC_STARTED] = write_started,
};

void metrics_write(const struct core *core, bool is_openmetrics, struct buffer *out)
{
    struct scrape scrape = {.core = core, .out = {.out = out, .is_openmetrics = is_openmetrics}};
    scrape_workers(&scrape);
    for (enum metric_id id = 0; id < METRIC_COUNT; id++) {
        if (!writers[id])
            continue;
        exposition_begin(&scrape.out, &metric_get(id)->family);
        writers[id](&scrape);
    }
    exposition_end(&scrape.out);
}

void handle_metrics_get(struct core *core, const struct call *call)
{
    const struct msg_metrics_get *in = call->in;
    struct buffer text = {0};
    metrics_write(core, in->openmetrics, &text);
    struct msg_metrics metrics = {.tag = call->tag, .text = buffer_peek(&text)};
    if (text.failed)
        core->failed = true;
    else
        send_client(core, call->client, MSG_metrics, &metrics);
    buffer_finish(&text);
}
