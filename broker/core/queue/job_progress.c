#include "broker/core/queue/job_progress.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

static struct slice name_of(const uint64_t *token) { return slice_of(token, sizeof(*token)); }

const struct job_progress *job_progress_find(const struct core *core, const struct job *job)
{
    return job->place == PLACE_LEASED ? table_find(&core->progress, name_of(&job->course->token)) : NULL;
}

void job_progress_forget(struct core *core, const struct job *job)
{
    free(table_take(&core->progress, name_of(&job->course->token)));
}

static char *put(char *at, struct slice text)
{
    if (text.len)
        memcpy(at, text.data, text.len);
    at[text.len] = '\0';
    return at;
}

void job_progress_set(struct core *core, const struct job *job, uint64_t turn, struct slice tool, struct slice why)
{
    job_progress_forget(core, job);
    struct job_progress *progress = core_alloc(core, 1, sizeof(*progress) + tool.len + why.len + 2);
    if (!progress)
        return;
    progress->token = job->course->token;
    progress->turn = (uint32_t)turn;
    progress->tool = put(progress->text, tool);
    progress->why = put(progress->text + tool.len + 1, why);
    if (table_put(&core->progress, name_of(&progress->token), progress))
        return;
    core->failed = true;
    free(progress);
}

void job_progress_finish(struct core *core)
{
    size_t at = 0;
    for (struct job_progress *progress; (progress = table_next(&core->progress, &at));)
        free(progress);
    table_finish(&core->progress);
}
