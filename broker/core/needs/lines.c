#include "broker/core/needs/lines.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* ---- lines and clients come and go with what waits ----------------------------------------- */

static struct need_line *find_line(const struct need *need, const struct stream *stream)
{
    struct need_line *line;
    LIST_EACH(line, &stream->lines, here)
        if (line->need == need)
            return line;
    return NULL;
}

static struct need_client *get_client(struct core *core, struct need *need, struct client *owner)
{
    struct need_client *client;
    LIST_EACH(client, &need->clients, link)
        if (client->client == owner)
            return client;
    client = core_alloc(core, 1, sizeof(*client));
    if (!client)
        return NULL;
    client->client = owner;
    list_init(&client->lines);
    list_push_back(&need->clients, &client->link);
    return client;
}

static void drop_client(struct need_client *client)
{
    if (!list_is_empty(&client->lines))
        return;
    list_remove(&client->link);
    free(client);
}

static struct need_line *get_line(struct core *core, struct need *need, struct stream *stream)
{
    struct need_line *line = find_line(need, stream);
    struct need_client *client = line ? NULL : get_client(core, need, stream->owner);
    if (!client)
        return line;
    line = core_alloc(core, 1, sizeof(*line) + PRIORITIES * sizeof(line->jobs[0]));
    if (!line) {
        drop_client(client);
        return NULL;
    }
    line->need = need;
    line->stream = stream;
    line->client = client;
    list_push_back(&client->lines, &line->link);
    list_push_back(&stream->lines, &line->here);
    return line;
}

static void drop_line(struct need_line *line)
{
    list_remove(&line->link);
    list_remove(&line->here);
    drop_client(line->client);
    free(line);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Of one stream and priority: by their groups' order and their own. */
static bool came_before(const struct job *a, const struct job *b)
{
    const uint64_t first = a->group->work->serial, second = b->group->work->serial;
    return first != second ? first < second : a->sample < b->sample;
}

void line_push(struct core *core, struct need *need, struct job *job)
{
    struct need_line *line = get_line(core, need, job->group->stream);
    const unsigned priority = job->group->work->priority;
    if (!line)
        return;
    struct list *jobs = &line->jobs[priority];
    if (!(line->levels & 1u << priority))
        list_init(jobs);
    line->levels |= 1u << priority;
    if (!list_is_empty(jobs) && came_before(job, container_of(jobs->next, struct job, link)))
        list_push_front(jobs, &job->link); /* it had its turn, and others had the slot */
    else
        list_push_back(jobs, &job->link);
    if (need->waiting++ == 0)
        list_push_back(&core->waiting_needs[need->stage], &need->link);
}

void line_remove(struct need *need, struct job *job)
{
    struct need_line *line = find_line(need, job->group->stream);
    const unsigned priority = job->group->work->priority;
    if (!line) /* memory was out when it came */
        return;
    list_remove(&job->link);
    if (list_is_empty(&line->jobs[priority]))
        line->levels &= ~(1u << priority);
    if (!line->levels)
        drop_line(line);
    if (--need->waiting == 0)
        list_remove(&need->link);
}

struct job *line_turn(struct need *need)
{
    if (list_is_empty(&need->clients))
        return NULL;
    struct need_client *client = container_of(need->clients.next, struct need_client, link);
    struct need_line *line = container_of(client->lines.next, struct need_line, link);
    const unsigned highest = 31 - (unsigned)__builtin_clz(line->levels);
    list_remove(&client->link);
    list_push_back(&need->clients, &client->link);
    list_remove(&line->link);
    list_push_back(&client->lines, &line->link);
    return container_of(line->jobs[highest].next, struct job, link);
}

static void finish_client(struct need_client *client)
{
    struct need_line *line;
    LIST_EACH(line, &client->lines, link)
        free(line);
    free(client);
}

void lines_finish(struct need *need)
{
    struct need_client *client;
    LIST_EACH(client, &need->clients, link)
        finish_client(client);
}
