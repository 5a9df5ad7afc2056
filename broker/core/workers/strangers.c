/* Whose the id of a worker is, and who else has tried to use it. */
#include "broker/core/state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- ids from before a restart -------------------------------------------------------- */

struct claim {
    uint8_t key_len, id_len;
    uint8_t text[]; /* the id, and the name of its key */
};

static struct slice claim_key(const struct claim *claim) { return slice_of(claim->text + claim->id_len, claim->key_len); }

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
    const struct loss *loss;
    for (uint64_t n = 0; (loss = loss_nth(core, n)); n++)
        if (slice_is(id, loss->worker))
            return slice_from_str(loss->key);
    const struct claim *claim = table_find(&core->claims, id);
    return claim ? claim_key(claim) : none;
}

const struct stranger *stranger_nth(const struct core *core, uint64_t n)
{
    const struct strangers *strangers = &core->strangers;
    if (n >= strangers->count || n >= STRANGERS_MAX)
        return NULL;
    const struct stranger *stranger = &strangers->ring[(strangers->count - 1 - n) % STRANGERS_MAX];
    return core->now_ms - stranger->at_ms <= core->settings.lost_shown_ms ? stranger : NULL;
}

/* The same id and key again: beats come every second. */
static struct stranger *find_known(const struct core *core, struct slice id, struct slice key)
{
    const struct strangers *strangers = &core->strangers;
    for (uint64_t n = 0; n < strangers->count && n < STRANGERS_MAX; n++)
        if (slice_is(id, strangers->ring[n].worker) && slice_is(key, strangers->ring[n].key))
            return &strangers->ring[n];
    return NULL;
}

static void note(struct core *core, struct slice id, struct slice key, struct slice owner)
{
    struct strangers *strangers = &core->strangers;
    core->counters.strangers++;
    if (!strangers->ring)
        strangers->ring = core_alloc(core, STRANGERS_MAX, sizeof(*strangers->ring));
    if (!strangers->ring)
        return;
    struct stranger *stranger = find_known(core, id, key);
    if (!stranger) {
        stranger = &strangers->ring[strangers->count++ % STRANGERS_MAX];
        *stranger = (struct stranger){0};
        snprintf(stranger->worker, sizeof(stranger->worker), "%.*s", SLICE_ARG(id));
        snprintf(stranger->key, sizeof(stranger->key), "%.*s", SLICE_ARG(key));
    }
    snprintf(stranger->owner, sizeof(stranger->owner), "%.*s", SLICE_ARG(owner));
    stranger->times++;
    stranger->at_ms = core->now_ms;
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
