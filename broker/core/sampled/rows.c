/* Samplers and their groups as the ledger has them: written whole whenever they change, and read back. */
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

void sampler_persist(struct core *core, const struct sampler *sampler)
{
    struct core_sampler row = sampler->row;
    row.stream = effect_copy(core, stream_name(sampler->stream));
    row.owner = effect_copy(core, client_name(sampler->stream->owner));
    row.trainer = effect_copy(core, slice_from_str(sampler->trainer));
    const struct core_sampler *lasting = effect_row(core, &row, sizeof(row));
    if (!lasting)
        return;
    struct effect *effect = effect_push(core, PERSIST_SAMPLER);
    effect->present = true;
    effect->stream = row.stream;
    effect->sampler = lasting;
}

void sampler_persist_removed(struct core *core, const struct sampler *sampler)
{
    const struct slice stream = effect_copy(core, stream_name(sampler->stream));
    effect_push(core, PERSIST_SAMPLER)->stream = stream;
}

void sampler_persist_answer(struct core *core, const struct sampler *sampler)
{
    const struct slice answer = effect_copy(core, slice_from_str(sampler->answer));
    struct effect *effect = effect_push(core, PERSIST_BATCH);
    effect->stream = effect_copy(core, stream_name(sampler->stream));
    effect->seq = sampler->row.batch;
    effect->detail = answer;
}

void sampled_persist(struct core *core, const struct sampled *sampled, bool present)
{
    struct core_sampled row = sampled->row;
    row.stream = effect_copy(core, stream_name(sampled->sampler->stream));
    row.group = effect_copy(core, sampled_id(sampled));
    const struct core_sampled *lasting = present ? effect_row(core, &row, sizeof(row)) : NULL;
    if (present && !lasting)
        return;
    struct effect *effect = effect_push(core, PERSIST_SAMPLED);
    effect->present = present;
    effect->stream = row.stream;
    effect->group = row.group;
    effect->seq = row.number;
    effect->sampled = lasting;
}

/* ---- back -------------------------------------------------------------------------------- */

static bool rule_makes_sense(const struct sampler_rule *rule)
{
    return rule->groups >= 1 && rule->groups <= MESSAGE_MAX(sampler_open, groups) && rule->window >= rule->groups &&
           rule->window <= MESSAGE_MAX(sampler_open, window) && rule->ahead <= MESSAGE_MAX(sampler_open, ahead);
}

bool sampler_restore(struct core *core, const struct core_sampler *row, struct slice answer)
{
    struct stream *stream = stream_find(core, row->stream);
    if (!stream || stream->sampler || !rule_makes_sense(&row->rule) || row->trainer.len > SAMPLER_TRAINER_MAX ||
        (row->batch > 0) != (answer.len > 0))
        return false;
    struct sampler *sampler = sampler_create(core, stream);
    if (!sampler)
        return false;
    memcpy(sampler->trainer, row->trainer.data, row->trainer.len);
    sampler->row = *row;
    sampler->row.stream = sampler->row.trainer = slice_of(NULL, 0);
    sampler->row.since[SAMPLER_KEPT] = 0; /* earlier versions counted what was ready, too; of the current batch below */
    sampler->row.total[SAMPLER_KEPT] = row->batched;
    sampler->is_spoiled = true;
    sampler->answer = core_strdup(core, answer);
    sampler_note(core, sampler);
    return !core->failed;
}
