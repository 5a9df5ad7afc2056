/* The workers lost of late, for status.get: a ring, so that there are never more than so many. */
#include "broker/core/state.h"

static void set_text(char *to, size_t size, struct slice from)
{
    size_t len = from.len < size ? from.len : size - 1;
    if (len)
        memcpy(to, from.data, len);
    to[len] = '\0';
}

void loss_note(struct core *core, const struct worker *worker, enum loss_why why)
{
    struct losses *losses = &core->losses;
    if (worker->draining && !worker->jobs.count)
        return;
    if (!losses->ring)
        losses->ring = core_alloc(core, LOSSES_MAX, sizeof(*losses->ring));
    if (!losses->ring)
        return;
    struct loss *loss = &losses->ring[losses->count++ % LOSSES_MAX];
    loss->at_ms = core->now_ms;
    loss->stage = worker->stage;
    loss->why = why;
    loss->jobs = worker->jobs.count;
    loss->slots_before = core->slots[worker->stage];
    set_text(loss->worker, sizeof(loss->worker), worker_id(worker));
    set_text(loss->host, sizeof(loss->host), slice_from_str(worker->host));
    set_text(loss->key, sizeof(loss->key), worker_key(worker));
}

const struct loss *loss_nth(const struct core *core, uint64_t n)
{
    const struct losses *losses = &core->losses;
    if (n >= losses->count || n >= LOSSES_MAX)
        return NULL;
    const struct loss *loss = &losses->ring[(losses->count - 1 - n) % LOSSES_MAX];
    return core->now_ms - loss->at_ms <= core->settings.lost_shown_ms ? loss : NULL;
}

const char *loss_words(enum loss_why why)
{
    static const char *const words[] = {
#define X(name, words) words,
        LOSS_WHYS(X)
#undef X
    };
    return words[why];
}
