#include "workers/jobs/shared_task.h"

#include <stdlib.h>

#include "common/base/cleanup.h"

struct shared_task *shared_task_create(const struct msg_job_task *said, struct slice bytes)
{
    struct shared_task *shared = calloc(1, sizeof(*shared));
    if (!shared)
        return NULL;
    shared->owners = 1;
    shared->said = *said;
    if (!buffer_append(&shared->bytes, bytes.data, bytes.len))
        shared_task_release(&shared);
    else
        message_rebase(MSG_job_task, &shared->said, bytes.data, shared->bytes.data);
    return shared;
}

struct shared_task *shared_task_keep(struct shared_task *shared)
{
    shared->owners++;
    return shared;
}

void shared_task_release(struct shared_task **releasing)
{
    struct shared_task *shared = take_ptr(releasing);
    if (!shared || --shared->owners > 0)
        return;
    task_destroy(shared->task);
    buffer_finish(&shared->bytes);
    free(shared);
}

const struct task *shared_task_read(struct shared_task *shared, struct refusal *no)
{
    if (!shared->task)
        shared->task = task_parse(shared->said.task, no);
    return shared->task;
}

void shared_task_fill(const struct shared_task *shared, struct msg_job_start *start)
{
    const struct msg_job_task *said = &shared->said;
    start->task = said->task;
    start->has_task = true;
    start->init_layer_digest = said->init_layer_digest;
    start->has_init_layer_digest = said->has_init_layer_digest;
    start->init_layer = said->init_layer;
    start->has_init_layer = said->has_init_layer;
}
