/* The workers lost of late, for status.get: a ring, so that there are never more than so many. */
#include "broker/core/workers/lost_workers.h"
#include "broker/core/metrics/counting.h"
#include "broker/core/state/state.h"

static void set_text(char *to, size_t size, struct slice from)
{
    size_t len = from.len < size ? from.len : size - 1;
    if (len)
        memcpy(to, from.data, len);
    to[len] = '\0';
}

void lost_worker_note(struct core *core, const struct worker *worker, enum loss_why why)
{
    struct lost_workers *all = &core->lost_workers;
    if (worker->draining && !worker->jobs.count)
        return;
    counting_loss(core, worker, why);
    if (!all->ring)
        all->ring = core_alloc(core, LOST_WORKERS_MAX, sizeof(*all->ring));
    if (!all->ring)
        return;
    struct lost_worker *lost = &all->ring[all->count++ % LOST_WORKERS_MAX];
    lost->at_ms = core->now_ms;
    lost->stage = worker->stage;
    lost->why = why;
    lost->jobs = worker->jobs.count;
    lost->slots_before = core->slots[worker->stage];
    set_text(lost->worker, sizeof(lost->worker), worker_id(worker));
    set_text(lost->host, sizeof(lost->host), slice_from_str(worker->host));
    set_text(lost->key, sizeof(lost->key), worker_key(worker));
}

const struct lost_worker *lost_worker_nth(const struct core *core, uint64_t n)
{
    const struct lost_workers *all = &core->lost_workers;
    if (n >= all->count || n >= LOST_WORKERS_MAX)
        return NULL;
    const struct lost_worker *lost = &all->ring[(all->count - 1 - n) % LOST_WORKERS_MAX];
    return core->now_ms - lost->at_ms <= core->settings.lost_shown_ms ? lost : NULL;
}

const char *loss_words(enum loss_why why)
{
    static const char *const words[] = {
#define X(name, words, label) words,
        LOSS_WHYS(X)
#undef X
    };
    return words[why];
}
