#include "broker/core/sampler/sampling.h"
#include "broker/core/queue/jobs.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

uint64_t sampler_wanted(const struct sampler *sampler)
{
    const struct sampler_rule *rule = &sampler->row.rule;
    const uint64_t ready = sampler->counts[SAMPLED_READY];
    const uint64_t target = rule->groups * (rule->ahead + (sampler->is_asked ? 1 : 0));
    const uint64_t missing = target > ready ? target - ready : 0;
    const uint64_t kept = sampler->row.recent[SAMPLER_KEPT] + 1, all = sampler_recent(sampler) + 2;
    const uint64_t need = rule->over_sample ? (missing * rule->over_sample + 999) / 1000
                                            : (missing * all + kept - 1) / kept;
    const uint64_t room = rule->window > ready ? rule->window - ready : 0;
    return need < room ? need : room;
}

static void release(struct core *core, struct sampled *sampled)
{
    struct group_work *work = sampled->group->work;
    work->ends_ms = core->now_ms + (int64_t)work->total_ms; /* the time that it was held does not count */
    sampled->row.released_ms = (uint64_t)core_clock_ms(core);
    sampler_count(sampled->sampler, SAMPLER_ASKED, 1);
    sampled_move(core, sampled, SAMPLED_LIVE);
    job_queue(core, &work->init, false);
}

void sampler_release(struct core *core, struct sampler *sampler)
{
    const uint64_t wanted = sampler_wanted(sampler);
    while (sampler->counts[SAMPLED_LIVE] < wanted && sampler->counts[SAMPLED_HELD])
        release(core, container_of(sampler->groups[SAMPLED_HELD].next, struct sampled, link));
}

/* Only queued jobs, and those in lines, have a place by priority; they leave it, and get another one. */
static void set_priority(struct core *core, struct group *group, uint8_t priority)
{
    struct group_work *work = group->work;
    const uint8_t before = work->priority;
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        struct job *job = &work->rollouts[k].job;
        if (job->place != PLACE_QUEUED && job->place != PLACE_UNOFFERED)
            continue;
        work->priority = before;
        job_leave(core, job);
        work->priority = priority;
        job_queue(core, job, false);
    }
    work->priority = priority;
}

void sampled_rank(struct core *core, struct sampled *sampled)
{
    const bool is_low = sampled_seems_uniform(sampled);
    if (is_low == sampled->row.is_low)
        return;
    sampled->row.is_low = is_low;
    set_priority(core, sampled->group, is_low ? 0 : sampled->usual_priority);
}
