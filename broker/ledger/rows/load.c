/* What a job.start and a trajectory are made of. */
#include "broker/ledger/inner.h"
#include "schemas/task/json/task_member.h"

#include <errno.h>
#include <stdio.h>

static int load_task(struct ledger *ledger, const struct effect *effect, struct cached_group **ret_group,
                     struct msg_job_start *ret, struct fail *fail)
{
    int code = ledger_find_group(ledger, effect->group, ret_group, fail);
    if (code)
        return code;
    ret->task = ledger_cache_task_for(*ret_group, effect->stage);
    if (ret->task.len)
        return 0;
    code = ledger_keep_group(ledger, *ret_group, effect->group, fail); /* given up meanwhile */
    ret->task = ledger_cache_task_for(*ret_group, effect->stage);
    return code;
}

static int load_init_layer(struct ledger *ledger, struct cached_group *group, struct msg_job_start *ret,
                           struct fail *fail)
{
    if (group->has_init) {
        ret->init_layer_digest = slice_from_str(group->digest);
        ret->init_layer = buffer_peek(&group->layer);
    } else {
        int code = ledger_ask(ledger, LEDGER_FIND_INIT, VALUES(NUMBER(group->number)), fail);
        if (code <= 0)
            return code ? code : fail_set(fail, -ENOENT, "group %s has no init yet", group->id);
        ret->init_layer_digest = ledger_slice(ledger, LEDGER_FIND_INIT, 0);
        ret->init_layer = ledger_slice(ledger, LEDGER_FIND_INIT, 1);
        ledger_cache_init_layer(ledger, group, ret->init_layer_digest, ret->init_layer);
    }
    ret->has_init_layer_digest = ret->init_layer_digest.len > 0;
    ret->has_init_layer = ret->init_layer.len > 0;
    return 0;
}

static int read_run(struct ledger *ledger, const struct effect *effect, int64_t rollout, struct msg_job_start *ret,
                    struct fail *fail)
{
    const enum ledger_statement run = effect->reads_record ? LEDGER_LOAD_RUN_RECORD : LEDGER_LOAD_RUN;
    int code = ledger_ask(ledger, run, VALUES(NUMBER(rollout)), fail);
    if (code <= 0)
        return code ? code : fail_set(fail, -ENOENT, "rollout %.*s has no run yet", SLICE_ARG(effect->rollout));
    ret->run_layer_digest = ledger_slice(ledger, run, 0);
    ret->answer = ledger_slice(ledger, run, 1);
    ret->run_layer = ledger_slice(ledger, run, 2);
    if (effect->reads_record)
        ret->record = ledger_slice(ledger, run, 5);
    ret->has_sampled_tokens = ret->has_truncated = !ledger_is_null(ledger, run, 3);
    ret->sampled_tokens = (uint64_t)ledger_number(ledger, run, 3);
    ret->truncated = ledger_number(ledger, run, 4) != 0;
    return 0;
}

static void take_run(const struct held_run *run, const struct effect *effect, struct msg_job_start *ret)
{
    ret->run_layer_digest = run->digest;
    ret->answer = run->answer;
    ret->run_layer = run->layer;
    if (effect->reads_record)
        ret->record = run->record;
    ret->has_sampled_tokens = ret->has_truncated = run->has_length;
    ret->sampled_tokens = run->has_length ? run->sampled_tokens : 0;
    ret->truncated = run->has_length && run->truncated;
}

/* What an evaluator gets of the run: the record, which may be large, only where it reads it. */
static int load_run(struct ledger *ledger, const struct effect *effect, struct cached_group *group,
                    struct msg_job_start *ret, struct fail *fail)
{
    const struct held_run *run = ledger_held_run(group, (int64_t)effect->sample);
    int code = 0;
    if (run && run->end_seq == 0)
        take_run(run, effect, ret);
    else
        code = read_run(ledger, effect, number_of_rollout(group, (int64_t)effect->sample), ret, fail);
    ret->has_record = ret->record.len > 0;
    ret->has_run_layer_digest = ret->run_layer_digest.len > 0;
    ret->has_answer = ret->answer.len > 0;
    ret->has_run_layer = ret->run_layer.len > 0;
    return code;
}

int ledger_load_job(struct ledger *ledger, const struct effect *effect, struct msg_job_start *ret, struct fail *fail)
{
    ledger_release(ledger);
    *ret = (struct msg_job_start){.job = effect->job,
                                  .token = effect->token,
                                  .stage = slice_from_str(stage_wire(effect->stage)),
                                  .group = effect->group,
                                  .sample = effect->sample,
                                  .attempt = effect->attempt,
                                  .has_task = true,
                                  .engine = effect->engine,
                                  .has_engine = effect->engine.len > 0};
    struct cached_group *group;
    int code = load_task(ledger, effect, &group, ret, fail);
    if (code == 0 && effect->stage != STAGE_INIT)
        code = load_init_layer(ledger, group, ret, fail);
    if (code == 0 && effect->stage == STAGE_EVAL)
        code = load_run(ledger, effect, group, ret, fail);
    return code;
}

/* The row of `ends` as a message; LOAD_END and LIST_ENDS begin with the same columns. */
static void read_end(struct ledger *ledger, enum ledger_statement end, struct msg_trajectory *ret)
{
    int64_t rollout = ledger_number(ledger, end, 0);
    ret->group = ledger_slice(ledger, end, 1);
    ret->task = ledger_slice(ledger, end, 2);
    ret->sample = (uint64_t)(rollout % ROLLOUTS_PER_GROUP);
    ret->attempt = (uint64_t)ledger_number(ledger, end, 3);
    ret->outcome = ledger_slice(ledger, end, 4);
    ret->trainable = ledger_number(ledger, end, 5) != 0;
    ret->has_reward = !ledger_is_null(ledger, end, 6);
    ret->reward = ledger_real(ledger, end, 6);
    ret->detail = ledger_slice(ledger, end, 7);
    ret->has_detail = ret->detail.len > 0;
    ret->init_layer = ledger_slice(ledger, end, 8);
    ret->has_init_layer = ret->init_layer.len > 0;
    ret->engine = ledger_slice(ledger, end, 9);
    ret->has_engine = ret->engine.len > 0;
    ret->wait_ms = (uint64_t)ledger_number(ledger, end, 10);
    ret->init_ms = (uint64_t)ledger_number(ledger, end, 11);
    ret->run_ms = (uint64_t)ledger_number(ledger, end, 12);
    ret->eval_ms = (uint64_t)ledger_number(ledger, end, 13);
    ret->ended_ms = (uint64_t)ledger_number(ledger, end, 14);
    snprintf(ledger->rollout, sizeof(ledger->rollout), "%.*s/%u", SLICE_ARG(ret->group), (unsigned)ret->sample);
    ret->rollout = slice_from_str(ledger->rollout);
}

/* What LOAD_END alone has: of its group, and the reward before it was shaped. */
static void read_rest(struct ledger *ledger, struct msg_trajectory *ret)
{
    const enum ledger_statement end = LEDGER_LOAD_END;
    ret->has_raw_reward = !ledger_is_null(ledger, end, 15);
    ret->raw_reward = ledger_real(ledger, end, 15);
    ret->has_group_ended = !ledger_is_null(ledger, end, 16);
    ret->group_ended = (uint64_t)ledger_number(ledger, end, 16);
    ret->has_group_size = !ledger_is_null(ledger, end, 17);
    ret->group_size = (uint64_t)ledger_number(ledger, end, 17);
}

/* From the cache where its group is there; else from the group's row, if there still is one. */
static int load_metadata(struct ledger *ledger, struct msg_trajectory *ret, struct fail *fail)
{
    const enum ledger_statement row = LEDGER_LOAD_METADATA;
    const int64_t number = ledger_number(ledger, LEDGER_LOAD_END, 0) / ROLLOUTS_PER_GROUP;
    const struct cached_group *group = ledger_cache_peek(ledger, ret->group);
    int code = 0;
    if (group && group->number == number && group->task.len) {
        ret->metadata = group->metadata;
    } else {
        code = ledger_ask(ledger, row, VALUES(NUMBER(number)), fail);
        if (code > 0)
            ret->metadata = task_member(ledger_slice(ledger, row, 0), "metadata");
    }
    ret->has_metadata = ret->metadata.len > 0;
    return code < 0 ? code : 0;
}

int ledger_load_trajectory(struct ledger *ledger, struct slice stream, uint64_t seq, struct msg_trajectory *ret,
                           struct fail *fail)
{
    ledger_release(ledger);
    *ret = (struct msg_trajectory){.stream = stream, .seq = seq};
    int64_t number;
    int code = ledger_find_stream(ledger, stream, &number, fail);
    if (code == 0)
        code = ledger_ask(ledger, LEDGER_LOAD_END, VALUES(NUMBER(number), NUMBER(seq)), fail);
    if (code < 0)
        return code;
    if (code == 0)
        return fail_set(fail, -ENOENT, "the ledger has no number %llu of stream %.*s", (unsigned long long)seq,
                        SLICE_ARG(stream));
    read_end(ledger, LEDGER_LOAD_END, ret);
    read_rest(ledger, ret);
    code = load_metadata(ledger, ret, fail);
    if (code == 0)
        code = ledger_ask(ledger, LEDGER_LOAD_RECORD, VALUES(NUMBER(ledger_number(ledger, LEDGER_LOAD_END, 0))), fail);
    if (code > 0) {
        ret->record = ledger_slice(ledger, LEDGER_LOAD_RECORD, 0);
        ret->verdict = ledger_slice(ledger, LEDGER_LOAD_RECORD, 1);
    }
    ret->has_record = ret->record.len > 0;
    ret->has_verdict = ret->verdict.len > 0;
    return code < 0 ? code : 0;
}

/* The effect as read_end and read_rest would read it from the row that was made of it. */
static void describe_end(const struct core_end *end, struct msg_trajectory *ret)
{
    *ret = (struct msg_trajectory){.stream = end->stream,
                                   .seq = end->seq,
                                   .rollout = end->rollout,
                                   .group = end->group,
                                   .task = end->task,
                                   .sample = end->sample,
                                   .attempt = end->attempt,
                                   .outcome = slice_from_str(outcome_wire(end->outcome)),
                                   .trainable = end->trainable,
                                   .has_reward = end->has_reward,
                                   .reward = end->reward + 0.0, /* SQLite knows no negative zero */
                                   .has_raw_reward = end->has_raw_reward,
                                   .raw_reward = end->raw_reward + 0.0,
                                   .has_detail = end->detail.len > 0,
                                   .detail = end->detail,
                                   .has_init_layer = end->init_layer.len > 0,
                                   .init_layer = end->init_layer,
                                   .has_engine = end->engine.len > 0,
                                   .engine = end->engine,
                                   .wait_ms = end->wait_ms,
                                   .init_ms = end->init_ms,
                                   .run_ms = end->run_ms,
                                   .eval_ms = end->eval_ms,
                                   .ended_ms = end->ended_ms,
                                   .has_group_ended = true,
                                   .group_ended = end->group_ended};
}

int ledger_load_published(struct ledger *ledger, const struct effect *effect, struct msg_trajectory *ret,
                          struct fail *fail)
{
    ledger_release(ledger);
    const struct core_end *end = &effect->end;
    const struct cached_group *group = ledger_cache_peek(ledger, end->group);
    struct held_run *run = group ? ledger_held_run(group, (int64_t)end->sample) : NULL;
    if (!run || run->end_seq != end->seq || group->task.len == 0)
        return ledger_load_trajectory(ledger, end->stream, end->seq, ret, fail);
    describe_end(end, ret);
    ret->has_group_size = true;
    ret->group_size = (uint64_t)group->samples;
    ret->metadata = group->metadata;
    ret->has_metadata = ret->metadata.len > 0;
    ret->record = effect->record.len ? effect->record : run->record;
    ret->has_record = ret->record.len > 0;
    ret->verdict = effect->verdict;
    ret->has_verdict = ret->verdict.len > 0;
    ledger->published = run;
    return 0;
}

int ledger_list(struct ledger *ledger, struct slice stream, const struct core_list *list, ledger_row *take, void *arg,
                struct fail *fail)
{
    enum ledger_statement rows = LEDGER_LIST_ENDS;
    int64_t number;
    ledger_release(ledger);
    int code = ledger_find_stream(ledger, stream, &number, fail);
    if (code)
        return code == -ENOENT ? 0 : code;
    code = ledger_ask(ledger, rows,
                      VALUES(NUMBER(number), NUMBER(list->from), NUMBER(list->to), NUMBER(list->until_clock_ms),
                             MAYBE_TEXT(list->group), MAYBE_TEXT(list->outcome), MAYBE_TEXT(list->engine),
                             MAYBE_TEXT(list->image)),
                      fail);
    for (; code > 0; code = ledger_next(ledger, rows, fail)) {
        struct msg_trajectory row = {.stream = stream};
        read_end(ledger, rows, &row);
        row.seq = (uint64_t)ledger_number(ledger, rows, 15);
        take(arg, &row, ledger_slice(ledger, rows, 16));
    }
    ledger_reset(ledger, rows);
    return code;
}
