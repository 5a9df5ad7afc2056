/*
 * The lists of status.get: workers, those lost of late, engines, images that are set
 * aside, clients and streams.
 */
#include "broker/core/status/lists.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/identity.h"
#include "broker/core/needs/needs.h"
#include "broker/core/needs/offers.h"
#include "broker/core/sampler/sampling.h"
#include "broker/core/state/state.h"
#include "broker/core/status/stages.h"
#include "broker/core/status/view.h"
#include "broker/core/workers/lost_workers.h"
#include "broker/core/workers/worker_ids.h"

/* What it told of its node; an older worker tells nothing. */
static void add_node(json_t *part, const struct worker *worker)
{
    const struct {
        const char *name, *text;
    } facts[] = {{"sandbox", worker->sandbox},
                 {"sandbox_why", worker->sandbox_why},
                 {"kernel", worker->kernel},
                 {"node_error", worker->node_error}};
    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
        if (facts[i].text && *facts[i].text)
            json_object_set_new(part, facts[i].name, status_text(slice_from_str(facts[i].text)));
    if (worker->sandbox)
        json_object_set_new(part, "sandboxes", status_number(worker->sandboxes));
}

/* The good ones of what it said, with their versions. */
static void add_offers(json_t *part, const struct worker *worker)
{
    char text[OFFERS_TEXT_MAX];
    size_t len = 0;
    struct slice offer;
    for (size_t at = 0; worker->offers && names_next(slice_from_str(worker->offered), &at, &offer);) {
        const uint8_t *version = memchr(offer.data, '@', offer.len);
        const struct slice name = slice_of(offer.data, version ? (size_t)(version - offer.data) : offer.len);
        if (!names_are_among(name, offers_names(worker->offers)))
            continue;
        if (len)
            text[len++] = ' ';
        memcpy(text + len, offer.data, offer.len);
        len += offer.len;
    }
    if (len)
        json_object_set_new(part, "offers", status_text(slice_of(text, len)));
    if (worker->offers_error)
        json_object_set_new(part, "offers_error", status_text(slice_from_str(worker->offers_error)));
}

json_t *status_workers(const struct core *core)
{
    json_t *array = json_array();
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (json_array_size(array) == LISTED_MAX)
            break;
        json_t *part = json_object();
        json_object_set_new(part, "worker", status_text(worker_id(worker)));
        json_object_set_new(part, "stage", json_string(stage_wire(worker->stage)));
        json_object_set_new(part, "host", status_text(slice_from_str(worker->host)));
        json_object_set_new(part, "state", json_string(worker_state_word(worker_state_of(worker))));
        json_object_set_new(part, "slots", status_number(worker->slots));
        json_object_set_new(part, "jobs", status_number(worker->jobs.count));
        json_object_set_new(part, "beat_ago_ms", json_integer(core->now_ms - worker->beat_ms));
        if (worker->unreached)
            json_object_set_new(part, "unreached", status_text(slice_from_str(worker->unreached)));
        add_node(part, worker);
        add_offers(part, worker);
        json_array_append_new(array, part);
    }
    return array;
}

json_t *status_lost(const struct core *core)
{
    json_t *array = json_array();
    const struct lost_worker *lost;
    for (uint64_t n = 0; (lost = lost_worker_nth(core, n)); n++) {
        json_t *part = json_object();
        json_object_set_new(part, "worker", json_string(lost->worker));
        json_object_set_new(part, "stage", json_string(stage_wire(lost->stage)));
        json_object_set_new(part, "host", json_string(lost->host));
        json_object_set_new(part, "ago_ms", json_integer(core->now_ms - lost->at_ms));
        json_object_set_new(part, "why", json_string(loss_words(lost->why)));
        json_object_set_new(part, "jobs", status_number(lost->jobs));
        json_array_append_new(array, part);
    }
    return array;
}

json_t *status_id_conflicts(const struct core *core)
{
    json_t *array = json_array();
    const struct id_conflict *conflict;
    for (uint64_t n = 0; n < ID_CONFLICTS_MAX; n++) {
        if (!(conflict = id_conflict_nth(core, n)))
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "worker", json_string(conflict->worker));
        json_object_set_new(part, "key", json_string(conflict->key));
        json_object_set_new(part, "owner", json_string(conflict->owner));
        json_object_set_new(part, "ago_ms", json_integer(core->now_ms - conflict->at_ms));
        json_object_set_new(part, "times", status_number(conflict->times));
        json_array_append_new(array, part);
    }
    return array;
}

/* `word`: instead of its state's, unless NULL. */
static void add_breaker(const struct core *core, json_t *part, const struct breaker *breaker, const char *word)
{
    enum breaker_state state = breaker_state(core, breaker);
    int64_t retry_in_ms = state == BREAKER_OPEN ? breaker->due_ms - core->now_ms : 0;
    json_object_set_new(part, "state", json_string(word ? word : breaker_state_word(state)));
    json_object_set_new(part, "faults", status_number(breaker->faults));
    json_object_set_new(part, "retry_in_ms", json_integer(retry_in_ms));
    if (breaker->why[0])
        json_object_set_new(part, "error", status_text(slice_from_str(breaker->why)));
}

/* What keeps runs from it beside its breaker, the least passing first; or NULL. */
static const char *engine_word(const struct engine *engine)
{
    return engine->is_other           ? "other"
           : engine_is_paused(engine) ? "paused"
           : engine->draining         ? "draining"
           : engine_is_silent(engine) ? "silent"
                                      : NULL;
}

static json_t *describe_engine(const struct core *core, const struct engine *engine)
{
    json_t *part = json_object();
    uint64_t limit = engine_limit(engine);
    json_object_set_new(part, "url", status_text(engine_url(engine)));
    json_object_set_new(part, "live", status_number(engine->live));
    json_object_set_new(part, "tokens", status_number(engine->seen.tokens));
    json_object_set_new(part, "calls", status_number(engine->seen.calls));
    json_object_set_new(part, "limit", status_number(limit == UINT64_MAX ? 0 : limit));
    add_breaker(core, part, &engine->breaker, engine_word(engine));
    json_object_set_new(part, "version", json_string(engine->version));
    if (engine->has_cache)
        json_object_set_new(part, "cache_permille", status_number(engine->cache_permille));
    json_object_set_new(part, "policy", json_string(engine->policy->name));
    json_object_set_new(part, "has_answered", json_boolean(engine->has_answered));
    if (engine->identity.template[0]) {
        json_object_set_new(part, "tokenizer_digest", json_string(engine->identity.tokenizer));
        json_object_set_new(part, "template_digest", json_string(engine->identity.template));
    }
    if (engine->is_other)
        json_object_set_new(part, "error", status_text(engine_difference(&(struct core_text){0}, engine)));
    else if (engine_is_silent(engine))
        json_object_set_new(part, "error", status_text(slice_from_str(engine->probe.error)));
    if (engine_is_paused(engine))
        json_object_set_new(part, "resume_in_ms", json_integer(engine->resume_ms - core->now_ms));
    return part;
}

json_t *status_engines(const struct core *core)
{
    json_t *array = json_array();
    const struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if (engine->registered && json_array_size(array) < LISTED_MAX)
            json_array_append_new(array, describe_engine(core, engine));
    return array;
}

json_t *status_needs(const struct core *core)
{
    json_t *array = json_array();
    for (unsigned number = 1; number <= NEEDS_MAX && json_array_size(array) < LISTED_MAX; number++) {
        const struct need *need = core->needs[number];
        if (!need)
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "needs", status_text(need_names(need)));
        json_object_set_new(part, "stage", json_string(stage_wire(need->stage)));
        json_object_set_new(part, "groups", status_number(need->groups));
        json_object_set_new(part, "waiting", status_number(need->waiting));
        json_object_set_new(part, "workers", status_number(need_workers(core, need)));
        json_object_set_new(part, "free", status_number(need_free_slots(core, need)));
        json_array_append_new(array, part);
    }
    return array;
}

/* Those that are set aside. */
json_t *status_images(const struct core *core)
{
    json_t *array = json_array();
    size_t at = 0;
    for (const struct image *image; (image = table_next(&core->images, &at));) {
        if (breaker_state(core, &image->breaker) == BREAKER_CLOSED || json_array_size(array) == LISTED_MAX)
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "image", status_text(image_name(image)));
        json_object_set_new(part, "waiting", status_number(image->waiting.count));
        add_breaker(core, part, &image->breaker, NULL);
        json_array_append_new(array, part);
    }
    return array;
}

json_t *status_clients(const struct core *core)
{
    json_t *array = json_array();
    const struct client *client;
    LIST_EACH(client, &core->clients, link) {
        uint64_t queued = 0, leased = 0;
        if (json_array_size(array) == LISTED_MAX)
            break;
        for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
            queued += client->queues[stage].member.queued;
            leased += client->queues[stage].member.leased;
        }
        json_t *part = json_object();
        json_object_set_new(part, "name", status_text(client_name(client)));
        json_object_set_new(part, "streams", status_number(client->stream_count));
        json_object_set_new(part, "live", status_number(client->used[QUOTA_ROLLOUTS]));
        json_object_set_new(part, "queued", status_number(queued));
        json_object_set_new(part, "leased", status_number(leased));
        json_object_set_new(part, "kept", status_number(client->used[QUOTA_RESULTS]));
        json_array_append_new(array, part);
    }
    return array;
}

json_t *status_streams(struct view view)
{
    json_t *array = json_array();
    const struct stream *stream;
    LIST_EACH(stream, &view.core->streams, link) {
        if (json_array_size(array) == LISTED_MAX)
            break;
        if (!view.is_whole && stream->owner != view.client)
            continue;
        json_t *part = json_object();
        json_object_set_new(part, "name", status_text(stream_name(stream)));
        json_object_set_new(part, "owner", status_text(client_name(stream->owner)));
        json_object_set_new(part, "first", status_number(stream->first));
        json_object_set_new(part, "head", status_number(stream->head));
        json_object_set_new(part, "pending", status_number(stream->pending));
        json_object_set_new(part, "kept_bytes", status_number(stream->kept_bytes));
        json_object_set_new(part, "expired", status_number(stream->expired));
        json_array_append_new(array, part);
    }
    return array;
}

json_t *status_samplers(struct view view)
{
    json_t *array = json_array();
    const struct sampler *sampler;
    LIST_EACH(sampler, &view.core->samplers, link)
        if ((view.is_whole || sampler->stream->owner == view.client) && json_array_size(array) < LISTED_MAX)
            json_array_append_new(array, sampler_describe(view.core, sampler));
    return array;
}
