/*
 * Cancels that came before their submit. An early cancel is a name (a group's or a rollout's)
 * and the client that cancelled it; a submit meets those of its client and of its
 * stream's owner. It goes when that submit comes, after early_cancel_ms, or when there are EARLY_CANCELS_MAX
 * and one more comes: then the oldest of the client that has the most.
 */
#include "broker/core/clients/early_cancel.h"
#include "broker/core/queue/groups.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <stdlib.h>

#include "schemas/messages/message_max.h"

enum { NAME_MAX_BYTES = MESSAGE_MAX(rollout_cancel, rollout), OWNER_MAX_BYTES = 256, KEY_MAX_BYTES = 400 };

/* A client that has early cancels, for as long as it has any. */
struct early_cancel_owner {
    struct heap_node most; /* in core->early_cancel_owners_by_count */
    struct list cancels;   /* the oldest first */
    size_t count;
    uint32_t name_len;
    char name[];
};

struct early_cancel {
    struct heap_node due; /* in core->early_cancel_times */
    struct list link;     /* in its owner's cancels */
    struct early_cancel_owner *owner;
    uint64_t clock_ms; /* of its cancel */
    uint32_t name_len, key_len;
    uint8_t key[]; /* name, NUL, owner */
};

static struct slice early_cancel_key(const struct early_cancel *cancel)
{
    return slice_of(cancel->key, cancel->key_len);
}

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

static void persist(struct core *core, const struct early_cancel *cancel, bool present)
{
    struct slice key = effect_copy(core, early_cancel_key(cancel));
    struct effect *effect = effect_push(core, PERSIST_EARLY_CANCEL);
    effect->present = present;
    effect->early_cancel.clock_ms = cancel->clock_ms;
    if (!key.len)
        return;
    effect->early_cancel.name = slice_of(key.data, cancel->name_len);
    effect->early_cancel.owner = slice_of(key.data + cancel->name_len + 1, key.len - cancel->name_len - 1);
}

/* ---- their owners ------------------------------------------------------------------ */

static struct slice owner_name(const struct early_cancel_owner *owner)
{
    return slice_of(owner->name, owner->name_len);
}

/* False when out of memory. */
static bool set_count(struct core *core, struct early_cancel_owner *owner, size_t count)
{
    owner->count = count;
    return heap_put(&core->early_cancel_owners_by_count, &owner->most, -(int64_t)count);
}

static void owner_destroy(struct core *core, struct early_cancel_owner *owner)
{
    heap_remove(&core->early_cancel_owners_by_count, &owner->most);
    table_take(&core->early_cancel_owners, owner_name(owner));
    free(owner);
}

/* Made if there is none, without early cancels; NULL when out of memory. */
static struct early_cancel_owner *owner_intern(struct core *core, struct slice name)
{
    struct early_cancel_owner *owner = table_find(&core->early_cancel_owners, name);
    if (owner)
        return owner;
    owner = core_alloc(core, 1, sizeof(*owner) + name.len);
    if (!owner)
        return NULL;
    list_init(&owner->cancels);
    owner->name_len = (uint32_t)name.len;
    if (name.len)
        memcpy(owner->name, name.data, name.len);
    if (table_put(&core->early_cancel_owners, owner_name(owner), owner) && set_count(core, owner, 0))
        return owner;
    core->failed = true;
    owner_destroy(core, owner);
    return NULL;
}

/* ---- early cancels ----------------------------------------------------------------- */

/* Out of everything that knows it, and freed; its owner too, if this was its last. */
static void forget(struct core *core, struct early_cancel *cancel)
{
    struct early_cancel_owner *owner = cancel->owner;
    heap_remove(&core->early_cancel_times, &cancel->due);
    table_take(&core->early_cancels, early_cancel_key(cancel));
    list_remove(&cancel->link);
    if (owner->count == 1)
        owner_destroy(core, owner);
    else
        set_count(core, owner, owner->count - 1); /* it is in the heap: that needs no memory */
    free(cancel);
}

static void drop(struct core *core, struct early_cancel *cancel)
{
    if (!core->restoring)
        persist(core, cancel, false);
    forget(core, cancel);
}

static struct early_cancel *first_due(const struct core *core)
{
    struct heap_node *node = heap_peek(&core->early_cancel_times);
    return node ? container_of(node, struct early_cancel, due) : NULL;
}

/* So that one more fits. */
static void make_room(struct core *core)
{
    struct heap_node *most = heap_peek(&core->early_cancel_owners_by_count);
    if (core->early_cancels.count < EARLY_CANCELS_MAX || !most)
        return;
    struct early_cancel_owner *owner = container_of(most, struct early_cancel_owner, most);
    drop(core, container_of(owner->cancels.next, struct early_cancel, link));
}

/* A new one, not due yet; NULL when out of memory. */
static struct early_cancel *add(struct core *core, struct slice key, size_t name_len)
{
    struct slice name = slice_of(key.data + name_len + 1, key.len - name_len - 1);
    make_room(core);
    struct early_cancel *cancel = core_alloc(core, 1, sizeof(*cancel) + key.len);
    struct early_cancel_owner *owner = cancel ? owner_intern(core, name) : NULL;
    if (!owner) {
        free(cancel);
        return NULL;
    }
    memcpy(cancel->key, key.data, key.len);
    cancel->key_len = (uint32_t)key.len;
    cancel->name_len = (uint32_t)name_len;
    cancel->owner = owner;
    list_push_back(&owner->cancels, &cancel->link);
    set_count(core, owner, owner->count + 1);
    if (table_put(&core->early_cancels, early_cancel_key(cancel), cancel))
        return cancel;
    core->failed = true;
    forget(core, cancel);
    return NULL;
}

/* The early cancel of this key, made if there is none, and its owner's newest; NULL when out of memory. */
static struct early_cancel *intern(struct core *core, struct slice key, size_t name_len, int64_t due_ms)
{
    struct early_cancel *cancel = table_find(&core->early_cancels, key);
    if (!cancel)
        cancel = add(core, key, name_len);
    if (!cancel)
        return NULL;
    list_remove(&cancel->link);
    list_push_back(&cancel->owner->cancels, &cancel->link);
    if (heap_put(&core->early_cancel_times, &cancel->due, due_ms))
        return cancel;
    core->failed = true;
    forget(core, cancel);
    return NULL;
}

void early_cancel_put(struct core *core, const struct call *call, struct slice name)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, call->caller->name);
    if (!key.len || core->settings.early_cancel_ms == 0)
        return;
    struct early_cancel *cancel = intern(core, key, name.len, core->now_ms + core->settings.early_cancel_ms);
    if (!cancel)
        return;
    cancel->clock_ms = (uint64_t)core_clock_ms(core);
    persist(core, cancel, true);
}

void early_cancels_tick(struct core *core)
{
    struct early_cancel *first;
    unsigned dropped = 0;
    while (dropped++ < SWEEP_SLICE && (first = first_due(core)) && first->due.key <= core->now_ms)
        drop(core, first);
}

void early_cancels_finish(struct core *core)
{
    size_t at = 0;
    for (struct early_cancel *cancel; (cancel = table_next(&core->early_cancels, &at));)
        free(cancel);
    at = 0;
    for (struct early_cancel_owner *owner; (owner = table_next(&core->early_cancel_owners, &at));)
        free(owner);
    table_finish(&core->early_cancels);
    table_finish(&core->early_cancel_owners);
    heap_finish(&core->early_cancel_times);
    heap_finish(&core->early_cancel_owners_by_count);
}

bool early_cancels_are_counted(const struct core *core)
{
    size_t at = 0, counted = 0;
    for (const struct early_cancel_owner *owner; (owner = table_next(&core->early_cancel_owners, &at));) {
        size_t count = 0;
        const struct early_cancel *cancel;
        LIST_EACH(cancel, &owner->cancels, link)
            count += cancel->owner == owner;
        if (count == 0 || count != owner->count || owner->most.key != -(int64_t)count)
            return false;
        counted += count;
    }
    return core->early_cancels.count <= EARLY_CANCELS_MAX && core->early_cancels.count == counted &&
           core->early_cancels.count == core->early_cancel_times.count && heap_is_sound(&core->early_cancel_times) &&
           core->early_cancel_owners.count == core->early_cancel_owners_by_count.count &&
           heap_is_sound(&core->early_cancel_owners_by_count);
}

/* ---- a submit that was cancelled before -------------------------------------------- */

/* Whether this client had cancelled it; no more if so. */
static bool take_of(struct core *core, struct slice client, struct slice name)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, client);
    struct early_cancel *cancel = key.len ? table_find(&core->early_cancels, key) : NULL;
    if (cancel)
        drop(core, cancel);
    return cancel != NULL;
}

static bool take(struct core *core, const struct call *call, const struct group *group, struct slice name)
{
    bool is_owners = take_of(core, client_name(group->stream->owner), name);
    return take_of(core, call->caller->name, name) || is_owners;
}

static void end_one(struct core *core, struct rollout *rollout)
{
    static const char why[] = "cancelled before it was submitted";
    rollout_end(core, rollout, &(struct ending){.outcome = OUTCOME_CANCELLED, .detail = slice_from_str(why)});
}

void early_cancels_apply(struct core *core, const struct call *call, struct group *group)
{
    if (!core->early_cancels.count)
        return;
    bool all = take(core, call, group, group_id(group));
    for (uint32_t k = 0; group->work && k < group->samples; k++) {
        char name[NAME_MAX_BYTES];
        int len = snprintf(name, sizeof(name), "%s/%u", group->id, k);
        if ((take(core, call, group, slice_of(name, (size_t)len)) || all) && group_unfold(core, group))
            end_one(core, &group->work->rollouts[k]);
    }
}

bool early_cancel_restore(struct core *core, struct slice name, struct slice owner, uint64_t clock_ms)
{
    uint8_t bytes[KEY_MAX_BYTES];
    struct slice key = make_key(bytes, name, owner);
    int64_t whole_ms = core->settings.early_cancel_ms, age_ms = core_age_ms(core, clock_ms);
    int64_t left_ms = age_ms < whole_ms ? whole_ms - age_ms : 0;
    if (!key.len)
        return true;
    struct early_cancel *cancel = intern(core, key, name.len, core->now_ms + left_ms);
    if (cancel)
        cancel->clock_ms = clock_ms;
    return cancel != NULL;
}
