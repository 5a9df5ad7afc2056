#include "client/lib/live/watching.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/lib/request.h"
#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"

enum { NODES_MAX = 65536 };

/* ---- watches ------------------------------------------------------------------------------ */

struct watch *watching_find(const struct watching *watching, const char *rollout)
{
    struct watch *watch = watching->first;
    while (watch && strcmp(watch->rollout, rollout) != 0)
        watch = watch->next;
    return watch;
}

static struct watch *find_tag(const struct watching *watching, uint64_t tag)
{
    struct watch *watch = watching->first;
    while (watch && watch->tag != tag)
        watch = watch->next;
    return watch;
}

struct watch *watching_add(struct watching *watching, const char *rollout)
{
    const size_t len = strlen(rollout);
    struct watch *watch = calloc(1, sizeof(*watch) + len + 1);
    if (!watch)
        return NULL;
    memcpy(watch->rollout, rollout, len);
    watch->next = watching->first;
    watching->first = watch;
    watching->count++;
    return watch;
}

void watching_remove(struct watching *watching, struct watch *watch)
{
    struct watch **at = &watching->first;
    while (*at != watch)
        at = &(*at)->next;
    *at = watch->next;
    watching->count--;
    free(watch->state);
    free(watch);
}

void watching_finish(struct watching *watching)
{
    while (watching->first)
        watching_remove(watching, watching->first);
    for (size_t i = 0; i < READY_MAX; i++)
        buffer_finish(&watching->ready[i]);
    buffer_finish(&watching->given);
}

/* ---- what waits to be given out ------------------------------------------------------------ */

/* NULL: as many wait as may. */
static struct buffer *next_free(const struct watching *watching)
{
    const size_t at = (watching->ready_at + watching->ready_count) % READY_MAX;
    return watching->ready_count < READY_MAX ? (struct buffer *)&watching->ready[at] : NULL;
}

/* {"rollout": ...; the caller writes the rest. */
static bool begin_batch(struct buffer *batch, const struct watch *watch)
{
    json_t *name = json_string(watch->rollout);
    AUTO_FREE char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    json_decref(name);
    buffer_clear(batch);
    batch->failed = false;
    return text && buffer_printf(batch, "{\"rollout\":%s,", text);
}

static bool end_batch(struct watching *watching, struct buffer *batch)
{
    if (!buffer_append_str(batch, "}") || !buffer_append(batch, "", 1))
        return false;
    watching->ready_count += batch != &watching->given;
    return true;
}

/* A batch of ours, of one event. */
static bool add_own(struct watching *watching, const struct watch *watch, const char *event)
{
    struct buffer *batch = next_free(watching);
    return batch && begin_batch(batch, watch) && buffer_printf(batch, "\"events\":[%s]", event) &&
           end_batch(watching, batch);
}

static const char *take_ended(struct watching *watching)
{
    struct watch *watch = watching->first;
    while (watch && !watch->is_ended)
        watch = watch->next;
    if (!watch)
        return NULL;
    const bool is_whole = begin_batch(&watching->given, watch) &&
                          buffer_append_str(&watching->given, "\"events\":[{\"event\":\"ended\"}]") &&
                          end_batch(watching, &watching->given);
    watching_remove(watching, watch);
    return is_whole ? (const char *)watching->given.data : NULL;
}

const char *watching_take(struct watching *watching)
{
    if (watching->ready_count == 0)
        return take_ended(watching);
    struct buffer *batch = &watching->ready[watching->ready_at];
    const struct buffer given = watching->given;
    watching->given = *batch;
    *batch = given;
    watching->ready_at = (watching->ready_at + 1) % READY_MAX;
    watching->ready_count--;
    return (const char *)watching->given.data;
}

/* ---- what came ------------------------------------------------------------------------------ */

static void want_anew(struct watch *watch, int64_t now_ms)
{
    watch->wants_anew = true;
    const int64_t soon_ms = watch->anew_ms + ANEW_MS;
    const int64_t ask_ms = soon_ms > now_ms ? soon_ms : now_ms;
    if (ask_ms < watch->ask_ms)
        watch->ask_ms = ask_ms;
}

static void note_dropped(struct watch *watch, uint64_t count, int64_t now_ms)
{
    watch->dropped += count;
    want_anew(watch, now_ms);
}

static void tell_dropped(struct watching *watching, struct watch *watch)
{
    char event[64];
    snprintf(event, sizeof(event), "{\"event\":\"dropped\",\"count\":%llu}", (unsigned long long)watch->dropped);
    if (watch->dropped > 0 && add_own(watching, watch, event))
        watch->dropped = 0;
}

/* Workers are not ours: what they say is a list of so many objects, or not told. */
static bool is_sound(const struct msg_rollout_events *in)
{
    struct json_doc doc;
    struct fail fail;
    bool is_good = json_doc_parse_up_to(in->events, NODES_MAX, &doc, &fail) == 0;
    const struct json_doc_node *list = is_good ? json_doc_root(&doc) : NULL;
    is_good = is_good && list->kind == JSON_DOC_ARRAY && json_doc_count(list) == in->count;
    const struct json_doc_node *item = is_good ? json_doc_first(list) : NULL;
    for (uint64_t i = 0; is_good && i < in->count; i++, item = json_doc_behind(&doc, item))
        is_good = item->kind == JSON_DOC_OBJECT;
    json_doc_finish(&doc);
    return is_good;
}

static bool add_heard(struct watching *watching, const struct watch *watch, const struct msg_rollout_events *in)
{
    struct buffer *batch = is_sound(in) ? next_free(watching) : NULL;
    return batch && begin_batch(batch, watch) &&
           buffer_printf(batch, "\"stage\":\"%.*s\",\"attempt\":%llu,\"number\":%llu,\"events\":", SLICE_ARG(in->stage),
                         (unsigned long long)in->attempt, (unsigned long long)in->number) &&
           buffer_append(batch, in->events.data, in->events.len) && end_batch(watching, batch);
}

static bool is_stage(struct slice stage)
{
    enum stage known;
    return stage_parse(stage, &known);
}

static void hear_events(struct watching *watching, struct watch *watch, const struct msg_rollout_events *in,
                        int64_t now_ms)
{
    if (!is_stage(in->stage) || (!watch->stage[0] && in->number > 1 && now_ms < watch->begin_by_ms))
        return;
    if (!slice_is(in->stage, watch->stage) || in->attempt != watch->attempt || in->number == 1) {
        snprintf(watch->stage, sizeof(watch->stage), "%.*s", SLICE_ARG(in->stage));
        watch->attempt = in->attempt;
        watch->expected = 1;
    }
    if (in->number > watch->expected)
        note_dropped(watch, in->number - watch->expected, now_ms);
    tell_dropped(watching, watch);
    if (!add_heard(watching, watch, in))
        note_dropped(watch, in->count, now_ms);
    watch->expected = in->number + in->count;
    if (memmem(in->events.data, in->events.len, "{\"event\":\"end\"", strlen("{\"event\":\"end\"")) &&
        watch->ask_ms > now_ms + ASK_SOON_MS)
        watch->ask_ms = now_ms + ASK_SOON_MS / 4; /* it may have ended, or is somewhere else */
}

static void put(json_t *object, const char *name, bool is_there, struct slice text)
{
    if (is_there)
        json_object_set_new(object, name, json_stringn((const char *)text.data, text.len));
}

static char *describe_state(const struct msg_rollout_state *in)
{
    json_t *object = json_pack("{s:s}", "event", "state");
    put(object, "stage", true, in->stage);
    put(object, "state", true, in->state);
    json_object_set_new(object, "attempt", json_integer((json_int_t)in->attempt));
    put(object, "worker", in->has_worker, in->worker);
    if (in->has_turn)
        json_object_set_new(object, "turn", json_integer((json_int_t)in->turn));
    put(object, "tool", in->has_tool, in->tool);
    put(object, "why", in->has_why, in->why);
    char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

static void hear_state(struct watching *watching, struct watch *watch, const struct msg_rollout_state *in,
                       int64_t now_ms)
{
    AUTO_FREE char *state = describe_state(in);
    watch->unheard_ms = 0;
    if (!slice_is(in->state, "leased") && watch->ask_ms > now_ms + ASK_SOON_MS)
        watch->ask_ms = now_ms + ASK_SOON_MS;
    if (!state || (watch->state && strcmp(state, watch->state) == 0) || !add_own(watching, watch, state))
        return;
    free(watch->state);
    watch->state = take_ptr(&state);
}

/* Room, at the broker, may be there the next time; what else is refused is watched no more. */
static void hear_refusal(struct watching *watching, struct watch *watch, const struct msg_refused *in)
{
    watch->unheard_ms = 0;
    if (slice_is(in->reason, refusal_wire(REFUSAL_QUEUE_FULL)))
        return;
    watching->refused = refused_errno(in);
    snprintf(watching->refused_text, sizeof(watching->refused_text), "%.*s", SLICE_ARG(in->text));
    watching_remove(watching, watch);
}

bool watching_hear(struct watching *watching, const struct answer *answer, int64_t now_ms)
{
    struct watch *watch = find_tag(watching, answer_tag(answer));
    if (!watch)
        return false;
    if (answer->id == MSG_rollout_events)
        hear_events(watching, watch, &answer->as.rollout_events, now_ms);
    else if (answer->id == MSG_rollout_state)
        hear_state(watching, watch, &answer->as.rollout_state, now_ms);
    else if (answer->id == MSG_done)
        watch->is_ended = true;
    else if (answer->id == MSG_refused)
        hear_refusal(watching, watch, &answer->as.refused);
    return true;
}

/* ---- asking ------------------------------------------------------------------------------ */

struct msg_rollout_watch watching_message(const struct watch *watch)
{
    return (struct msg_rollout_watch){.tag = watch->tag,
                                      .rollout = slice_from_str(watch->rollout),
                                      .has_anew = watch->wants_anew,
                                      .anew = watch->wants_anew};
}

void watching_note_asked(struct watch *watch, int64_t now_ms)
{
    if (watch->wants_anew)
        watch->anew_ms = now_ms;
    if (!watch->begin_by_ms)
        watch->begin_by_ms = now_ms + BEGIN_MS;
    watch->wants_anew = false;
    watch->ask_ms = now_ms + (watch->unheard_ms ? ASK_UNHEARD_MS : ASK_MS);
    if (!watch->unheard_ms)
        watch->unheard_ms = now_ms;
}
