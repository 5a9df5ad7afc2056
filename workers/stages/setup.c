#include "workers/stages/setup.h"

#include <stdlib.h>

#include "workers/sandbox/command.h"
#include "workers/stages/sandbox/stage_files.h"

enum { OUTPUT_MAX = 16384, TAIL_MAX = 1200 };

/* Whether to go on; if not, the job has ended. */
static bool run_command(struct job *job, struct stage_sandbox *stage, const char *command)
{
    struct fail fail = {0};
    struct sandbox_output output = {0};
    char how[160];
    int code = sandbox_command(stage->sandbox, command, stage_command_ms(job->task->limits.init_s), OUTPUT_MAX, &output,
                               &fail);
    bool good = code == 0 && output.status == 0 && !output.timed_out;
    if (code < 0 || sandbox_breach(stage->sandbox))
        stage_end_failed(job, stage, BLAME_TASK, code, &fail);
    else if (!good) {
        const char *tail = stage_output_tail(&output, TAIL_MAX);
        stage_describe_end(stage, &output, how, sizeof(how));
        job_set_outcome(job, OUTCOME_TASK, "the set-up command %.300s %s%s%s", command, how, *tail ? ": " : "", tail);
    }
    free(output.text);
    return good && !sandbox_breach(stage->sandbox);
}

bool setup_run(struct job *job, struct stage_sandbox *stage)
{
    const struct task *task = job->task;
    if (!stage_put_files(job, stage, task->files, task->file_count))
        return false;
    for (size_t i = 0; i < task->setup_count; i++)
        if (!run_command(job, stage, task->setup[i]))
            return false;
    return true;
}
