#include "broker/core/sampler/sampling.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

#include <jansson.h>

static json_t *number(uint64_t value) { return json_integer((json_int_t)value); }

json_t *sampler_account(const uint64_t counts[SAMPLER_COUNTS])
{
    json_t *account = json_object();
    uint64_t finished = 0;
    for (unsigned i = 0; i < SAMPLER_VERDICTS; i++)
        finished += counts[i];
    json_object_set_new(account, "finished", number(finished));
    for (unsigned i = 0; i < SAMPLER_COUNTS; i++)
        json_object_set_new(account, sampler_count_word((enum sampler_count)i), number(counts[i]));
    return account;
}

/* As sampler.open would say it. */
static json_t *describe_rule(const struct sampler_rule *rule)
{
    json_t *object = json_object();
    json_object_set_new(object, "groups", number(rule->groups));
    json_object_set_new(object, "filter", json_string(rule->keeps_uniform ? "none" : "mixed"));
    if (rule->has_staleness)
        json_object_set_new(object, "staleness", number(rule->staleness));
    json_object_set_new(object, "window", number(rule->window));
    json_object_set_new(object, "ahead", number(rule->ahead));
    if (rule->over_sample)
        json_object_set_new(object, "over_sample", number(rule->over_sample));
    json_object_set_new(object, "early", number(rule->early));
    json_object_set_new(object, "surplus", json_string(rule->cancels_surplus ? "cancel" : "carry"));
    if (rule->has_replace_max)
        json_object_set_new(object, "replace_max", number(rule->replace_max));
    return object;
}

json_t *sampler_describe(const struct core *core, const struct sampler *sampler)
{
    char why[SAMPLER_WHY_MAX + 1];
    json_t *object = json_object();
    sampler_why(core, sampler, why);
    json_object_set_new(object, "stream", json_stringn(sampler->stream->name, sampler->stream->name_len));
    json_object_set_new(object, "trainer", json_string(sampler->trainer));
    json_object_set_new(object, "rule", describe_rule(&sampler->row.rule));
    json_object_set_new(object, "batch", number(sampler->row.batch));
    json_object_set_new(object, "submitted", number(sampler->row.submitted));
    json_object_set_new(object, "held", number(sampler->counts[SAMPLED_HELD]));
    json_object_set_new(object, "live", number(sampler->counts[SAMPLED_LIVE]));
    json_object_set_new(object, "ready", number(sampler->counts[SAMPLED_READY]));
    json_object_set_new(object, "acceptance", json_real((double)sampler_acceptance(sampler) / 1000));
    json_object_set_new(object, "closing", json_boolean(sampler->row.is_closing));
    json_object_set_new(object, "account", sampler_account(sampler->row.since));
    json_object_set_new(object, "total", sampler_account(sampler->row.total));
    json_object_set_new(object, "wanted", number(sampler_wanted(sampler)));
    json_object_set_new(object, "told", json_boolean(sampler->is_told));
    json_object_set_new(object, "why", json_string(why));
    return object;
}
