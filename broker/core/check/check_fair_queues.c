/*
 * The invariants of core/queue/fair_queue.c, core/streams/owners.c, core/streams/quotas.c and core/streams/retention.c:
 * what each stream and client says it has queued, leased and in use is counted again.
 */
#include "broker/core/check/check_fair_queues.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/retention.h"

typedef const char *verdict; /* NULL, or what is broken */

/* ---- counted from the groups ----------------------------------------------------------- */

static void count_job(const struct job *job, enum stage stage, size_t *queued, size_t *leased)
{
    *queued += job->stage == stage && job->place == PLACE_QUEUED;
    *leased += job->stage == stage && job->place == PLACE_LEASED;
}

static void count_stream(const struct stream *stream, enum stage stage, size_t *queued, size_t *leased)
{
    for (const struct list *at = stream->live.next; at != &stream->live; at = at->next) {
        const struct group *group = container_of(at, const struct group, live);
        const struct group_work *work = group->work;
        count_job(&work->init, stage, queued, leased);
        for (uint32_t k = 0; work->rollouts && k < group->samples; k++)
            count_job(&work->rollouts[k].job, stage, queued, leased);
    }
}

/* ---- a stream's levels ----------------------------------------------------------------- */

static verdict check_level(const struct stream *stream, enum stage stage, unsigned priority, size_t *count)
{
    const struct job *job;
    const struct list *jobs = &stream->queues[stage].jobs[priority];
    if (list_is_empty(jobs))
        return "a priority is marked that has no jobs";
    LIST_EACH(job, jobs, link) {
        if (job->link.next->prev != &job->link || job->link.prev->next != &job->link)
            return "a priority's links are broken";
        if (job->place != PLACE_QUEUED || job->stage != stage || job->group->stream != stream ||
            job->group->work->priority != priority)
            return "a job is queued in another's place";
        *count += 1;
    }
    return NULL;
}

static verdict check_levels(const struct stream *stream, enum stage stage)
{
    const struct stream_queue *queue = &stream->queues[stage];
    size_t count = 0;
    for (unsigned priority = 0; priority < PRIORITIES; priority++) {
        verdict bad = queue->levels & 1u << priority ? check_level(stream, stage, priority, &count) : NULL;
        if (bad)
            return bad;
    }
    return count == queue->member.queued ? NULL : "a stream's queued jobs are not where they should be";
}

/* ---- queues ---------------------------------------------------------------------------- */

static verdict check_member(const struct fair_member *member, size_t queued, size_t leased)
{
    if (member->queued != queued || member->leased != leased)
        return "a member's jobs are counted wrong";
    if ((member->node.place != 0) != (queued > 0))
        return "a member is in its queue with nothing queued, or is not and has";
    if (queued && (size_t)(member->node.key >> SEQUENCE_BITS) != leased)
        return "a member stands in its queue as if it had more, or fewer, leases";
    return NULL;
}

static verdict check_client(const struct core *core, const struct client *client, enum stage stage)
{
    size_t queued = 0, leased = 0, members = 0;
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link) {
        size_t here_queued = 0, here_leased = 0;
        if (stream->owner != client)
            continue;
        count_stream(stream, stage, &here_queued, &here_leased);
        verdict bad = check_member(&stream->queues[stage].member, here_queued, here_leased);
        if (!bad)
            bad = check_levels(stream, stage);
        if (bad)
            return bad;
        queued += here_queued;
        leased += here_leased;
        members += here_queued > 0;
    }
    const struct client_queue *queue = &client->queues[stage];
    if (members != queue->streams.heap.count || !heap_is_sound(&queue->streams.heap))
        return "a client's queue is not of its streams with something queued";
    return check_member(&queue->member, queued, leased);
}

static verdict check_stage(const struct core *core, enum stage stage)
{
    size_t queued = 0, leased = 0, members = 0;
    const struct client *client;
    LIST_EACH(client, &core->clients, link) {
        verdict bad = check_client(core, client, stage);
        if (bad)
            return bad;
        queued += client->queues[stage].member.queued;
        leased += client->queues[stage].member.leased;
        members += client->queues[stage].member.queued > 0;
    }
    if (queued != core->queues[PLACE_QUEUED][stage].count || leased != core->leased[stage])
        return "clients have more, or fewer, jobs than there are";
    return members == core->fair_queues[stage].heap.count && heap_is_sound(&core->fair_queues[stage].heap)
               ? NULL
               : "a stage's queue is not of the clients with something queued";
}

/* ---- clients --------------------------------------------------------------------------- */

static size_t count_streams(const struct core *core, const struct client *client)
{
    size_t count = 0;
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link)
        count += stream->owner == client;
    return count;
}

static verdict check_owners(const struct core *core)
{
    size_t clients = 0, streams = 0;
    const struct client *client;
    LIST_EACH(client, &core->clients, link) {
        size_t own = count_streams(core, client);
        if (own != client->stream_count || client_find(core, client_name(client)) != client)
            return "a client's streams are counted wrong, or it cannot be found by its name";
        streams += own;
        clients++;
    }
    return streams == core->stream_count && clients == core->clients_by_name.count ? NULL : "a stream has no owner";
}

/* ---- quotas ---------------------------------------------------------------------------- */

static void count_usage(const struct stream *stream, uint64_t used[QUOTA_COUNT])
{
    for (const struct list *at = stream->live.next; at != &stream->live; at = at->next) {
        const struct group_work *work = container_of(at, const struct group, live)->work;
        used[QUOTA_ROLLOUTS] += work->live;
        used[QUOTA_TASK_BYTES] += work->task_bytes;
    }
    used[QUOTA_RESULTS] += stream->head + 1 - stream->first;
    used[QUOTA_RESULTS_BYTES] += stream->kept_bytes;
}

static verdict check_usage(const struct core *core, const struct client *client, uint64_t all[QUOTA_COUNT],
                           uint64_t holders[QUOTA_COUNT])
{
    uint64_t used[QUOTA_COUNT] = {0};
    const struct stream *stream;
    LIST_EACH(stream, &core->streams, link) {
        if (stream->owner != client)
            continue;
        count_usage(stream, used);
        if (retention_weigh(stream) != stream->kept_bytes)
            return "a stream's trajectories weigh something else than they do";
    }
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        if (used[quota] != client->used[quota])
            return "a client uses more, or less, of a quota than it is said to";
        all[quota] += used[quota];
        holders[quota] += used[quota] > 0;
    }
    return NULL;
}

static verdict check_quotas(const struct core *core)
{
    uint64_t all[QUOTA_COUNT] = {0}, holders[QUOTA_COUNT] = {0};
    const struct client *client;
    LIST_EACH(client, &core->clients, link) {
        verdict bad = check_usage(core, client, all, holders);
        if (bad)
            return bad;
    }
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++)
        if (core->usage[quota].used != all[quota] || core->usage[quota].holders != holders[quota])
            return "the clients together use something else than all";
    return NULL;
}

const char *check_fair_queues(const struct core *core)
{
    verdict bad = check_owners(core);
    for (enum stage stage = STAGE_INIT; !bad && stage < STAGE_COUNT; stage++)
        bad = check_stage(core, stage);
    return bad ? bad : check_quotas(core);
}
