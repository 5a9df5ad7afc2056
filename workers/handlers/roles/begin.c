#include "workers/handlers/roles/begin.h"

#include <stdio.h>

#include "workers/handlers/roles/requests.h"

int handler_begin_make(const struct job *job, enum task_viewer viewer, const char *name, struct handler_begin *ret,
                       struct fail *fail)
{
    const struct msg_job_start *start = &job->start;
    *ret = (struct handler_begin){.task = {0}};
    snprintf(ret->rollout, sizeof(ret->rollout), "%.*s/%llu", SLICE_ARG(start->group),
             (unsigned long long)start->sample);
    ret->message = (struct msg_handler_begin){.name = slice_from_str(name),
                                              .rollout = slice_from_str(ret->rollout),
                                              .sample = start->sample,
                                              .left_ms = handler_left_ms()};
    return task_shown_to(viewer, start->task, &ret->task, &ret->message.task) ? 0 : fail_memory(fail);
}

void handler_begin_finish(struct handler_begin *begin) { buffer_finish(&begin->task); }
