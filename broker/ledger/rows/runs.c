/*
 * Runs in hand: what PERSIST_RUN wrote, until the rollout's end is published, so that neither its evaluation nor
 * its trajectory reads a row. A run belongs to its group's entry of the cache, and goes with it. Where there is no more
 * room, what came first is given up, and read from its row.
 */
#include "broker/ledger/inner.h"

#include <stdlib.h>

static size_t size_of(const struct held_run *run) { return sizeof(*run) + run->len; }

void ledger_let_run_go(struct ledger *ledger, struct held_run *run)
{
    if (run == ledger->published)
        ledger->published = NULL;
    TAILQ_REMOVE(&ledger->runs, run, links);
    LIST_REMOVE(run, of_group);
    ledger->runs_bytes -= size_of(run);
    free(run);
}

void ledger_let_runs_go(struct ledger *ledger, struct cached_group *group)
{
    while (!LIST_EMPTY(&group->runs))
        ledger_let_run_go(ledger, LIST_FIRST(&group->runs));
}

struct held_run *ledger_held_run(const struct cached_group *group, int64_t sample)
{
    struct held_run *run;
    LIST_FOREACH(run, &group->runs, of_group)
    if (run->sample == sample)
        return run;
    return NULL;
}

/* Copies the bytes behind what there is. */
static struct slice add(struct held_run *run, struct slice bytes)
{
    uint8_t *at = run->bytes + run->len;
    if (bytes.len)
        memcpy(at, bytes.data, bytes.len);
    run->len += bytes.len;
    return slice_of(at, bytes.len);
}

void ledger_hold_run(struct ledger *ledger, struct cached_group *group, int64_t sample, const struct effect *effect)
{
    const size_t len = effect->layer_digest.len + effect->answer.len + effect->layer.len + effect->record.len;
    struct held_run *run = ledger_held_run(group, sample);
    if (run)
        ledger_let_run_go(ledger, run);
    run = len <= RUN_BYTES_MAX ? malloc(sizeof(*run) + len) : NULL;
    if (!run)
        return;
    *run = (struct held_run){.sample = sample,
                             .has_length = effect->has_length,
                             .truncated = effect->truncated,
                             .sampled_tokens = effect->sampled_tokens};
    run->digest = add(run, effect->layer_digest);
    run->answer = add(run, effect->answer);
    run->layer = add(run, effect->layer);
    run->record = add(run, effect->record);
    TAILQ_INSERT_TAIL(&ledger->runs, run, links);
    LIST_INSERT_HEAD(&group->runs, run, of_group);
    ledger->runs_bytes += size_of(run);
    while (ledger->runs_bytes > RUNS_BYTES_MAX)
        ledger_let_run_go(ledger, TAILQ_FIRST(&ledger->runs));
}
