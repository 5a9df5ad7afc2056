/*
 * core_model_sampler.h - samplers in the simulated world: what the ledger has of them, and what must hold of it.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H
#define SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H

#include "broker/core/core.h"
#include "broker/core/state/sampler.h"

enum { SAMPLED_MAX = 400, ANSWER_MAX = 65536, STANDING_MAX = 4096 };

struct row_sampled {
    bool is_there;
    struct core_sampled row;
    char group[32];
    uint64_t batch; /* that it was in; 0: none */
};

struct row_sampler {
    bool is_there;
    struct core_sampler row;
    char trainer[16], stream[16], answer[ANSWER_MAX];
    struct row_sampled groups[SAMPLED_MAX]; /* by number */
    uint64_t told;                          /* batches that a trainer was told, once each */
};

static inline void row_put(char *to, size_t size, struct slice from)
{
    assert_true(from.len < size);
    memcpy(to, from.data, from.len);
    to[from.len] = '\0';
}

static inline void persist_sampler(struct row_sampler *sampler, const struct effect *effect)
{
    if (!effect->present) {
        memset(sampler, 0, sizeof(*sampler));
        return;
    }
    const struct core_sampler *row = effect->sampler;
    assert_true(!sampler->is_there || (row->batch >= sampler->row.batch && row->batch <= sampler->row.batch + 1 &&
                                       row->submitted >= sampler->row.submitted));
    sampler->is_there = true;
    sampler->row = *row;
    row_put(sampler->trainer, sizeof(sampler->trainer), row->trainer);
    row_put(sampler->stream, sizeof(sampler->stream), row->stream);
}

/* A group is released once, has a verdict once, and is in one batch at the most. */
static inline void persist_sampled(struct row_sampler *sampler, const struct effect *effect)
{
    assert_true(effect->seq >= 1 && effect->seq < SAMPLED_MAX);
    struct row_sampled *group = &sampler->groups[effect->seq];
    if (!effect->present) {
        group->is_there = false;
        return;
    }
    const struct core_sampled *row = effect->sampled, *before = &group->row;
    if (group->is_there) {
        assert_true(slice_is(row->group, group->group));
        assert_true(row->state >= before->state);
        assert_true(row->ended >= before->ended && row->tokens >= before->tokens && row->replaced >= before->replaced);
        assert_true(before->state != SAMPLED_DROPPED || row->verdict == before->verdict);
    }
    assert_int_equal(row->state == SAMPLED_HELD || row->state == SAMPLED_LIVE, row->ended < row->samples);
    if (row->state == SAMPLED_CURRENT && group->batch == 0)
        group->batch = sampler->row.batch + 1; /* its row comes after it */
    assert_true(row->state != SAMPLED_CURRENT || group->batch >= sampler->row.batch);
    group->is_there = true;
    group->row = *row;
    row_put(group->group, sizeof(group->group), row->group);
}

static inline void persist_answer(struct row_sampler *sampler, const struct effect *effect)
{
    row_put(sampler->answer, sizeof(sampler->answer), effect->detail);
}

static inline void persist_of_sampler(struct row_sampler *sampler, const struct effect *effect)
{
    if (effect->kind == PERSIST_SAMPLER)
        persist_sampler(sampler, effect);
    else if (effect->kind == PERSIST_SAMPLED)
        persist_sampled(sampler, effect);
    else
        persist_answer(sampler, effect);
}

static inline void restore_sampler(struct core *core, struct row_sampler *sampler)
{
    if (!sampler->is_there)
        return;
    sampler->row.trainer = slice_from_str(sampler->trainer);
    sampler->row.stream = slice_from_str(sampler->stream);
    assert_true(core_restore_sampler(core, &sampler->row, slice_from_str(sampler->row.batch ? sampler->answer : "")));
    for (unsigned i = 1; i < SAMPLED_MAX; i++) {
        struct core_sampled *row = &sampler->groups[i].row;
        if (!sampler->groups[i].is_there)
            continue;
        row->group = slice_from_str(sampler->groups[i].group);
        row->stream = sampler->row.stream;
        assert_true(core_restore_sampled(core, row));
    }
}

/* A batch is told as the ledger has it, byte for byte. */
static inline void hear_batch(struct row_sampler *sampler, struct slice bytes)
{
    struct msg_sampler_batch in;
    assert_true(message_decode(MSG_sampler_batch, bytes, &in, NULL));
    assert_true(in.batch <= sampler->row.batch);
    if (in.batch < sampler->row.batch)
        return; /* the next one was made in the same cycle */
    assert_true(slice_is(in.json, sampler->answer));
    sampler->told += in.batch > sampler->told;
}

/* Where a stream's sampler stands, as the last effect answers: the same before a restart and after it. */
static inline void read_standing(const struct core *core, char ret[STANDING_MAX])
{
    const struct effects effects = core_effects(core);
    const struct effect *last = effects.count ? &effects.items[effects.count - 1] : NULL;
    enum message_id id = MESSAGE_COUNT;
    struct msg_sampler_state in;
    ret[0] = '\0';
    if (!last || last->kind != SEND_CLIENT || !message_peek(last->bytes, &id, NULL) || id != MSG_sampler_state)
        return;
    assert_true(message_decode(id, last->bytes, &in, NULL));
    row_put(ret, STANDING_MAX, in.json);
    *strstr(ret, "\"wanted\"") = '\0'; /* that of a batch that is asked for is asked again */
}

#endif
