#include "broker/core/sampler/sampling.h"
#include "broker/core/queue/groups.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <jansson.h>
#include <stdlib.h>

static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }

/* ---- what a batch's answer says -------------------------------------------------------------- */

static json_t *list_groups(const struct core *core, const struct sampler *sampler)
{
    json_t *array = json_array();
    const struct sampled *sampled;
    LIST_EACH(sampled, &sampler->groups[SAMPLED_CURRENT], link) {
        json_t *group = json_object();
        json_object_set_new(group, "group", json_stringn(sampled->id, sampled->id_len));
        json_object_set_new(group, "number", number(sampled->row.number));
        json_object_set_new(group, "samples", number(sampled->row.samples));
        json_object_set_new(group, "scored", number(sampled->row.scored));
        json_object_set_new(group, "mean", json_real(sampled_mean(sampled)));
        json_object_set_new(group, "age", number(sampled_age(core, sampled)));
        json_object_set_new(group, "tokens", number(sampled->row.tokens));
        json_array_append_new(array, group);
    }
    return array;
}

static json_t *list_dropped(const struct sampler *sampler)
{
    json_t *array = json_array();
    const struct sampled *sampled;
    LIST_EACH(sampled, &sampler->groups[SAMPLED_DROPPED], link) {
        json_t *group = json_object();
        json_object_set_new(group, "group", json_stringn(sampled->id, sampled->id_len));
        json_object_set_new(group, "number", number(sampled->row.number));
        json_object_set_new(group, "verdict",
                            json_string(sampler_count_word((enum sampler_count)sampled->row.verdict)));
        json_object_set_new(group, "scored", number(sampled->row.scored));
        json_object_set_new(group, "mean", json_real(sampled_mean(sampled)));
        json_array_append_new(array, group);
    }
    return array;
}

static char *print(const struct core *core, const struct sampler *sampler)
{
    json_t *answer = json_object();
    json_object_set_new(answer, "stream", json_stringn(sampler->stream->name, sampler->stream->name_len));
    json_object_set_new(answer, "batch", number(sampler->row.batch));
    json_object_set_new(answer, "version", number(core->versions));
    json_object_set_new(answer, "groups", list_groups(core, sampler));
    json_object_set_new(answer, "account", sampler_account(sampler->row.since));
    json_object_set_new(answer, "acceptance", json_real((double)sampler_acceptance(sampler) / 1000));
    json_object_set_new(answer, "dropped", list_dropped(sampler));
    json_object_set_new(answer, "dropped_unlisted", number(sampler->row.unlisted));
    char *text = json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(SAMPLER_DIGITS));
    json_decref(answer);
    return text;
}

/* ---- making one -------------------------------------------------------------------------------- */

/* The batch before is done with, and what was dropped meanwhile is told now. */
static void remove_all(struct core *core, struct sampler *sampler, enum sampled_state state)
{
    struct list *head = &sampler->groups[state];
    while (!list_is_empty(head))
        sampled_remove(core, container_of(head->next, struct sampled, link));
}

static void take(struct core *core, struct sampler *sampler)
{
    for (uint64_t i = 0; i < sampler->row.rule.groups; i++) {
        struct sampled *sampled = container_of(sampler->groups[SAMPLED_READY].next, struct sampled, link);
        sampler_count(sampler, SAMPLER_TOKENS_KEPT, sampled->row.tokens);
        sampled_move(core, sampled, SAMPLED_CURRENT);
    }
    sampler_count(sampler, SAMPLER_KEPT, sampler->row.rule.groups);
    const uint64_t live = sampler->counts[SAMPLED_LIVE], surplus = live + sampler->counts[SAMPLED_READY];
    sampler_count(sampler, SAMPLER_SURPLUS, surplus);
    sampler_count(sampler, SAMPLER_CARRIED, sampler->row.rule.cancels_surplus ? surplus - live : surplus);
}

/* They get their verdicts in the next round, and count for the next batch. */
static void cancel_surplus(struct core *core, struct sampler *sampler)
{
    static const struct ending cancelled = {.outcome = OUTCOME_CANCELLED};
    struct sampled *sampled;
    LIST_EACH(sampled, &sampler->groups[SAMPLED_LIVE], link)
        group_end(core, sampled->group, &cancelled);
}

bool sampler_make_batch(struct core *core, struct sampler *sampler)
{
    if (!sampler->is_asked || sampler->row.is_closing || sampler->counts[SAMPLED_READY] < sampler->row.rule.groups)
        return false;
    sampler->row.batched += sampler->counts[SAMPLED_CURRENT];
    remove_all(core, sampler, SAMPLED_CURRENT);
    take(core, sampler);
    sampler->row.batch++;
    sampler->is_asked = sampler->is_told = false;
    free(sampler->answer);
    sampler->answer = print(core, sampler);
    core->failed |= !sampler->answer;
    remove_all(core, sampler, SAMPLED_DROPPED);
    memset(sampler->row.since, 0, sizeof(sampler->row.since));
    sampler->row.unlisted = 0;
    sampler->is_changed = true;
    if (sampler->answer)
        sampler_persist_answer(core, sampler);
    if (sampler->row.rule.cancels_surplus)
        cancel_surplus(core, sampler);
    return true;
}

void sampler_send_batch(struct core *core, struct sampler *sampler, struct slice client, uint64_t tag)
{
    struct msg_sampler_batch batch = {.tag = tag,
                                      .stream = stream_name(sampler->stream),
                                      .batch = sampler->row.batch,
                                      .json = slice_from_str(sampler->answer)};
    sampler->is_told = true;
    if (sampler->answer)
        send_client(core, client, MSG_sampler_batch, &batch);
}
