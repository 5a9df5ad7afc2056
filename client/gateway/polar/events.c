#include "client/gateway/polar/events.h"

#include <stdlib.h>

#include "client/gateway/sse.h"
#include "common/base/clock.h"

struct hearing {
    struct sse sse;
    struct polar_of *of;
    struct list link;
};

static void tell(const struct polar_task *task, const char *event, struct buffer *members)
{
    struct hearing *hearing;
    struct buffer data = {0};
    json_text_printf(&data, "{\"type\":%s,\"timestamp\":%g,\"task_id\":%s", event, (double)clock_wall_ms() / 1000,
                     task->id ? task->id : task->group);
    buffer_append(&data, members->data, members->len);
    buffer_append_str(&data, "}");
    LIST_EACH(hearing, &task->of->book->clients, link)
        if (hearing->of == task->of && !data.failed)
            sse_send(&hearing->sse, event, 0, buffer_peek(&data));
    buffer_finish(&data);
    buffer_finish(members);
}

void events_task_created(const struct polar_task *task)
{
    struct buffer members = {0};
    json_text_printf(&members, ",\"status\":\"running\",\"harness\":%s,\"model\":%s,\"num_samples\":%u",
                     task->harness ? task->harness : "", task->model ? task->model : "", (uint64_t)task->total);
    tell(task, "task.created", &members);
}

void events_session(const struct polar_task *task, unsigned sample, const char *status)
{
    struct buffer members = {0};
    char id[48];
    session_id_of(task->group, sample, id);
    json_text_printf(&members, ",\"session_id\":%s,\"status\":%s", id, status);
    tell(task, "session.state_changed", &members);
}

void events_task_updated(const struct polar_task *task)
{
    struct buffer members = {0};
    json_text_printf(&members, ",\"completed_sessions\":%u,\"total_sessions\":%u", (uint64_t)task->completed,
                     (uint64_t)task->total);
    tell(task, "task.updated", &members);
}

void events_task_completed(const struct polar_task *task)
{
    struct buffer members = {0};
    json_text_printf(&members, ",\"status\":%s,\"completed_sessions\":%u", task_status_word(task),
                     (uint64_t)task->completed);
    tell(task, "task.completed", &members);
}

static void end(struct http_call *call)
{
    struct hearing *hearing = call->state;
    hearing->of->users--;
    list_remove(&hearing->link);
    sse_finish(&hearing->sse);
    free(hearing);
}

bool events_begin(struct polar_of *of, struct http_call *call)
{
    struct hearing *hearing = calloc(1, sizeof(*hearing));
    if (!hearing)
        return false;
    hearing->of = of;
    of->users++;
    call->state = hearing;
    call->end = end;
    list_push_back(&of->book->clients, &hearing->link);
    sse_begin(&hearing->sse, call);
    return true;
}
