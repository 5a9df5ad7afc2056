/*
 * The invariants of core/needs: what live groups need, what workers offer, which meets which, and who waits, counted
 * again from the groups and the workers.
 */
#include "broker/core/check/check_needs.h"
#include "broker/core/needs/needs.h"
#include "broker/core/needs/offers.h"
#include "broker/core/queue/free_workers.h"
#include "broker/core/state/state.h"

typedef const char *verdict; /* NULL, or what is broken */

/* ---- what is offered ---------------------------------------------------------------------- */

static verdict check_worker(const struct core *core, const struct worker *worker, const struct offers *offers,
                            uint64_t *slots)
{
    const bool may_take = worker_may_take(core, worker);
    if ((worker->offering.place != 0) != may_take)
        return "a worker that offers something is among the free and may take nothing, or is not and may";
    if (may_take && offers->free.nodes[worker->offering.place - 1] != &worker->offering)
        return "a worker is among the free of other offers than its own";
    if (worker->free_offered != (may_take ? worker->slots - worker->jobs.count : 0))
        return "a worker's free slots are counted wrong in its offers";
    *slots += worker->free_offered;
    return NULL;
}

static verdict check_set(const struct core *core, enum stage stage, const struct offers *offers)
{
    uint64_t workers = 0, slots = 0;
    const struct worker *worker;
    LIST_EACH(worker, &core->workers, link) {
        if (worker->offers != offers)
            continue;
        verdict bad = worker->stage == stage ? check_worker(core, worker, offers, &slots)
                                             : "a worker has the offers of another stage";
        if (bad)
            return bad;
        workers++;
    }
    if (!workers || workers != offers->workers || slots != offers->free_slots || !heap_is_sound(&offers->free))
        return "offers are kept for nobody, or their workers or free slots are counted wrong";
    return core->offers_taken[offers->number / 8] & 1u << offers->number % 8 ? NULL : "offers have no number";
}

/* ---- what is needed -------------------------------------------------------------------------- */

struct tally {
    uint64_t groups, queued;
    size_t waiting;
};

static void count_group(const struct core *core, const struct group *group, const struct need *need,
                        struct tally *tally)
{
    const struct group_work *work = group->work;
    const uint16_t number = need->stage == STAGE_RUN ? work->run_need : work->eval_need;
    if (!number || core->needs[number] != need)
        return;
    tally->groups++;
    for (uint32_t k = 0; work->rollouts && k < group->samples; k++) {
        const struct job *job = &work->rollouts[k].job;
        tally->queued += job->stage == need->stage && job->place == PLACE_QUEUED;
        tally->waiting += job->stage == need->stage && job->place == PLACE_UNOFFERED;
    }
}

static verdict check_line(const struct need *need, const struct need_line *line, size_t *waiting)
{
    const size_t before = *waiting;
    for (unsigned priority = 0; priority < PRIORITIES; priority++) {
        const struct job *job;
        if (!(line->levels & 1u << priority))
            continue;
        LIST_EACH(job, &line->jobs[priority], link) {
            if (job->place != PLACE_UNOFFERED || job->group->stream != line->stream ||
                job->group->work->priority != priority)
                return "a job waits in another's line";
            ++*waiting;
        }
    }
    return *waiting > before && line->need == need ? NULL : "a line is kept for nobody";
}

static verdict check_client(const struct need *need, const struct need_client *client, size_t *waiting)
{
    const struct need_line *line;
    LIST_EACH(line, &client->lines, link) {
        verdict bad = line->client == client && line->stream->owner == client->client ? check_line(need, line, waiting)
                                                                                      : "a line is another client's";
        if (bad)
            return bad;
    }
    return list_is_empty(&client->lines) ? "a client waits for a need with nothing" : NULL;
}

static verdict check_lines(const struct need *need, size_t *waiting)
{
    const struct need_client *client;
    LIST_EACH(client, &need->clients, link) {
        verdict bad = check_client(need, client, waiting);
        if (bad)
            return bad;
    }
    return NULL;
}

static bool is_met_by(const struct need *need, const struct offers *offers)
{
    return need->met[offers->number / 8] & 1u << offers->number % 8;
}

static verdict check_need(const struct core *core, const struct need *need)
{
    struct tally tally = {0};
    size_t at = 0, in_lines = 0;
    for (const struct group *group; (group = table_next(&core->groups, &at));)
        if (group->work)
            count_group(core, group, need, &tally);
    if (!tally.groups || tally.groups != need->groups)
        return "a need is kept for nobody, or its groups are counted wrong";
    if (tally.queued != need->queued || tally.waiting != need->waiting)
        return "a need's jobs are counted wrong";
    verdict bad = check_lines(need, &in_lines);
    if (bad)
        return bad;
    if (in_lines != need->waiting || list_is_empty(&need->link) != (need->waiting == 0))
        return "a job that waits for a need is in no line of it, or the need is not among those waited for";
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[need->stage], link)
        if (is_met_by(need, offers) != names_are_among(need_names(need), offers_names(offers)))
            return "a need is met by offers that lack something, or is not and they lack nothing";
    return need->waiting && need_free_slots(core, need) > need->queued
               ? "a job waits for a worker that offers what it needs, and there is one"
               : NULL;
}

const char *check_needs(const struct core *core)
{
    for (enum stage stage = STAGE_INIT; stage < STAGE_COUNT; stage++) {
        const struct offers *offers;
        LIST_EACH(offers, &core->offers[stage], link) {
            verdict bad = check_set(core, stage, offers);
            if (bad)
                return bad;
        }
    }
    for (unsigned number = 1; number <= NEEDS_MAX; number++) {
        verdict bad = core->needs[number] ? check_need(core, core->needs[number]) : NULL;
        if (bad)
            return bad;
    }
    return NULL;
}
