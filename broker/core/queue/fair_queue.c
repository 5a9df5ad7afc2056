#include "broker/core/queue/fair_queue.h"
#include "broker/core/state/state.h"

#define SEQUENCE_LAST (((int64_t)1 << SEQUENCE_BITS) - 1)

/* ---- one queue ----------------------------------------------------------------------- */

/* After the last number all begin anew. Clearing the low bits of every key keeps their order. */
static int64_t next_sequence(struct fair_queue *queue)
{
    if (queue->sequence == SEQUENCE_LAST) {
        queue->sequence = 0;
        for (size_t i = 0; i < queue->heap.count; i++)
            queue->heap.nodes[i]->key &= ~SEQUENCE_LAST;
    }
    return ++queue->sequence;
}

static void place(struct core *core, struct fair_queue *queue, struct fair_member *member, int64_t sequence)
{
    if (!heap_put(&queue->heap, &member->node, ((int64_t)member->leased << SEQUENCE_BITS) | sequence))
        core->failed = true;
}

static void join(struct core *core, struct fair_queue *queue, struct fair_member *member)
{
    if (member->queued++ == 0)
        place(core, queue, member, next_sequence(queue));
}

static void quit(struct fair_queue *queue, struct fair_member *member)
{
    if (--member->queued == 0)
        heap_remove(&queue->heap, &member->node);
}

/* It has had its turn. */
static void take_turn(struct core *core, struct fair_queue *queue, struct fair_member *member)
{
    member->leased++;
    if (member->queued)
        place(core, queue, member, next_sequence(queue));
}

static void give_back(struct core *core, struct fair_queue *queue, struct fair_member *member)
{
    member->leased--;
    if (member->queued)
        place(core, queue, member, member->node.key & SEQUENCE_LAST);
}

/* ---- both queues --------------------------------------------------------------------- */

/* Where a job's stream and client stand in its stage. */
struct standing {
    struct stream_queue *stream;
    struct client_queue *client;
    struct fair_queue *streams, *clients;
};

static struct standing standing_of(struct core *core, const struct job *job)
{
    struct stream *stream = job->group->stream;
    struct client_queue *client = &stream->owner->queues[job->stage];
    return (struct standing){&stream->queues[job->stage], client, &client->streams, &core->fair_queues[job->stage]};
}

void fair_queue_push(struct core *core, struct job *job, bool front)
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
    join(core, at.streams, &at.stream->member);
    join(core, at.clients, &at.client->member);
}

void fair_queue_remove(struct core *core, struct job *job)
{
    struct standing at = standing_of(core, job);
    unsigned priority = job->group->work->priority;
    list_remove(&job->link);
    if (list_is_empty(&at.stream->jobs[priority]))
        at.stream->levels &= ~(1u << priority);
    quit(at.streams, &at.stream->member);
    quit(at.clients, &at.client->member);
}

struct job *fair_queue_next(const struct core *core, unsigned stage)
{
    const struct heap_node *node = heap_peek(&core->fair_queues[stage].heap);
    if (!node)
        return NULL;
    const struct client_queue *client = container_of(node, const struct client_queue, member.node);
    node = heap_peek(&client->streams.heap);
    if (!node) /* memory is out */
        return NULL;
    const struct stream_queue *stream = container_of(node, const struct stream_queue, member.node);
    unsigned highest = 31 - (unsigned)__builtin_clz(stream->levels);
    return container_of(stream->jobs[highest].next, struct job, link);
}

void fair_queue_lease(struct core *core, const struct job *job)
{
    struct standing at = standing_of(core, job);
    take_turn(core, at.streams, &at.stream->member);
    take_turn(core, at.clients, &at.client->member);
}

void fair_queue_release(struct core *core, const struct job *job)
{
    struct standing at = standing_of(core, job);
    give_back(core, at.streams, &at.stream->member);
    give_back(core, at.clients, &at.client->member);
}
