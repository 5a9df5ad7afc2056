/*
 * status.get: how the broker is, as one JSON object (docs/operations.md), and in
 * "advice" what is missing, in words.
 */
#include "broker/core_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { LISTED_MAX = 1000 }; /* workers, streams and engines listed by name; the rest is counted */

static json_t *text(struct slice s)
{
    return json_stringn(s.data ? (const char *)s.data : "", s.len);
}

static json_t *whole(uint64_t number) { return json_integer((json_int_t)number); }

static size_t waiting(const struct core *core, enum stage stage)
{
    return core->queues[PLACE_QUEUED][stage].count + core->queues[PLACE_SOLO][stage].count +
           core->queues[PLACE_PARKED][stage].count + core->queues[PLACE_ORPHAN][stage].count +
           (stage == STAGE_INIT ? core->images_waiting : 0);
}

/* ---- parts ------------------------------------------------------------------------- */

static json_t *rollouts(const struct core *core)
{
    json_t *object = json_object();
    json_object_set_new(object, "accepted", whole(core->accepted));
    json_object_set_new(object, "live", whole(core->usage[LIMIT_ROLLOUTS].used));
    json_object_set_new(object, "limit", whole(core->settings.rollouts_max));
    for (enum outcome outcome = OUTCOME_OK; outcome < OUTCOME_COUNT; outcome++)
        json_object_set_new(object, outcome_wire(outcome), whole(core->ended[outcome]));
    return object;
}

struct crew {
    uint64_t workers, draining, hung, slots, free;
};

static struct crew crew_of(const struct core *core, enum stage stage)
{
    struct crew crew = {0};
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (worker->stage != stage)
            continue;
        crew.workers++;
        crew.draining += worker->draining;
        crew.hung += worker->hung;
        if (worker->draining || worker->hung)
            continue;
        crew.slots += worker->slots;
        crew.free += worker->slots - worker->jobs.count;
    }
    return crew;
}

static json_t *stages(const struct core *core)
{
    json_t *object = json_object();
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        struct crew crew = crew_of(core, stage);
        json_t *part = json_object();
        json_object_set_new(part, "queued", whole(waiting(core, stage)));
        json_object_set_new(part, "leased", whole(core->leased[stage]));
        json_object_set_new(part, "delayed", whole(core->queues[PLACE_DELAYED][stage].count));
        json_object_set_new(part, "alone", whole(core->queues[PLACE_SOLO][stage].count));
        json_object_set_new(part, "no_engine", whole(core->queues[PLACE_PARKED][stage].count));
        json_object_set_new(part, "workers", whole(crew.workers));
        json_object_set_new(part, "slots", whole(crew.slots));
        json_object_set_new(part, "free", whole(crew.free));
        json_object_set_new(object, stage_wire(stage), part);
    }
    return object;
}

static json_t *workers(const struct core *core)
{
    json_t *array = json_array();
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (json_array_size(array) == LISTED_MAX)
            break;
        const char *state = worker->hung ? "hung" : worker->draining ? "draining" : "ready";
        json_t *part = json_object();
        json_object_set_new(part, "worker", text(worker_id(worker)));
        json_object_set_new(part, "stage", json_string(stage_wire(worker->stage)));
        json_object_set_new(part, "host", text(slice_from_str(worker->host)));
        json_object_set_new(part, "state", json_string(state));
        json_object_set_new(part, "slots", whole(worker->slots));
        json_object_set_new(part, "jobs", whole(worker->jobs.count));
        json_object_set_new(part, "beat_ago_ms",
                            json_integer(core->now_ms - worker->beat_ms));
        json_array_append_new(array, part);
    }
    return array;
}

static void add_breaker(const struct core *core, json_t *part, const struct breaker *breaker)
{
    enum breaker_state state = breaker_state(core, breaker);
    int64_t retry_in_ms = state == BREAKER_OPEN ? breaker->due_ms - core->now_ms : 0;
    json_object_set_new(part, "state", json_string(breaker_state_word(state)));
    json_object_set_new(part, "faults", whole(breaker->faults));
    json_object_set_new(part, "retry_in_ms", json_integer(retry_in_ms));
}

static json_t *engines(const struct core *core)
{
    json_t *array = json_array();
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link) {
        if (!engine->registered || json_array_size(array) == LISTED_MAX)
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "url", text(engine_url(engine)));
        json_object_set_new(part, "live", whole(engine->live));
        add_breaker(core, part, &engine->breaker);
        json_array_append_new(array, part);
    }
    return array;
}

/* Those that are set aside. */
static json_t *images(const struct core *core)
{
    json_t *array = json_array();
    size_t at = 0;
    for (const struct image *image; (image = table_next(&core->images, &at));) {
        if (breaker_state(core, &image->breaker) == BREAKER_CLOSED ||
            json_array_size(array) == LISTED_MAX)
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "image", text(image_name(image)));
        json_object_set_new(part, "waiting", whole(image->waiting.count));
        add_breaker(core, part, &image->breaker);
        json_array_append_new(array, part);
    }
    return array;
}

static json_t *streams(const struct core *core)
{
    json_t *array = json_array();
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link) {
        if (json_array_size(array) == LISTED_MAX)
            break;
        json_t *part = json_object();
        json_object_set_new(part, "name", text(stream_name(stream)));
        json_object_set_new(part, "first", whole(stream->first));
        json_object_set_new(part, "head", whole(stream->head));
        json_object_set_new(part, "pending", whole(stream->pending));
        json_array_append_new(array, part);
    }
    return array;
}

static json_t *totals(const struct core *core)
{
    json_t *object = json_object();
    json_object_set_new(object, "workers", whole(core->workers_by_id.count));
    json_object_set_new(object, "streams", whole(core->stream_count));
    json_object_set_new(object, "engines", whole(core->engines_registered));
    return object;
}

static json_t *counters(const struct core *core)
{
    json_t *object = json_object();
#define COUNTER(name, doc) json_object_set_new(object, #name, whole(core->counters.name));
#include "broker/core_counters.def"
#undef COUNTER
    return object;
}

/* ---- advice ------------------------------------------------------------------------ */

static void advise(json_t *advice, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void advise(json_t *advice, const char *format, ...)
{
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    json_array_append_new(advice, json_string(sentence));
}

static void advise_stage(const struct core *core, json_t *advice, enum stage stage)
{
    struct crew crew = crew_of(core, stage);
    size_t queued = waiting(core, stage);
    const char *name = stage_wire(stage);
    if (crew.workers == 0)
        advise(advice, "no %s worker is connected%s: sluice worker %s --broker URL", name,
               queued ? ", and jobs wait for one" : "", name);
    else if (crew.slots == 0 && queued)
        advise(advice, "every %s worker is draining or hung, and %zu jobs wait: "
               "sluice worker %s --broker URL", name, queued, name);
    if (crew.hung)
        advise(advice, "%" PRIu64 " %s workers send beats but do not get on; their jobs were given "
               "to others: look at their logs and restart them", crew.hung, name);
}

static void advise_limit(const struct core *core, json_t *advice, enum limit limit)
{
    uint64_t percent = limit_percent(core, limit);
    if (percent >= RUNG_FAIR)
        advise(advice, "%" PRIu64 " %% of the %s; submits will be refused, queue-full: %s", percent,
               limit_filled(limit), limit_remedy(limit));
    else if (percent >= RUNG_WARN)
        advise(advice, "%" PRIu64 " %% of the %s", percent, limit_filled(limit));
}

static void advise_breakers(const struct core *core, json_t *advice)
{
    size_t engines_open = 0, images_open = 0, at = 0;
    const struct engine *engine, *first = NULL;
    LIST_EACH(engine, &core->engines, link)
        if (engine->registered && breaker_state(core, &engine->breaker) != BREAKER_CLOSED) {
            engines_open++;
            first = first ? first : engine;
        }
    for (const struct image *image; (image = table_next(&core->images, &at));)
        images_open += breaker_state(core, &image->breaker) != BREAKER_CLOSED;
    if (engines_open)
        advise(advice, "%zu of %zu engines are set aside after faults in a row, %s among them, and "
               "%zu run jobs wait; each is tried again by itself: look at their logs", engines_open,
               core->engines_registered, first->url, core->queues[PLACE_PARKED][STAGE_RUN].count);
    if (images_open)
        advise(advice, "%zu images are set aside after faults in a row, and %zu groups wait for "
               "them; each is tried again by itself: see \"images\"", images_open,
               core->images_waiting);
}

static json_t *advices(const struct core *core)
{
    json_t *advice = json_array();
    size_t parked = core->queues[PLACE_PARKED][STAGE_RUN].count;
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++)
        advise_stage(core, advice, stage);
    if (parked && !core->engines_registered)
        advise(advice, "%zu run jobs need an engine and none is registered: sluice engine add URL",
               parked);
    advise_breakers(core, advice);
    for (enum limit limit = 0; limit < LIMIT_COUNT; limit++)
        advise_limit(core, advice, limit);
    if (core->is_disk_low)
        advise(advice, "the disk of the broker's data directory is nearly full, and submits are "
               "refused, disk-low: make room there, or acknowledge trajectories");
    return advice;
}

/* ---- the whole --------------------------------------------------------------------- */

bool core_status(const struct core *core, int64_t now_ms, struct buffer *out)
{
    json_t *status = json_object();
    json_object_set_new(status, "epoch", whole(core->epoch));
    json_object_set_new(status, "uptime_ms", json_integer(now_ms - core->start_ms));
    json_object_set_new(status, "rollouts", rollouts(core));
    json_object_set_new(status, "stages", stages(core));
    json_object_set_new(status, "totals", totals(core));
    json_object_set_new(status, "workers", workers(core));
    json_object_set_new(status, "engines", engines(core));
    json_object_set_new(status, "images", images(core));
    json_object_set_new(status, "streams", streams(core));
    json_object_set_new(status, "counters", counters(core));
    json_object_set_new(status, "advice", advices(core));
    char *bytes = json_dumps(status, JSON_COMPACT);
    bool is_whole = bytes && buffer_append_str(out, bytes);
    free(bytes);
    json_decref(status);
    return is_whole;
}

void handle_status_get(struct core *core, const struct call *call)
{
    struct buffer json = {0};
    bool is_whole = core_status(core, core->now_ms, &json);
    struct msg_status status = {.tag = call->tag, .json = buffer_peek(&json)};
    if (is_whole)
        send_client(core, call->client, MSG_status, &status);
    else
        core->failed = true;
    buffer_finish(&json);
}
