/* Whose the id of a worker is, and who else has tried to use it. */
#include "broker/core/workers/worker_ids.h"
#include "broker/core/state/state.h"
#include "broker/core/workers/lost_workers.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- ids from before a restart -------------------------------------------------------- */

struct claim {
    uint8_t key_len, id_len;
    uint8_t text[]; /* the id, and the name of its key */
};

static struct slice claim_key(const struct claim *claim)
{
    return slice_of(claim->text + claim->id_len, claim->key_len);
}

void claims_note(struct core *core, struct slice id, struct slice key)
{
    if (!key.len || table_find(&core->claims, id))
        return;
    struct claim *claim = core_alloc(core, 1, sizeof(*claim) + id.len + key.len);
    if (!claim)
        return;
    claim->id_len = (uint8_t)id.len;
    claim->key_len = (uint8_t)key.len;
    memcpy(claim->text, id.data, id.len);
    memcpy(claim->text + id.len, key.data, key.len);
    if (table_put(&core->claims, slice_of(claim->text, id.len), claim))
        return;
    core->failed = true;
    free(claim);
}

void claims_finish(struct core *core)
{
    size_t at = 0;
    for (struct claim *claim; (claim = table_next(&core->claims, &at));)
        free(claim);
    table_finish(&core->claims);
}

/* ---- whose an id is ------------------------------------------------------------------- */

/* The name of the key that the id belongs to; `none` where it is nobody's. */
static struct slice owner_of(const struct core *core, struct slice id, struct slice none)
{
    const struct worker *worker = worker_find(core, id);
    if (worker)
        return worker_key(worker);
    const struct lost_worker *lost;
    for (uint64_t n = 0; (lost = lost_worker_nth(core, n)); n++)
        if (slice_is(id, lost->worker))
            return slice_from_str(lost->key);
    const struct claim *claim = table_find(&core->claims, id);
    return claim ? claim_key(claim) : none;
}

const struct id_conflict *id_conflict_nth(const struct core *core, uint64_t n)
{
    const struct id_conflicts *all = &core->id_conflicts;
    if (n >= all->count || n >= ID_CONFLICTS_MAX)
        return NULL;
    const struct id_conflict *conflict = &all->ring[(all->count - 1 - n) % ID_CONFLICTS_MAX];
    return core->now_ms - conflict->at_ms <= core->settings.lost_shown_ms ? conflict : NULL;
}

/* The same id and key again: beats come every second. */
static struct id_conflict *find_known(const struct core *core, struct slice id, struct slice key)
{
    const struct id_conflicts *all = &core->id_conflicts;
    for (uint64_t n = 0; n < all->count && n < ID_CONFLICTS_MAX; n++)
        if (slice_is(id, all->ring[n].worker) && slice_is(key, all->ring[n].key))
            return &all->ring[n];
    return NULL;
}

static void note(struct core *core, struct slice id, struct slice key, struct slice owner)
{
    struct id_conflicts *all = &core->id_conflicts;
    core->counters.id_conflicts++;
    if (!all->ring)
        all->ring = core_alloc(core, ID_CONFLICTS_MAX, sizeof(*all->ring));
    if (!all->ring)
        return;
    struct id_conflict *conflict = find_known(core, id, key);
    if (!conflict) {
        conflict = &all->ring[all->count++ % ID_CONFLICTS_MAX];
        *conflict = (struct id_conflict){0};
        snprintf(conflict->worker, sizeof(conflict->worker), "%.*s", SLICE_ARG(id));
        snprintf(conflict->key, sizeof(conflict->key), "%.*s", SLICE_ARG(key));
    }
    snprintf(conflict->owner, sizeof(conflict->owner), "%.*s", SLICE_ARG(owner));
    conflict->times++;
    conflict->at_ms = core->now_ms;
}

bool worker_speaks(struct core *core, const struct call *call, struct slice id, struct worker **ret)
{
    struct slice key = call->caller->name, owner = owner_of(core, id, key);
    *ret = NULL;
    if (!slice_equal(owner, key)) {
        note(core, id, key, owner);
        return false;
    }
    *ret = worker_find(core, id);
    return true;
}
