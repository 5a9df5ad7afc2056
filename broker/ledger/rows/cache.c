/*
 * The groups at work: a direct-mapped table from id to number and payload, so that
 * handing out a job of a group that was touched lately reads no file. An entry that
 * another id needs is given up; what is given up is read from the file again.
 */
#include "broker/ledger/inner.h"

#include <errno.h>
#include <stdlib.h>

bool ledger_cache_init(struct ledger *ledger)
{
    ledger->cache = calloc(CACHE_ENTRIES, sizeof(*ledger->cache));
    return ledger->cache != NULL;
}

/* Drops what a buffer holds, and its memory where that is much. */
static void let_go(struct ledger *ledger, struct buffer *held)
{
    buffer_clear(held);
    if (held->capacity <= CACHE_REUSED_MAX)
        return;
    ledger->cache_bytes -= held->capacity;
    buffer_finish(held);
}

static void empty(struct ledger *ledger, struct cached_group *group)
{
    let_go(ledger, &group->task);
    let_go(ledger, &group->layer);
    group->number = 0;
    group->has_init = group->is_new = false;
}

void ledger_cache_finish(struct ledger *ledger)
{
    for (size_t i = 0; ledger->cache && i < CACHE_ENTRIES; i++) {
        buffer_finish(&ledger->cache[i].task);
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

struct cached_group *ledger_cache_get(struct ledger *ledger, struct slice id)
{
    uint64_t hash = hash_of(id);
    struct cached_group *group = &ledger->cache[hash % CACHE_ENTRIES];
    if ((group->number || group->is_new) && group->hash == hash && slice_is(id, group->id))
        return group;
    size_t len = id.len < sizeof(group->id) ? id.len : 0; /* longer than any group's */
    empty(ledger, group);
    group->hash = hash;
    if (len)
        memcpy(group->id, id.data, len);
    group->id[len] = '\0';
    return group;
}

/* Copies bytes that fit the cache's budget; otherwise leaves `to` empty. */
static void hold(struct ledger *ledger, struct buffer *to, struct slice bytes)
{
    let_go(ledger, to);
    size_t before = to->capacity;
    if (bytes.len <= CACHE_PAYLOAD_MAX && ledger->cache_bytes + 2 * bytes.len <= CACHE_BYTES_MAX)
        buffer_append(to, bytes.data, bytes.len);
    ledger->cache_bytes += to->capacity - before;
}

void ledger_cache_task(struct ledger *ledger, struct cached_group *group, struct slice task)
{
    hold(ledger, &group->task, task);
}

void ledger_cache_init_layer(struct ledger *ledger, struct cached_group *group, struct slice digest, struct slice layer)
{
    hold(ledger, &group->layer, layer);
    group->has_init = group->layer.len == layer.len && digest.len < sizeof(group->digest);
    if (!group->has_init)
        return;
    if (digest.len)
        memcpy(group->digest, digest.data, digest.len);
    group->digest[digest.len] = '\0';
}

void ledger_cache_drop(struct ledger *ledger, struct slice id) { empty(ledger, ledger_cache_get(ledger, id)); }

/* ---- lookups -------------------------------------------------------------------------- */

int ledger_find_group(struct ledger *ledger, struct slice id, struct cached_group **ret, struct fail *fail)
{
    struct cached_group *group = ledger_cache_get(ledger, id);
    if (group->number == 0) {
        int code = ledger_ask(ledger, LEDGER_FIND_GROUP, VALUES(TEXT(id)), fail);
        if (code < 0)
            return code;
        if (code == 0)
            return fail_set(fail, -ENOENT, "the ledger has no group %.*s", SLICE_ARG(id));
        group->number = ledger_number(ledger, LEDGER_FIND_GROUP, 0);
        group->stream = ledger_number(ledger, LEDGER_FIND_GROUP, 1);
        ledger_cache_task(ledger, group, ledger_slice(ledger, LEDGER_FIND_GROUP, 2));
        ledger_reset(ledger, LEDGER_FIND_GROUP);
    }
    *ret = group;
    return 0;
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

int ledger_find_rollout(struct ledger *ledger, struct slice rollout, int64_t *ret, struct fail *fail)
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
    struct cached_group *group;
    int code = ledger_find_group(ledger, slice_of(rollout.data, slash - 1), &group, fail);
    if (code == 0)
        *ret = group->number * ROLLOUTS_PER_GROUP + sample;
    return code;
}
