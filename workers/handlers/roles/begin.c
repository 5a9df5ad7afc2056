#include "workers/handlers/roles/begin.h"

#include <stdio.h>

#include "workers/handlers/roles/requests.h"

struct msg_handler_begin handler_begin_of(const struct job *job, const char *name, char rollout[HANDLER_ROLLOUT_SIZE])
{
    const struct msg_job_start *start = &job->start;
    snprintf(rollout, HANDLER_ROLLOUT_SIZE, "%.*s/%llu", SLICE_ARG(start->group), (unsigned long long)start->sample);
    return (struct msg_handler_begin){.name = slice_from_str(name),
                                      .rollout = slice_from_str(rollout),
                                      .sample = start->sample,
                                      .left_ms = handler_left_ms(),
                                      .task = start->task};
}
