/*
 * Cancels that came before their submit. A tomb is a name (a group's or a rollout's)
 * and the client that cancelled it; a submit meets those of its client and of its
 * stream's owner. It goes when that submit comes, after tomb_ms, or when there are TOMBS_MAX
 * and one more comes: then the oldest of the client that has the most.
 */
#include "broker/core/state.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_BYTES = 128, OWNER_MAX_BYTES = 256, KEY_MAX_BYTES = 400 };

/* A client that has tombs, for as long as it has any. */
struct tomb_owner {
    struct heap_node most; /* in core->tomb_owners_by_count */
    struct list tombs;     /* the oldest first */
    size_t count;
    uint32_t name_len;
    char name[];
};

struct tomb {
    struct heap_node due;  /* in core->tomb_times */
    struct list link;      /* in its owner's tombs */
    struct tomb_owner *owner;
    uint64_t clock_ms;     /* of its cancel */
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
    effect->end.clock_ms = tomb->clock_ms;
    if (!key.len)
        return;
    effect->job = slice_of(key.data, tomb->name_len);
    effect->client = slice_of(key.data + tomb->name_len + 1, key.len - tomb->name_len - 1);
}

/* ---- their owners ------------------------------------------------------------------ */

static struct slice owner_name(const struct tomb_owner *owner)
{
    return slice_of(owner->name, owner->name_len);
}

/* False when out of memory. */
static bool set_count(struct core *core, struct tomb_owner *owner, size_t count)
{
    owner->count = count;
    return heap_put(&core->tomb_owners_by_count, &owner->most, -(int64_t)count);
}

static void owner_destroy(struct core *core, struct tomb_owner *owner)
{
    heap_remove(&core->tomb_owners_by_count, &owner->most);
    table_take(&core->tomb_owners, owner_name(owner));
    free(owner);
}

/* Made if there is none, without tombs; NULL when out of memory. */
static struct tomb_owner *owner_intern(struct core *core, struct slice name)
{
    struct tomb_owner *owner = table_find(&core->tomb_owners, name);
    if (owner)
        return owner;
    owner = core_alloc(core, 1, sizeof(*owner) + name.len);
    if (!owner)
        return NULL;
    list_init(&owner->tombs);
    owner->name_len = (uint32_t)name.len;
    if (name.len)
        memcpy(owner->name, name.data, name.len);
    if (table_put(&core->tomb_owners, owner_name(owner), owner) && set_count(core, owner, 0))
        return owner;
    core->failed = true;
    owner_destroy(core, owner);
    return NULL;
}

/* ---- tombs ------------------------------------------------------------------------- */

/* Out of everything that knows it, and freed; its owner too, if this was its last. */
static void forget(struct core *core, struct tomb *tomb)
{
    struct tomb_owner *owner = tomb->owner;
    heap_remove(&core->tomb_times, &tomb->due);
    table_take(&core->tombs, tomb_key(tomb));
    list_remove(&tomb->link);
    if (owner->count == 1)
        owner_destroy(core, owner);
    else
        set_count(core, owner, owner->count - 1); /* it is in the heap: that needs no memory */
    free(tomb);
}

static void drop(struct core *core, struct tomb *tomb)
{
    if (!core->restoring)
        persist(core, tomb, false);
    forget(core, tomb);
}

static struct tomb *first_due(const struct core *core)
{
    struct heap_node *node = heap_peek(&core->tomb_times);
    return node ? container_of(node, struct tomb, due) : NULL;
}

/* So that one more fits. */
static void make_room(struct core *core)
{
    struct heap_node *most = heap_peek(&core->tomb_owners_by_count);
    if (core->tombs.count < TOMBS_MAX || !most)
        return;
    struct tomb_owner *owner = container_of(most, struct tomb_owner, most);
    drop(core, container_of(owner->tombs.next, struct tomb, link));
}

/* A new one, not due yet; NULL when out of memory. */
static struct tomb *bury(struct core *core, struct slice key, size_t name_len)
{
    struct slice name = slice_of(key.data + name_len + 1, key.len - name_len - 1);
    make_room(core);
    struct tomb *tomb = core_alloc(core, 1, sizeof(*tomb) + key.len);
    struct tomb_owner *owner = tomb ? owner_intern(core, name) : NULL;
    if (!owner) {
        free(tomb);
        return NULL;
    }
    memcpy(tomb->key, key.data, key.len);
    tomb->key_len = (uint32_t)key.len;
    tomb->name_len = (uint32_t)name_len;
    tomb->owner = owner;
    list_push_back(&owner->tombs, &tomb->link);
    set_count(core, owner, owner->count + 1);
    if (table_put(&core->tombs, tomb_key(tomb), tomb))
        return tomb;
    core->failed = true;
    forget(core, tomb);
    return NULL;
}

/* The tomb of this key, made if there is none, and its owner's newest; NULL when out of memory. */
static struct tomb *intern(struct core *core, struct slice key, size_t name_len, int64_t due_ms)
{
    struct tomb *tomb = table_find(&core->tombs, key);
    if (!tomb)
        tomb = bury(core, key, name_len);
    if (!tomb)
        return NULL;
    list_remove(&tomb->link);
    list_push_back(&tomb->owner->tombs, &tomb->link);
    if (heap_put(&core->tomb_times, &tomb->due, due_ms))
        return tomb;
    core->failed = true;
    forget(core, tomb);
    return NULL;
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
    tomb->clock_ms = (uint64_t)core_clock_ms(core);
    persist(core, tomb, true);
}

bool core_restore_tomb(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, owner);
    int64_t whole_ms = core->settings.tomb_ms, age_ms = core_age_ms(core, clock_ms);
    int64_t left_ms = age_ms < whole_ms ? whole_ms - age_ms : 0;
    if (!key.len)
        return true;
    struct tomb *tomb = intern(core, key, name.len, core->now_ms + left_ms);
    if (tomb)
        tomb->clock_ms = clock_ms;
    return tomb != NULL;
}

void tombs_tick(struct core *core)
{
    struct tomb *first;
    unsigned dropped = 0;
    while (dropped++ < SWEEP_SLICE && (first = first_due(core)) && first->due.key <= core->now_ms)
        drop(core, first);
}

void tombs_finish(struct core *core)
{
    size_t at = 0;
    for (struct tomb *tomb; (tomb = table_next(&core->tombs, &at));)
        free(tomb);
    at = 0;
    for (struct tomb_owner *owner; (owner = table_next(&core->tomb_owners, &at));)
        free(owner);
    table_finish(&core->tombs);
    table_finish(&core->tomb_owners);
    heap_finish(&core->tomb_times);
    heap_finish(&core->tomb_owners_by_count);
}

bool tombs_are_counted(const struct core *core)
{
    size_t at = 0, counted = 0;
    for (const struct tomb_owner *owner; (owner = table_next(&core->tomb_owners, &at));) {
        size_t count = 0;
        const struct tomb *tomb;
        LIST_EACH(tomb, &owner->tombs, link)
            count += tomb->owner == owner;
        if (count == 0 || count != owner->count || owner->most.key != -(int64_t)count)
            return false;
        counted += count;
    }
    return core->tombs.count <= TOMBS_MAX && core->tombs.count == counted &&
           core->tombs.count == core->tomb_times.count && heap_is_sound(&core->tomb_times) &&
           core->tomb_owners.count == core->tomb_owners_by_count.count &&
           heap_is_sound(&core->tomb_owners_by_count);
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
