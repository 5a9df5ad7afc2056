#include "broker/core/state.h"

#define TURN_LAST (((int64_t)1 << TURN_BITS) - 1)

/* ---- a round ------------------------------------------------------------------------- */

/* After the last turn all begin anew. Clearing the low bits of every key keeps their order. */
static int64_t next_turn(struct round *round)
{
    if (round->turn == TURN_LAST) {
        round->turn = 0;
        for (size_t i = 0; i < round->heap.count; i++)
            round->heap.nodes[i]->key &= ~TURN_LAST;
    }
    return ++round->turn;
}

static void place(struct core *core, struct round *round, struct share *share, int64_t turn)
{
    if (!heap_put(&round->heap, &share->node, ((int64_t)share->leased << TURN_BITS) | turn))
        core->failed = true;
}

static void join(struct core *core, struct round *round, struct share *share)
{
    if (share->queued++ == 0)
        place(core, round, share, next_turn(round));
}

static void quit(struct round *round, struct share *share)
{
    if (--share->queued == 0)
        heap_remove(&round->heap, &share->node);
}

/* It has had its turn. */
static void take_turn(struct core *core, struct round *round, struct share *share)
{
    share->leased++;
    if (share->queued)
        place(core, round, share, next_turn(round));
}

static void give_back(struct core *core, struct round *round, struct share *share)
{
    share->leased--;
    if (share->queued)
        place(core, round, share, share->node.key & TURN_LAST);
}

/* ---- both rounds --------------------------------------------------------------------- */

/* Where a job's stream and client stand in its stage. */
struct standing {
    struct stream_share *stream;
    struct client_share *client;
    struct round *streams, *clients;
};

static struct standing standing_of(struct core *core, const struct job *job)
{
    struct stream *stream = job->group->stream;
    struct client_share *client = &stream->owner->shares[job->stage];
    return (struct standing){&stream->shares[job->stage], client, &client->streams,
                             &core->rounds[job->stage]};
}

void share_push(struct core *core, struct job *job, bool front)
{
    struct standing at = standing_of(core, job);
    unsigned priority = job->group->work->priority;
    struct list *jobs = &at.stream->jobs[priority];
    if (!(at.stream->levels & 1u << priority))
        list_init(jobs);
    at.stream->levels |= 1u << priority;
    if (front)
        list_push_front(jobs, &job->link);
    else
        list_push_back(jobs, &job->link);
    join(core, at.streams, &at.stream->share);
    join(core, at.clients, &at.client->share);
}

void share_remove(struct core *core, struct job *job)
{
    struct standing at = standing_of(core, job);
    unsigned priority = job->group->work->priority;
    list_remove(&job->link);
    if (list_is_empty(&at.stream->jobs[priority]))
        at.stream->levels &= ~(1u << priority);
    quit(at.streams, &at.stream->share);
    quit(at.clients, &at.client->share);
}

struct job *share_next(const struct core *core, unsigned stage)
{
    const struct heap_node *node = heap_peek(&core->rounds[stage].heap);
    if (!node)
        return NULL;
    const struct client_share *client = container_of(node, const struct client_share, share.node);
    node = heap_peek(&client->streams.heap);
    if (!node) /* memory is out */
        return NULL;
    const struct stream_share *stream = container_of(node, const struct stream_share, share.node);
    unsigned highest = 31 - (unsigned)__builtin_clz(stream->levels);
    return container_of(stream->jobs[highest].next, struct job, link);
}

void share_lease(struct core *core, const struct job *job)
{
    struct standing at = standing_of(core, job);
    take_turn(core, at.streams, &at.stream->share);
    take_turn(core, at.clients, &at.client->share);
}

void share_release(struct core *core, const struct job *job)
{
    struct standing at = standing_of(core, job);
    give_back(core, at.streams, &at.stream->share);
    give_back(core, at.clients, &at.client->share);
}
