/*
 * row_samplers.h - what is on disk of samplers, for whoever plays the ledger: a group is released once, is kept or
 * dropped once, and is in one batch at the most; a batch is told as it was made, byte for byte. Who includes it has
 * defined must(), which ends the test where it does not hold.
 */
#ifndef SLUICE_TESTS_BROKER_LEDGER_ROW_SAMPLERS_H
#define SLUICE_TESTS_BROKER_LEDGER_ROW_SAMPLERS_H

#include "broker/core/core.h"
#include "broker/core/state/sampler.h"

enum { SAMPLED_MAX = 400 }; /* groups that one sampler ever had */

struct row_sampled {
    bool is_there;
    struct core_sampled row;
    char group[100];
    uint64_t batch; /* that it was in; 0: none */
};

struct row_sampler {
    bool is_there;
    struct core_sampler row;
    char trainer[SAMPLER_TRAINER_MAX + 1];
    char *answer;                           /* of the current batch; ours, or NULL */
    struct row_sampled groups[SAMPLED_MAX]; /* by number */
    uint64_t told;                          /* batches that a trainer was told, once each */
};

static inline void put_text(char *to, size_t size, struct slice from)
{
    must(from.len < size);
    if (from.len)
        memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

static inline void forget_sampler(struct row_sampler *sampler)
{
    free(sampler->answer);
    *sampler = (struct row_sampler){0};
}

static inline void persist_sampler(struct row_sampler *sampler, const struct effect *effect)
{
    if (!effect->present) {
        must(sampler->is_there);
        forget_sampler(sampler);
        return;
    }
    const struct core_sampler *row = effect->sampler, *before = &sampler->row;
    must(row->batch >= before->batch && row->batch <= before->batch + 1 && row->submitted >= before->submitted);
    sampler->is_there = true;
    sampler->row = *row;
    put_text(sampler->trainer, sizeof(sampler->trainer), row->trainer);
}

static inline void persist_sampled(struct row_sampler *sampler, const struct effect *effect)
{
    must(effect->seq >= 1 && effect->seq < SAMPLED_MAX);
    struct row_sampled *group = &sampler->groups[effect->seq];
    if (!effect->present) {
        must(group->is_there);
        group->is_there = false;
        return;
    }
    const struct core_sampled *row = effect->sampled, *before = &group->row;
    if (group->is_there) {
        must(slice_is(row->group, group->group) && row->state >= before->state);
        must(row->ended >= before->ended && row->tokens >= before->tokens && row->replaced >= before->replaced);
        must(before->state != SAMPLED_DROPPED || row->verdict == before->verdict);
    }
    must((row->state == SAMPLED_HELD || row->state == SAMPLED_LIVE) == (row->ended < row->samples));
    if (row->state == SAMPLED_CURRENT && group->batch == 0)
        group->batch = sampler->row.batch + 1; /* its row comes after it */
    must(row->state != SAMPLED_CURRENT || group->batch >= sampler->row.batch);
    group->is_there = true;
    group->row = *row;
    put_text(group->group, sizeof(group->group), row->group);
}

static inline void persist_batch(struct row_sampler *sampler, const struct effect *effect)
{
    free(sampler->answer);
    sampler->answer = malloc(effect->detail.len + 1);
    must(sampler->answer);
    put_text(sampler->answer, effect->detail.len + 1, effect->detail);
}

static inline void persist_of_sampler(struct row_sampler *sampler, const struct effect *effect)
{
    if (effect->kind == PERSIST_SAMPLER)
        persist_sampler(sampler, effect);
    else if (effect->kind == PERSIST_SAMPLED)
        persist_sampled(sampler, effect);
    else
        persist_batch(sampler, effect);
}

static inline void restore_sampler(struct core *core, struct row_sampler *sampler, struct slice stream)
{
    if (!sampler->is_there)
        return;
    sampler->row.stream = stream;
    sampler->row.trainer = slice_from_str(sampler->trainer);
    must(core_restore_sampler(core, &sampler->row, slice_from_str(sampler->row.batch ? sampler->answer : "")));
    for (unsigned i = 1; i < SAMPLED_MAX; i++) {
        struct core_sampled *row = &sampler->groups[i].row;
        row->group = slice_from_str(sampler->groups[i].group);
        row->stream = stream;
        must(!sampler->groups[i].is_there || core_restore_sampled(core, row));
    }
}

/* A batch that a trainer is told; the next one may have been made in the same cycle. */
static inline void check_batch(struct row_sampler *sampler, const struct msg_sampler_batch *in)
{
    must(sampler->is_there && in->batch <= sampler->row.batch);
    if (in->batch < sampler->row.batch)
        return;
    must(slice_is(in->json, sampler->answer));
    sampler->told += in->batch > sampler->told;
}

#endif
