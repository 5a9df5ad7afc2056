/*
 * The groups at work: a table from id to number and payload, so that handing out a job of a group that was touched
 * lately reads no file. An id may be in few entries only; that of them which was given away longest ago is given up for
 * another id. What is given up is read from the file again.
 */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdlib.h>

#include "schemas/task/json/task_member.h"

enum { METADATA_LITTLE = 64 }; /* bytes that are as well sent as left out */

bool ledger_cache_init(struct ledger *ledger)
{
    TAILQ_INIT(&ledger->cached);
    TAILQ_INIT(&ledger->runs);
    ledger->cache = calloc(CACHE_ENTRIES, sizeof(*ledger->cache));
    return ledger->cache != NULL;
}

/* Drops what a buffer holds, and its memory where that is more than `kept`. */
static void let_go(struct ledger *ledger, struct buffer *held, size_t kept)
{
    buffer_clear(held);
    if (held->capacity <= kept)
        return;
    ledger->cache_bytes -= held->capacity;
    buffer_finish(held);
}

static void let_go_task(struct ledger *ledger, struct cached_group *group, size_t kept)
{
    let_go(ledger, &group->task, kept);
    let_go(ledger, &group->bare, kept);
    group->metadata = (struct slice){0};
}

static void empty(struct ledger *ledger, struct cached_group *group)
{
    let_go_task(ledger, group, CACHE_REUSED_MAX);
    let_go(ledger, &group->layer, CACHE_REUSED_MAX);
    ledger_let_runs_go(ledger, group);
    group->number = 0;
    group->has_init = false;
}

void ledger_cache_finish(struct ledger *ledger)
{
    for (size_t i = 0; ledger->cache && i < CACHE_ENTRIES; i++) {
        ledger_let_runs_go(ledger, &ledger->cache[i]);
        buffer_finish(&ledger->cache[i].task);
        buffer_finish(&ledger->cache[i].bare);
        buffer_finish(&ledger->cache[i].layer);
    }
    free(ledger->cache);
}

static uint64_t hash_of(struct slice id)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < id.len; i++)
        hash = (hash ^ id.data[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static bool is_of(const struct cached_group *group, struct slice id)
{
    return group->number && slice_is(id, group->id);
}

/* The first of the entries that it may be in. */
static size_t first_of(uint64_t hash) { return hash % (CACHE_ENTRIES / CACHE_WAYS) * CACHE_WAYS; }

static struct cached_group *find(const struct ledger *ledger, uint64_t hash, struct slice id)
{
    const size_t first = first_of(hash);
    for (size_t i = first; i < first + CACHE_WAYS; i++)
        if (ledger->cache_hashes[i] == hash && is_of(&ledger->cache[i], id))
            return &ledger->cache[i];
    return NULL;
}

const struct cached_group *ledger_cache_peek(const struct ledger *ledger, struct slice id)
{
    return find(ledger, hash_of(id), id);
}

struct cached_group *ledger_cache_get(struct ledger *ledger, struct slice id)
{
    uint64_t hash = hash_of(id);
    struct cached_group *group = find(ledger, hash, id);
    if (group)
        return group;
    group = &ledger->cache[first_of(hash)];
    for (struct cached_group *at = group + 1, *end = group + CACHE_WAYS; at < end; at++)
        if (at->given < group->given)
            group = at;
    size_t len = id.len < sizeof(group->id) ? id.len : 0; /* longer than any group's */
    empty(ledger, group);
    group->given = ++ledger->cache_given;
    ledger->cache_hashes[group - ledger->cache] = hash;
    if (len)
        memcpy(group->id, id.data, len);
    group->id[len] = '\0';
    return group;
}

static void unlist(struct ledger *ledger, struct cached_group *group)
{
    if (group->is_listed)
        TAILQ_REMOVE(&ledger->cached, group, links);
    group->is_listed = false;
}

/* Makes room for so many bytes: what was filled longest ago is given up, and most likely over. */
static void make_room(struct ledger *ledger, const struct cached_group *keep, size_t bytes)
{
    struct cached_group *group = TAILQ_FIRST(&ledger->cached), *next;
    for (; group && ledger->cache_bytes + bytes > CACHE_BYTES_MAX; group = next) {
        next = TAILQ_NEXT(group, links);
        if (group == keep)
            continue;
        let_go_task(ledger, group, 0);
        let_go(ledger, &group->layer, 0);
        group->has_init = false;
        unlist(ledger, group);
    }
}

/* Copies the bytes; leaves `to` empty where there are too many, or no memory. */
static void hold(struct ledger *ledger, struct cached_group *group, struct buffer *to, struct slice bytes)
{
    const size_t before = to->capacity;
    if (bytes.len > CACHE_PAYLOAD_MAX)
        return;
    make_room(ledger, group, 2 * bytes.len);
    buffer_append(to, bytes.data, bytes.len);
    ledger->cache_bytes += to->capacity - before;
    unlist(ledger, group);
    TAILQ_INSERT_TAIL(&ledger->cached, group, links);
    group->is_listed = true;
}

/* The task with {} for its metadata. */
static void append_bare(struct buffer *ret, struct slice task, struct slice metadata)
{
    const size_t before = (size_t)(metadata.data - task.data);
    buffer_append(ret, task.data, before);
    buffer_append_str(ret, "{}");
    buffer_append(ret, metadata.data + metadata.len, task.len - before - metadata.len);
}

void ledger_cache_task(struct ledger *ledger, struct cached_group *group, struct slice task, struct slice metadata,
                       unsigned shown_in)
{
    let_go_task(ledger, group, CACHE_REUSED_MAX);
    hold(ledger, group, &group->task, task);
    if (group->task.len < task.len || metadata.len == 0)
        return;
    const size_t before = group->bare.capacity;
    group->metadata = slice_of(group->task.data + (metadata.data - task.data), metadata.len);
    group->shown_in = shown_in;
    if (metadata.len > METADATA_LITTLE && shown_in != (1u << STAGE_COUNT) - 1)
        append_bare(&group->bare, task, metadata);
    ledger->cache_bytes += group->bare.capacity - before;
    if (group->bare.failed)
        buffer_clear(&group->bare);
}

struct slice ledger_cache_task_for(const struct cached_group *group, enum stage stage)
{
    const bool is_bare = group->bare.len > 0 && !(group->shown_in & 1u << stage);
    return buffer_peek(is_bare ? &group->bare : &group->task);
}

void ledger_cache_init_layer(struct ledger *ledger, struct cached_group *group, struct slice digest, struct slice layer)
{
    let_go(ledger, &group->layer, CACHE_REUSED_MAX);
    hold(ledger, group, &group->layer, layer);
    group->has_init = group->layer.len == layer.len && digest.len < sizeof(group->digest);
    if (!group->has_init)
        return;
    if (digest.len)
        memcpy(group->digest, digest.data, digest.len);
    group->digest[digest.len] = '\0';
}

void ledger_cache_drop(struct ledger *ledger, struct slice id)
{
    struct cached_group *group = find(ledger, hash_of(id), id);
    if (!group)
        return;
    empty(ledger, group);
    group->given = 0; /* the first to be given away */
}

/* ---- lookups -------------------------------------------------------------------------- */

int ledger_keep_group(struct ledger *ledger, struct cached_group *group, struct slice id, struct fail *fail)
{
    const enum ledger_statement row = LEDGER_FIND_GROUP;
    int code = ledger_ask(ledger, row, VALUES(TEXT(id)), fail);
    if (code <= 0)
        return code ? code : fail_set(fail, -ENOENT, "the ledger has no group %.*s", SLICE_ARG(id));
    const struct slice task = ledger_slice(ledger, row, 2);
    const bool has_metadata = !ledger_is_null(ledger, row, 3);
    group->number = ledger_number(ledger, row, 0);
    group->stream = ledger_number(ledger, row, 1);
    group->samples = ledger_number(ledger, row, 4);
    ledger_cache_task(ledger, group, task, has_metadata ? task_member(task, "metadata") : (struct slice){0},
                      metadata_shown_in(ledger_number(ledger, row, 3)));
    ledger_reset(ledger, row);
    return group->task.len ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

int ledger_find_group(struct ledger *ledger, struct slice id, struct cached_group **ret, struct fail *fail)
{
    struct cached_group *group = ledger_cache_get(ledger, id);
    int code = group->number ? 0 : ledger_keep_group(ledger, group, id, fail);
    if (code == 0)
        *ret = group;
    return code;
}

int ledger_find_stream(struct ledger *ledger, struct slice name, int64_t *ret, struct fail *fail)
{
    if (ledger->stream_number && slice_is(name, ledger->stream_name)) {
        *ret = ledger->stream_number;
        return 0;
    }
    int code = ledger_ask(ledger, LEDGER_FIND_STREAM, VALUES(TEXT(name)), fail);
    if (code < 0)
        return code;
    if (code == 0 || name.len >= sizeof(ledger->stream_name))
        return fail_set(fail, -ENOENT, "the ledger has no stream %.*s", SLICE_ARG(name));
    *ret = ledger->stream_number = ledger_number(ledger, LEDGER_FIND_STREAM, 0);
    ledger_reset(ledger, LEDGER_FIND_STREAM);
    ledger->has_owner = false;
    memcpy(ledger->stream_name, name.data, name.len);
    ledger->stream_name[name.len] = '\0';
    return 0;
}

int ledger_find_sample(struct ledger *ledger, struct slice rollout, struct cached_group **ret, int64_t *ret_sample,
                       struct fail *fail)
{
    size_t slash = rollout.len;
    while (slash > 0 && rollout.data[slash - 1] != '/')
        slash--;
    int64_t sample = slash > 0 && slash < rollout.len ? 0 : ROLLOUTS_PER_GROUP;
    for (size_t i = slash; i < rollout.len && sample < ROLLOUTS_PER_GROUP; i++)
        sample = rollout.data[i] >= '0' && rollout.data[i] <= '9' ? sample * 10 + (rollout.data[i] - '0')
                                                                  : ROLLOUTS_PER_GROUP;
    if (sample >= ROLLOUTS_PER_GROUP)
        return fail_set(fail, -ENOENT, "no rollout can be called %.*s", SLICE_ARG(rollout));
    *ret_sample = sample;
    return ledger_find_group(ledger, slice_of(rollout.data, slash - 1), ret, fail);
}
