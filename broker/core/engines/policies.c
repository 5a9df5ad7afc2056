/*
 * Policies by name. The engines of one policy serve one tokenizer and one chat template, so that what its groups
 * are made of can be compared and trained on together. A policy is known while an engine or a live group is of it.
 *
 * What an engine serves run workers tell (engine.load, job.result), as two digests: its identity. The first one
 * told is the policy's; an engine that tells another gets no runs, and those that are there begin again elsewhere.
 * A policy takes another identity once nothing holds it to the one it has: no other engine of it serves that, and no
 * live group of it has a run that was recorded with it (such a group is bound). So a bound group's identity is its
 * policy's.
 *
 * A result that was sampled under another identity is never recorded, whatever engines said of themselves before.
 */
#include "broker/core/engines/policies.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/identity.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <stdlib.h>

enum { POLICIES_MAX = 256 };

/* ---- life -------------------------------------------------------------------------------- */

bool policies_have_room(const struct core *core) { return core->policy_count < POLICIES_MAX; }

struct policy *policy_intern(struct core *core, struct slice name)
{
    struct policy *policy = policy_find(core, name);
    if (policy)
        return policy;
    name = policy_name(name);
    policy = core_alloc(core, 1, sizeof(*policy) + name.len + 1);
    if (!policy)
        return NULL;
    memcpy(policy->name, name.data, name.len);
    list_push_back(&core->policies, &policy->link);
    core->policy_count++;
    return policy;
}

static void persist(struct core *core, const struct policy *policy, bool present)
{
    if (core->restoring)
        return;
    struct slice name = effect_copy(core, slice_from_str(policy->name));
    struct slice tokenizer = effect_copy(core, slice_from_str(policy->identity.tokenizer));
    struct slice template = effect_copy(core, slice_from_str(policy->identity.template));
    struct effect *effect = effect_push(core, PERSIST_POLICY);
    effect->present = present;
    effect->policy = (struct core_policy){name, tokenizer, template};
}

void policy_forget_unused(struct core *core, struct policy *policy)
{
    if (policy->engines || policy->groups || core->restoring)
        return;
    if (identity_is_known(&policy->identity))
        persist(core, policy, false);
    list_remove(&policy->link);
    core->policy_count--;
    free(policy);
}

void engine_set_policy(struct core *core, struct engine *engine, struct policy *policy)
{
    struct policy *old = engine->policy;
    if (policy)
        policy->engines++;
    engine->policy = policy;
    engine->is_other = false;
    if (!old)
        return;
    old->engines--;
    policy_forget_unused(core, old);
}

void policy_add_group(struct policy *policy, struct group_work *work)
{
    work->policy = policy;
    policy->groups++;
}

void policy_add_judged(struct policy *policy, struct group_work *work)
{
    work->judging->policy = policy;
    policy->groups++;
}

static void drop_group(struct core *core, struct policy *policy)
{
    policy->groups--;
    policy_forget_unused(core, policy);
}

void policy_take_group(struct core *core, struct group_work *work)
{
    struct policy *policy = work->policy, *judges = work->judging ? work->judging->policy : NULL;
    work->policy = NULL;
    if (judges)
        work->judging->policy = NULL;
    if (policy)
        policy->bound -= work->is_bound;
    if (policy)
        drop_group(core, policy);
    if (judges)
        drop_group(core, judges);
}

static void bind(struct group_work *work)
{
    work->policy->bound += !work->is_bound;
    work->is_bound = true;
}

/* What has ended, or has left a run, may have been recorded: of some there is no row any more. */
void policy_restore_group(struct group_work *work)
{
    const struct group *group = work->init.group;
    if (work->policy && identity_is_known(&work->policy->identity))
        for (uint32_t k = 0; work->rollouts && k < group->samples; k++)
            if (work->rollouts[k].ended || work->rollouts[k].job.stage == STAGE_EVAL)
                bind(work);
}

void policies_restored(struct core *core)
{
    struct list *at = core->policies.next, *next;
    for (; at != &core->policies; at = next) {
        next = at->next;
        policy_forget_unused(core, container_of(at, struct policy, link));
    }
}

/* ---- engines ----------------------------------------------------------------------------- */

static void judge(struct core *core, struct engine *engine)
{
    bool was_other = engine->is_other;
    const struct policy *policy = engine->policy;
    engine->is_other = identity_is_known(&policy->identity) && identity_is_known(&engine->identity) &&
                       !identity_is_same(&policy->identity, &engine->identity);
    if (engine->is_other && !was_other)
        engine_note(core, engine, ENGINE_DIFFERS);
    else if (was_other && !engine->is_other)
        engine_note(core, engine, ENGINE_READY);
}

/* Whether nothing holds the policy to the identity that it has; `engine` serves another. */
static bool is_free(const struct core *core, const struct policy *policy, const struct engine *engine)
{
    const struct engine *other;
    if (!identity_is_known(&policy->identity))
        return true;
    LIST_EACH(other, &core->engines, link)
        if (other != engine && other->policy == policy && identity_is_same(&other->identity, &policy->identity))
            return false;
    return policy->bound == 0;
}

static void set_identity(struct core *core, struct policy *policy, const struct identity *identity)
{
    struct engine *engine;
    policy->identity = *identity;
    persist(core, policy, true);
    LIST_EACH(engine, &core->engines, link)
        if (engine->policy == policy)
            judge(core, engine);
}

void engine_judge(struct core *core, struct engine *engine)
{
    struct policy *policy = engine->policy;
    if (!policy || !identity_is_known(&engine->identity))
        return;
    if (!core->restoring && !identity_is_same(&engine->identity, &policy->identity) && is_free(core, policy, engine))
        set_identity(core, policy, &engine->identity);
    judge(core, engine);
}

void engine_identify(struct core *core, struct engine *engine, struct slice tokenizer, struct slice template)
{
    struct identity identity = identity_of(tokenizer, template);
    if (!engine->policy || !identity_is_known(&identity))
        return;
    bool is_new = !identity_is_same(&identity, &engine->identity), was_unprobed = engine_is_unprobed(core, engine);
    engine->identity = identity;
    if (is_new)
        engine_persist(core, engine);
    engine_judge(core, engine);
    if (was_unprobed && !engine->is_other)
        engine_note(core, engine, ENGINE_READY);
}

/* ---- results ------------------------------------------------------------------------------- */

bool policy_admits(struct core *core, struct job *job, const struct msg_job_result *in)
{
    struct group_work *work = job->group->work;
    struct engine *engine = job_rollout(job)->engine;
    struct identity identity = identity_of(in->tokenizer_digest, in->template_digest);
    if (!work->policy || !identity_is_known(&identity)) /* no engine, or a worker that does not tell */
        return true;
    if (engine && engine->policy == work->policy && !identity_is_known(&engine->identity))
        engine_identify(core, engine, in->tokenizer_digest, in->template_digest);
    if (!identity_is_known(&work->policy->identity))
        set_identity(core, work->policy, &identity);
    if (!identity_is_same(&identity, &work->policy->identity))
        return false;
    bind(work);
    return true;
}

/* ---- what must hold ------------------------------------------------------------------------ */

struct census {
    uint64_t engines, groups, bound;
};

static struct census count(const struct core *core, const struct policy *policy)
{
    struct census census = {0};
    const struct engine *engine;
    size_t at = 0;
    LIST_EACH(engine, &core->engines, link)
        census.engines += engine->policy == policy;
    for (const struct group *group; (group = table_next(&core->groups, &at));) {
        const struct group_work *work = group->work;
        const bool is_sampled = work && work->policy == policy;
        census.groups += is_sampled + (work && work->judging && work->judging->policy == policy);
        census.bound += is_sampled && work->is_bound;
    }
    return census;
}

static const char *check_runs(const struct core *core)
{
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link)
        for (const struct list *at = worker->jobs.jobs.next; at != &worker->jobs.jobs; at = at->next) {
            struct job *job = container_of(at, struct job, link);
            const struct engine *engine = job_engine(job);
            if (engine && engine->is_other && engine->policy == job_policy(job))
                return "a rollout is on an engine that serves another tokenizer or template than "
                       "its group's";
        }
    return NULL;
}

const char *policies_check(const struct core *core)
{
    const struct policy *policy;
    const struct engine *engine;
    size_t policies = 0;
    LIST_EACH(policy, &core->policies, link) {
        struct census census = count(core, policy);
        policies++;
        if (census.engines != policy->engines || census.groups != policy->groups || census.bound != policy->bound)
            return "a policy's engines or groups are counted wrong";
        if (!census.engines && !census.groups)
            return "a policy is kept for nothing";
        if (census.bound && !identity_is_known(&policy->identity))
            return "a group is bound to nothing";
    }
    LIST_EACH(engine, &core->engines, link) {
        if (engine->registered != (engine->policy != NULL))
            return "a registered engine has no policy, or another one has";
        if (engine->is_other &&
            (!identity_is_known(&engine->identity) || identity_is_same(&engine->identity, &engine->policy->identity)))
            return "an engine counts as another that serves what its policy does";
        if (!engine->is_other && engine->policy && identity_is_known(&engine->identity) &&
            !identity_is_same(&engine->identity, &engine->policy->identity))
            return "an engine gets runs that serves another tokenizer or template than its policy";
    }
    return policies == core->policy_count ? check_runs(core) : "the policies are counted wrong";
}
