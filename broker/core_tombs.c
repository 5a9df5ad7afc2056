/*
 * Cancels that came before their submit. A tomb is a name (a group's or a rollout's)
 * and the client that cancelled it; a submit meets those of its client and of its
 * stream's owner. It goes when that submit comes, after tomb_ms, or when TOMBS_MAX later
 * ones came.
 */
#include "broker/core_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 128, OWNER_MAX_BYTES = 256, KEY_MAX_BYTES = 400 };

struct tomb {
    struct heap_node due;  /* in core->tomb_times */
    uint64_t wall_ms;      /* of its cancel */
    uint32_t name_len, key_len;
    uint8_t key[];         /* name, NUL, owner */
};

static struct slice tomb_key(const struct tomb *tomb) { return slice_of(tomb->key, tomb->key_len); }

/* Into `bytes` of KEY_MAX_BYTES; empty if it cannot be a name or an owner. */
static struct slice make_key(uint8_t *bytes, struct slice name, struct slice owner)
{
    if (!name.len || name.len > NAME_MAX_BYTES || owner.len > OWNER_MAX_BYTES)
        return slice_of(NULL, 0);
    memcpy(bytes, name.data, name.len);
    bytes[name.len] = '\0';
    if (owner.len)
        memcpy(bytes + name.len + 1, owner.data, owner.len);
    return slice_of(bytes, name.len + 1 + owner.len);
}

static void persist(struct core *core, const struct tomb *tomb, bool present)
{
    struct slice key = effect_copy(core, tomb_key(tomb));
    struct effect *effect = effect_push(core, PERSIST_TOMB);
    effect->present = present;
    effect->end.ended_ms = tomb->wall_ms;
    if (!key.len)
        return;
    effect->job = slice_of(key.data, tomb->name_len);
    effect->client = slice_of(key.data + tomb->name_len + 1, key.len - tomb->name_len - 1);
}

static void drop(struct core *core, struct tomb *tomb)
{
    if (!core->restoring)
        persist(core, tomb, false);
    heap_remove(&core->tomb_times, &tomb->due);
    table_take(&core->tombs, tomb_key(tomb));
    free(tomb);
}

static struct tomb *oldest_tomb(const struct core *core)
{
    struct heap_node *node = heap_peek(&core->tomb_times);
    return node ? container_of(node, struct tomb, due) : NULL;
}

/* The tomb of this key, made if there is none; NULL when out of memory. */
static struct tomb *intern(struct core *core, struct slice key, size_t name_len, int64_t due_ms)
{
    struct tomb *tomb = table_find(&core->tombs, key);
    if (!tomb) {
        if (core->tombs.count >= TOMBS_MAX)
            drop(core, oldest_tomb(core));
        tomb = core_alloc(core, 1, sizeof(*tomb) + key.len);
        if (!tomb)
            return NULL;
        memcpy(tomb->key, key.data, key.len);
        tomb->key_len = (uint32_t)key.len;
        tomb->name_len = (uint32_t)name_len;
        if (!table_put(&core->tombs, tomb_key(tomb), tomb)) {
            core->failed = true;
            free(tomb);
            return NULL;
        }
    }
    if (!heap_put(&core->tomb_times, &tomb->due, due_ms)) {
        core->failed = true;
        table_take(&core->tombs, tomb_key(tomb));
        free(tomb);
        return NULL;
    }
    return tomb;
}

void tomb_put(struct core *core, const struct call *call, struct slice name)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, call->caller->name);
    if (!key.len || core->settings.tomb_ms == 0)
        return;
    struct tomb *tomb = intern(core, key, name.len, core->now_ms + core->settings.tomb_ms);
    if (!tomb)
        return;
    tomb->wall_ms = (uint64_t)core->wall_ms;
    persist(core, tomb, true);
}

bool core_restore_tomb(struct core *core, struct slice name, struct slice owner, uint64_t wall_ms)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, owner);
    int64_t whole_ms = core->settings.tomb_ms, age_ms = core_age_ms(core, wall_ms);
    int64_t left_ms = age_ms < whole_ms ? whole_ms - age_ms : 0;
    if (!key.len)
        return true;
    struct tomb *tomb = intern(core, key, name.len, core->now_ms + left_ms);
    if (tomb)
        tomb->wall_ms = wall_ms;
    return tomb != NULL;
}

void tombs_tick(struct core *core)
{
    struct tomb *oldest;
    unsigned dropped = 0;
    while (dropped++ < SWEEP_SLICE && (oldest = oldest_tomb(core)) &&
           oldest->due.key <= core->now_ms)
        drop(core, oldest);
}

void tombs_finish(struct core *core)
{
    size_t at = 0;
    for (struct tomb *tomb; (tomb = table_next(&core->tombs, &at));)
        free(tomb);
    table_finish(&core->tombs);
    heap_finish(&core->tomb_times);
}

/* ---- a submit that was cancelled before -------------------------------------------- */

/* Whether this client had cancelled it; no more if so. */
static bool take_of(struct core *core, struct slice client, struct slice name)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, client);
    struct tomb *tomb = key.len ? table_find(&core->tombs, key) : NULL;
    if (tomb)
        drop(core, tomb);
    return tomb != NULL;
}

static bool take(struct core *core, const struct call *call, const struct group *group,
                 struct slice name)
{
    bool is_owners = take_of(core, client_name(group->stream->owner), name);
    return take_of(core, call->caller->name, name) || is_owners;
}

static void end_one(struct core *core, struct rollout *rollout)
{
    static const char why[] = "cancelled before it was submitted";
    rollout_end(core, rollout, &(struct ending){.outcome = OUTCOME_CANCELLED,
                                                .detail = slice_from_str(why)});
}

void tombs_meet(struct core *core, const struct call *call, struct group *group)
{
    if (!core->tombs.count)
        return;
    bool all = take(core, call, group, group_id(group));
    for (uint32_t k = 0; group->work && k < group->samples; k++) {
        char name[NAME_MAX_BYTES];
        int len = snprintf(name, sizeof(name), "%s/%u", group->id, k);
        if (take(core, call, group, slice_of(name, (size_t)len)) || all)
            end_one(core, &group->work->rollouts[k]);
    }
}
