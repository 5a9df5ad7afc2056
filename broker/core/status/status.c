/*
 * status.get: how the broker is, as one JSON object (docs/operations.md).
 */
#include "broker/core/status/status.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/status/bottleneck.h"
#include "broker/core/status/service_health.h"
#include "broker/core/status/lists.h"
#include "broker/core/status/stages.h"
#include "broker/core/status/view.h"
#include "broker/core/streams/quotas.h"

#include <stdlib.h>

/* ---- parts ------------------------------------------------------------------------- */

static json_t *rollouts(struct view view)
{
    static const uint64_t nothing[OUTCOME_COUNT];
    const struct core *core = view.core;
    const struct client *own = view.is_whole ? NULL : view.client;
    uint64_t live = view.is_whole ? core->usage[QUOTA_ROLLOUTS].used : own ? own->used[QUOTA_ROLLOUTS] : 0;
    const uint64_t *ended = view.is_whole ? core->ended : own ? own->ended : nothing;
    json_t *object = json_object();
    json_object_set_new(object, "accepted", status_number(view.is_whole ? core->accepted : own ? own->accepted : 0));
    json_object_set_new(object, "live", status_number(live));
    json_object_set_new(
        object, "limit",
        status_number(view.is_whole ? core->settings.rollouts_max : quota_share(core, view.name, QUOTA_ROLLOUTS)));
    for (enum outcome outcome = OUTCOME_OK; outcome < OUTCOME_COUNT; outcome++)
        json_object_set_new(object, outcome_wire(outcome), status_number(ended[outcome]));
    return object;
}

/* What waits and runs, of all or of the client's own. */
static void add_jobs(struct view view, json_t *part, enum stage stage)
{
    static const struct fair_member nothing;
    const struct core *core = view.core;
    const struct fair_member *own = view.client ? &view.client->queues[stage].member : &nothing;
    json_object_set_new(part, "queued", status_number(view.is_whole ? status_waiting(core, stage) : own->queued));
    json_object_set_new(part, "leased", status_number(view.is_whole ? core->leased[stage] : own->leased));
    if (!view.is_whole)
        return;
    json_object_set_new(part, "delayed", status_number(core->queues[PLACE_DELAYED][stage].count));
    json_object_set_new(part, "alone", status_number(core->queues[PLACE_ISOLATED][stage].count));
    json_object_set_new(part, "no_engine", status_number(core->queues[PLACE_BLOCKED][stage].count));
    json_object_set_new(part, "no_offer", status_number(core->queues[PLACE_UNOFFERED][stage].count));
}

static json_t *stages(struct view view)
{
    json_t *object = json_object();
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        struct stage_workers stage_workers = stage_workers_of(view.core, stage);
        json_t *part = json_object();
        add_jobs(view, part, stage);
        json_object_set_new(part, "workers", status_number(stage_workers.workers));
        json_object_set_new(part, "slots", status_number(stage_workers.slots));
        json_object_set_new(part, "free", status_number(stage_workers.free));
        json_object_set_new(object, stage_wire(stage), part);
    }
    return object;
}

static json_t *quotas(struct view view)
{
    json_t *object = json_object();
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        uint64_t own = view.client ? view.client->used[quota] : 0;
        uint64_t used = view.is_whole ? view.core->usage[quota].used : own;
        uint64_t max = view.is_whole ? quota_max(view.core, quota) : quota_share(view.core, view.name, quota);
        json_t *part = json_object();
        json_object_set_new(part, "used", status_number(used));
        json_object_set_new(part, "max", status_number(max));
        json_object_set_new(part, "percent", status_number(100 * used / max));
        json_object_set_new(object, quota_setting(quota), part);
    }
    return object;
}

static json_t *totals(struct view view)
{
    const struct core *core = view.core;
    size_t own = view.client ? view.client->stream_count : 0;
    json_t *object = json_object();
    json_object_set_new(object, "workers", status_number(core->workers_by_id.count));
    json_object_set_new(object, "streams", status_number(view.is_whole ? core->stream_count : own));
    json_object_set_new(object, "engines", status_number(core->engines_registered));
    return object;
}

/* What was not told of is not deleted from. */
static json_t *store(const struct core_store *store)
{
    json_t *object = json_object();
    json_object_set_new(object, "state", json_string(store->state ? store->state : "off"));
    json_object_set_new(object, "layers", status_number(store->layers));
    json_object_set_new(object, "bytes", status_number(store->bytes));
    json_object_set_new(object, "freed_layers", status_number(store->freed_layers));
    json_object_set_new(object, "freed_bytes", status_number(store->freed_bytes));
    if (store->error[0])
        json_object_set_new(object, "error", json_string(store->error));
    return object;
}

static json_t *counters(const struct core *core)
{
    json_t *object = json_object();
#define COUNTER(name, doc) json_object_set_new(object, #name, status_number(core->counters.name));
#include "broker/core/state/counters.def"
#undef COUNTER
    return object;
}

/* ---- the whole --------------------------------------------------------------------- */

/* What only an admin sees: who and what there is, by name. */
static void add_inventory(const struct core *core, json_t *status)
{
    json_object_set_new(status, "bottleneck", status_bottleneck(core));
    json_object_set_new(status, "workers", status_workers(core));
    json_object_set_new(status, "lost", status_lost(core));
    json_object_set_new(status, "id_conflicts", status_id_conflicts(core));
    json_object_set_new(status, "engines", status_engines(core));
    json_object_set_new(status, "needs", status_needs(core));
    json_object_set_new(status, "images", status_images(core));
    json_object_set_new(status, "clients", status_clients(core));
    json_object_set_new(status, "store", store(&core->store));
    json_object_set_new(status, "counters", counters(core));
}

/* As whom the broker takes who asks, whatever they call themselves. */
static json_t *asker(struct view view)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", status_text(view.name));
    json_object_set_new(object, "is_admin", json_boolean(view.is_whole));
    return object;
}

static bool print(struct view view, int64_t now_ms, struct buffer *out)
{
    const struct core *core = view.core;
    json_t *status = json_object(), *reasons = json_array();
    json_object_set_new(status, "health", json_string(status_health(core, reasons)));
    json_object_set_new(status, "reasons", reasons);
    json_object_set_new(status, "epoch", status_number(core->epoch));
    json_object_set_new(status, "uptime_ms", json_integer(now_ms - core->start_ms));
    json_object_set_new(status, "asker", asker(view));
    json_object_set_new(status, "rollouts", rollouts(view));
    json_object_set_new(status, "stages", stages(view));
    json_object_set_new(status, "limits", quotas(view));
    json_object_set_new(status, "totals", totals(view));
    json_object_set_new(status, "streams", status_streams(view));
    json_object_set_new(status, "samplers", status_samplers(view));
    if (view.is_whole)
        add_inventory(core, status);
    json_object_set_new(status, "advice", status_advice(view));
    char *bytes = json_dumps(status, JSON_COMPACT);
    bool is_whole = bytes && buffer_append_str(out, bytes);
    free(bytes);
    json_decref(status);
    return is_whole;
}

bool status_whole(const struct core *core, int64_t now_ms, struct buffer *out)
{
    return print((struct view){.core = core, .is_whole = true}, now_ms, out);
}

void handle_status_get(struct core *core, const struct call *call)
{
    struct buffer json = {0};
    struct view view = {core, client_find(core, call->caller->name), call->caller->is_admin, call->caller->name};
    bool is_whole = print(view, core->now_ms, &json);
    struct msg_status status = {.tag = call->tag, .json = buffer_peek(&json)};
    if (is_whole)
        send_client(core, call->client, MSG_status, &status);
    else
        core->failed = true;
    buffer_finish(&json);
}
