#include "broker/core/core.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_SIZE = 65536, EFFECTS_KEPT = 4096 };

static struct effect *clear(struct effect *effect, enum effect_kind kind)
{
    memset(effect, 0, sizeof(*effect)); /* all members of its union */
    effect->kind = kind;
    return effect;
}

struct effect *effect_push(struct core *core, enum effect_kind kind)
{
    struct effect_list *list = &core->effects;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 64;
        struct effect *items = realloc(list->items, capacity * sizeof(*items));
        if (!items) {
            core->failed = true;
            return clear(&core->discarded, kind);
        }
        list->items = items;
        list->capacity = capacity;
    }
    return clear(&list->items[list->count++], kind);
}

/* ---- memory ------------------------------------------------------------------------ */

static uint8_t *take(struct core *core, size_t len)
{
    struct chunk *chunk = core->effects.chunks;
    if (!chunk || chunk->size - chunk->used < len) {
        size_t size = len > CHUNK_SIZE ? len : CHUNK_SIZE;
        chunk = core_alloc(core, 1, sizeof(*chunk) + size);
        if (!chunk)
            return NULL;
        chunk->size = size;
        chunk->next = core->effects.chunks;
        core->effects.chunks = chunk;
    }
    uint8_t *bytes = chunk->bytes + chunk->used;
    chunk->used += len;
    return bytes;
}

struct slice effect_copy(struct core *core, struct slice bytes)
{
    uint8_t *copy = bytes.len ? take(core, bytes.len) : NULL;
    if (!copy)
        return slice_of(NULL, 0);
    memcpy(copy, bytes.data, bytes.len);
    return slice_of(copy, bytes.len);
}

const void *effect_row(struct core *core, const void *row, size_t size)
{
    enum { ALIGNED = _Alignof(max_align_t) };
    uint8_t *at = take(core, size + ALIGNED - 1);
    return at ? memcpy(at + (ALIGNED - (uintptr_t)at % ALIGNED) % ALIGNED, row, size) : NULL;
}

struct slice effect_print(struct core *core, const char *format, ...)
{
    enum { PRINT_MAX = 1024 };
    char text[PRINT_MAX + 2]; /* the byte beyond the most tells whether a character is cut there */
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    size_t fits = len < PRINT_MAX ? (size_t)len : PRINT_MAX;
    while (fits < (size_t)len && fits > 0 && ((uint8_t)text[fits] & 0xc0) == 0x80)
        fits--;
    return effect_copy(core, slice_of(text, fits));
}

/* Frees all chunks but the oldest `keep` (0 or 1). */
static void drop_chunks(struct effect_list *list, size_t keep)
{
    while (list->chunks && (!keep || list->chunks->next || list->chunks->size > CHUNK_SIZE)) {
        struct chunk *next = list->chunks->next;
        free(list->chunks);
        list->chunks = next;
    }
    if (list->chunks)
        list->chunks->used = 0;
}

void effect_list_clear(struct effect_list *list)
{
    list->count = 0;
    if (list->capacity > EFFECTS_KEPT) {
        free(list->items);
        list->items = NULL;
        list->capacity = 0;
    }
    drop_chunks(list, 1);
}

void effect_list_finish(struct effect_list *list)
{
    drop_chunks(list, 0);
    free(list->items);
    *list = (struct effect_list){0};
}

void effect_health(struct core *core, const struct core_health *health, struct slice why)
{
    const struct slice name = effect_copy(core, health->name), words = effect_copy(core, why);
    struct effect *effect = effect_push(core, HEALTH_CHANGED);
    effect->health = *health;
    effect->health.name = name;
    effect->detail = words;
}

/* ---- messages ---------------------------------------------------------------------- */

struct slice effect_encode(struct core *core, enum message_id id, const void *message)
{
    struct refusal no;
    buffer_clear(&core->scratch);
    if (message_encode(id, message, &core->scratch, &no))
        return effect_copy(core, buffer_peek(&core->scratch));
    if (core->scratch.failed)
        core->failed = true;
    core->counters.unsendable++;
    return slice_of(NULL, 0);
}

void send_client(struct core *core, struct slice client, enum message_id id, const void *message)
{
    struct slice bytes = effect_encode(core, id, message);
    if (!bytes.len)
        return;
    struct slice to = effect_copy(core, client);
    struct effect *effect = effect_push(core, SEND_CLIENT);
    effect->client = to;
    effect->bytes = bytes;
}

static void send_lane(struct core *core, const struct worker *worker, enum message_id id, const void *message,
                      bool is_promise)
{
    if (!worker || worker->hung)
        return;
    struct slice bytes = effect_encode(core, id, message);
    if (!bytes.len)
        return;
    struct slice to = effect_copy(core, worker_id(worker));
    struct effect *effect = effect_push(core, LANE_SEND);
    effect->worker = to;
    effect->bytes = bytes;
    effect->is_promise = is_promise;
}

void send_worker(struct core *core, const struct worker *worker, enum message_id id, const void *message)
{
    send_lane(core, worker, id, message, false);
}

void promise_worker(struct core *core, const struct worker *worker, enum message_id id, const void *message)
{
    send_lane(core, worker, id, message, true);
}

void send_done(struct core *core, const struct call *call, uint64_t count)
{
    struct msg_done done = {.tag = call->tag, .count = count};
    send_client(core, call->client, MSG_done, &done);
}

static void cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token, bool is_promise)
{
    const struct msg_job_cancel message = {.job = job, .token = token};
    core->counters.cancels += worker && !worker->hung;
    send_lane(core, worker, MSG_job_cancel, &message, is_promise);
}

void send_cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token)
{
    cancel(core, worker, job, token, false);
}

void promise_cancel(struct core *core, const struct worker *worker, struct slice job, uint64_t token)
{
    cancel(core, worker, job, token, true);
}

void send_refused(struct core *core, const struct call *call, enum refusal_reason reason, const char *field,
                  uint64_t retry_after_ms, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    core->counters.refused++;
    struct msg_refused refused = {
        .tag = call->tag,
        .request = slice_from_str(message_get(call->id)->wire),
        .reason = slice_from_str(refusal_wire(reason)),
        .field = slice_from_str(field),
        .has_field = field != NULL,
        .text = slice_from_str(text),
        .retry_after_ms = retry_after_ms,
        .has_retry_after_ms = retry_after_ms > 0,
    };
    send_client(core, call->client, MSG_refused, &refused);
}

/* ---- names ------------------------------------------------------------------------- */

enum { SAMPLE_DIGITS_MAX = 10 };

/* The digits of `number`, which end at `end`. */
static struct slice digits_of(unsigned number, char *end)
{
    char *at = end;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return slice_of(at, (size_t)(end - at));
}

/* As effect_print would, in a tenth of its instructions: names are made several times for every dispatch. */
static struct slice join(struct core *core, const struct slice *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += parts[i].len;
    uint8_t *name = take(core, len), *at = name;
    if (!name)
        return slice_of(NULL, 0);
    for (size_t i = 0; i < count; i++) {
        memcpy(at, parts[i].data, parts[i].len);
        at += parts[i].len;
    }
    return slice_of(name, len);
}

struct slice job_name(struct core *core, const struct job *job)
{
    char digits[SAMPLE_DIGITS_MAX];
    const bool has_sample = job->stage != STAGE_INIT;
    const struct slice parts[] = {slice_from_str(stage_wire(job->stage)), slice_from_str(":"),
                                  slice_from_str(job->group->id), slice_from_str("/"),
                                  digits_of(job->sample, digits + sizeof(digits))};
    return join(core, parts, has_sample ? 5 : 3);
}

struct slice rollout_name(struct core *core, const struct job *job)
{
    char digits[SAMPLE_DIGITS_MAX];
    const struct slice parts[] = {slice_from_str(job->group->id), slice_from_str("/"),
                                  digits_of(job->sample, digits + sizeof(digits))};
    return join(core, parts, 3);
}
