/* What each PERSIST_* effect writes. */
#include "broker/ledger/inner.h"
#include "schemas/task/json/task_member.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static int get_stream(struct ledger *ledger, struct slice name, int64_t *ret, struct fail *fail)
{
    int code = ledger_find_stream(ledger, name, ret, NULL);
    if (code != -ENOENT)
        return code < 0 ? fail_set(fail, code, "%s", ledger->broken.text) : 0;
    code = ledger_do(ledger, LEDGER_ADD_STREAM, fail, TEXT(name));
    return code ? code : ledger_find_stream(ledger, name, ret, fail);
}

/* Whose it is, is said with each of its groups and its sampler, and written where it is not known to be so. */
static int own_stream(struct ledger *ledger, struct slice name, struct slice owner, int64_t *ret, struct fail *fail)
{
    int code = get_stream(ledger, name, ret, fail);
    if (code || (ledger->has_owner && slice_is(owner, ledger->stream_owner)))
        return code;
    code = ledger_do(ledger, LEDGER_OWN_STREAM, fail, NUMBER(*ret), TEXT(owner));
    ledger->has_owner = code == 0 && owner.len < sizeof(ledger->stream_owner);
    if (ledger->has_owner)
        snprintf(ledger->stream_owner, sizeof(ledger->stream_owner), "%.*s", SLICE_ARG(owner));
    return code;
}

static unsigned shown_in(const struct core_task *summary)
{
    return summary ? summary->shown_in : (1u << STAGE_COUNT) - 1;
}

static int add_group(struct ledger *ledger, const struct effect *effect, int64_t number, int64_t stream,
                     struct slice metadata, struct fail *fail)
{
    const struct core_task *summary = effect->summary;
    uint8_t packed[SUMMARY_BYTES_MAX];
    return ledger_add(ledger, GROUP, fail, NUMBER(number), TEXT(effect->group), NUMBER(stream), NUMBER(effect->samples),
                      NUMBER(effect->task_hash), NUMBER(effect->priority), NUMBER(effect->lease_ms),
                      NUMBER(effect->accepted_ms),
                      summary ? MAYBE_BLOB(ledger_summary_pack(summary, packed, sizeof(packed))) : NOTHING,
                      summary ? MAYBE_TEXT(summary->image) : NOTHING,
                      metadata.len ? NUMBER(metadata_note(shown_in(summary))) : NOTHING, TEXT(effect->task));
}

static int apply_group(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    int64_t stream;
    int code = own_stream(ledger, effect->stream, effect->owner, &stream, fail);
    if (code)
        return code;
    int64_t number = ledger->next_group++;
    struct cached_group *group = ledger_cache_get(ledger, effect->group);
    const struct slice metadata = task_member(effect->task, "metadata");
    code = add_group(ledger, effect, number, stream, metadata, fail);
    const bool is_new = effect->summary && effect->summary->is_new;
    if (code == 0 && !is_new)
        code = ledger_do(ledger, LEDGER_DROP_FORGOTTEN_GROUP, fail, TEXT(effect->group));
    if (code)
        return code;
    ledger_let_runs_go(ledger, group); /* of one whose id it takes */
    group->number = number;
    group->stream = stream;
    group->samples = (int64_t)effect->samples;
    group->has_init = false;
    ledger_cache_task(ledger, group, effect->task, metadata, shown_in(effect->summary));
    return 0;
}

static int apply_init(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    struct cached_group *group;
    int code = ledger_find_group(ledger, effect->group, &group, fail);
    if (code == 0)
        code = ledger_add(ledger, INIT, fail, NUMBER(group->number), NUMBER(effect->ms),
                          MAYBE_TEXT(effect->layer_digest), MAYBE_BLOB(effect->layer));
    if (code == 0)
        ledger_cache_init_layer(ledger, group, effect->layer_digest, effect->layer);
    return code;
}

static int apply_run(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    int64_t sample;
    struct cached_group *group;
    int code = ledger_find_sample(ledger, effect->rollout, &group, &sample, fail);
    if (code)
        return code;
    ledger_hold_run(ledger, group, sample, effect);
    return ledger_add(ledger, RUN, fail, NUMBER(number_of_rollout(group, sample)),
                      TEXT(slice_from_str(outcome_wire(effect->outcome))), MAYBE_TEXT(effect->detail),
                      NUMBER(effect->ms), MAYBE_TEXT(effect->engine), MAYBE_TEXT(effect->layer_digest),
                      effect->has_length ? NUMBER(effect->sampled_tokens) : NOTHING,
                      effect->has_length ? NUMBER(effect->truncated) : NOTHING, MAYBE_TEXT(effect->answer),
                      MAYBE_BLOB(effect->layer), MAYBE_BLOB(effect->record));
}

static int apply_again(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    int64_t sample = 0;
    struct cached_group *group;
    const bool is_init = effect->rollout.len == 0;
    int code = is_init ? ledger_find_group(ledger, effect->group, &group, fail)
                       : ledger_find_sample(ledger, effect->rollout, &group, &sample, fail);
    if (code)
        return code;
    const int64_t rollout = number_of_rollout(group, sample);
    const int64_t job = is_init ? failures_of_init(group->number) : failures_of_rollout(rollout);
    struct held_run *run = is_init ? NULL : ledger_held_run(group, sample);
    if (run)
        ledger_let_run_go(ledger, run);
    if (!is_init)
        code = ledger_do(ledger, LEDGER_RUN_AGAIN, fail, NUMBER(rollout));
    if (code == 0)
        code = ledger_do(ledger, LEDGER_DROP_FAILURES, fail, NUMBER(job));
    return code ? code : ledger_do(ledger, LEDGER_DROP_LEASE, fail, NUMBER(job));
}

static int apply_end(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_end *end = &effect->end;
    struct slice outcome = slice_from_str(outcome_wire(end->outcome));
    int64_t stream, sample;
    struct cached_group *group;
    int code = get_stream(ledger, end->stream, &stream, fail);
    if (code == 0)
        code = ledger_find_sample(ledger, end->rollout, &group, &sample, fail);
    if (code)
        return code;
    const int64_t rollout = number_of_rollout(group, sample);
    struct held_run *run = ledger_held_run(group, sample);
    if (run)
        run->end_seq = end->seq;
    if (effect->record.len)
        code = ledger_do(ledger, LEDGER_SET_RECORD, fail, NUMBER(rollout), TEXT(outcome), NUMBER(end->run_ms),
                         BLOB(effect->record));
    if (code == 0 && effect->verdict.len)
        code = ledger_do(ledger, LEDGER_SET_VERDICT, fail, NUMBER(rollout), BLOB(effect->verdict));
    if (code)
        return code;
    return ledger_do(ledger, LEDGER_ADD_END, fail, NUMBER(stream), NUMBER(end->seq), NUMBER(rollout), TEXT(end->group),
                     TEXT(end->task), NUMBER(end->attempt), TEXT(outcome), NUMBER(end->trainable),
                     end->has_reward ? REAL(end->reward) : NOTHING, MAYBE_TEXT(end->detail),
                     MAYBE_TEXT(end->init_layer), MAYBE_TEXT(end->engine), NUMBER(end->wait_ms), NUMBER(end->init_ms),
                     NUMBER(end->run_ms), NUMBER(end->eval_ms), NUMBER(end->ended_ms), NUMBER(end->clock_ms),
                     end->has_raw_reward ? REAL(end->raw_reward) : NOTHING, NUMBER(end->group_ended),
                     run ? NUMBER((effect->record.len ? effect->record : run->record).len + effect->verdict.len)
                         : NOTHING);
}

static int apply_ack(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    int64_t stream;
    int code = ledger_find_stream(ledger, effect->stream, &stream, fail);
    if (code == 0)
        code = ledger_do(ledger, LEDGER_ACK, fail, NUMBER(stream), NUMBER(effect->seq));
    ledger->sweep_due = true;
    return code;
}

static int apply_engine(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_engine *row = &effect->row;
    if (!effect->present)
        return ledger_do(ledger, LEDGER_DROP_ENGINE, fail, TEXT(effect->engine));
    int code = ledger_do(ledger, LEDGER_SET_ENGINE, fail, TEXT(effect->engine), NUMBER(row->runs_max),
                         NUMBER(row->draining), TEXT(row->version), TEXT(row->calls), NUMBER(row->paused_until_ms),
                         NUMBER(row->version_number), TEXT(row->credentials), TEXT(row->policy), TEXT(row->tokenizer),
                         TEXT(row->template));
    if (code == 0 && row->version_number > 0)
        code = ledger_do(ledger, LEDGER_RAISE, fail, TEXT(META_VERSIONS), NUMBER(row->version_number));
    return code;
}

static int apply_policy(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_policy *policy = &effect->policy;
    if (!effect->present)
        return ledger_do(ledger, LEDGER_DROP_POLICY, fail, TEXT(policy->name));
    return ledger_do(ledger, LEDGER_SET_POLICY, fail, TEXT(policy->name), TEXT(policy->tokenizer),
                     TEXT(policy->template));
}

/* "run:add-17/3" as the key of `troubles` and `leases`, and its stage. */
static int find_job(struct ledger *ledger, struct slice job, int64_t *ret, struct slice *ret_stage, struct fail *fail)
{
    const uint8_t *colon = job.len ? memchr(job.data, ':', job.len) : NULL;
    if (!colon)
        return fail_set(fail, -ENOENT, "no job can be called %.*s", SLICE_ARG(job));
    size_t len = (size_t)(colon - job.data);
    struct slice name = slice_of(colon + 1, job.len - len - 1);
    struct cached_group *group;
    int64_t sample = 0;
    *ret_stage = slice_of(job.data, len);
    bool is_init = slice_is(*ret_stage, stage_wire(STAGE_INIT));
    int code = is_init ? ledger_find_group(ledger, name, &group, fail)
                       : ledger_find_sample(ledger, name, &group, &sample, fail);
    if (code == 0)
        *ret = is_init ? failures_of_init(group->number) : failures_of_rollout(number_of_rollout(group, sample));
    return code;
}

static int apply_failures(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_failures *failures = &effect->failures;
    struct slice stage;
    int64_t job;
    int code = find_job(ledger, failures->job, &job, &stage, fail);
    return code ? code
                : ledger_do(ledger, LEDGER_SET_FAILURES, fail, NUMBER(job), TEXT(stage), NUMBER(failures->attempt),
                            NUMBER(failures->infras), NUMBER(failures->faults), NUMBER(failures->blames),
                            NUMBER(failures->deaths), TEXT(failures->history), NUMBER(failures->fenced_up_to),
                            NUMBER(failures->missing));
}

static int apply_lease(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_lease *lease = &effect->lease;
    struct slice stage;
    int64_t job;
    int code = find_job(ledger, lease->job, &job, &stage, fail);
    return code ? code
                : ledger_do(ledger, LEDGER_SET_LEASE, fail, NUMBER(job), TEXT(stage), NUMBER(lease->token),
                            TEXT(lease->worker), TEXT(lease->key));
}

static int apply_early_cancel(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const struct core_early_cancel *cancel = &effect->early_cancel;
    if (!effect->present)
        return ledger_do(ledger, LEDGER_DROP_EARLY_CANCEL, fail, TEXT(cancel->name), TEXT(cancel->owner));
    return ledger_do(ledger, LEDGER_ADD_EARLY_CANCEL, fail, TEXT(cancel->name), TEXT(cancel->owner),
                     NUMBER(cancel->clock_ms));
}

static int apply_of_sampler(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    const bool is_owned = effect->kind == PERSIST_SAMPLER && effect->present;
    int64_t stream;
    int code = is_owned ? own_stream(ledger, effect->stream, effect->sampler->owner, &stream, fail)
                        : get_stream(ledger, effect->stream, &stream, fail);
    if (code)
        return code;
    return effect->kind == PERSIST_SAMPLER   ? ledger_apply_sampler(ledger, effect, stream, fail)
           : effect->kind == PERSIST_SAMPLED ? ledger_apply_sampled(ledger, effect, stream, fail)
                                             : ledger_apply_batch(ledger, effect, stream, fail);
}

static int apply_epoch(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    return ledger_do(ledger, LEDGER_RAISE, fail, TEXT(META_EPOCH), NUMBER(effect->seq));
}

int ledger_apply(struct ledger *ledger, const struct effect *effect, struct fail *fail)
{
    static int (*const appliers[])(struct ledger *, const struct effect *, struct fail *) = {
        [PERSIST_GROUP] = apply_group,
        [PERSIST_INIT] = apply_init,
        [PERSIST_RUN] = apply_run,
        [PERSIST_END] = apply_end,
        [PERSIST_ACK] = apply_ack,
        [PERSIST_ENGINE] = apply_engine,
        [PERSIST_POLICY] = apply_policy,
        [PERSIST_FAILURES] = apply_failures,
        [PERSIST_EARLY_CANCEL] = apply_early_cancel,
        [PERSIST_LEASE] = apply_lease,
        [PERSIST_AGAIN] = apply_again,
        [PERSIST_SAMPLER] = apply_of_sampler,
        [PERSIST_SAMPLED] = apply_of_sampler,
        [PERSIST_BATCH] = apply_of_sampler,
        [PERSIST_EPOCH] = apply_epoch,
    };
    assert((size_t)effect->kind < sizeof(appliers) / sizeof(*appliers));
    return appliers[effect->kind](ledger, effect, fail);
}
