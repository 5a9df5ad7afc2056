#include "workers/evaluators/code/program_file.h"

#include <stdio.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/stages/sandbox/stage_confirm.h"

static int open_agents(struct stage_sandbox *stage, struct job *job, struct fail *fail)
{
    int code = stage_sandbox_find_image(stage, job, fail);
    if (code == 0)
        code = stage_sandbox_add_init(stage, job, fail);
    if (code == 0)
        code = stage_sandbox_add_run(stage, job, fail);
    return code < 0 ? code : stage_sandbox_open(stage, job, fail);
}

/* 0, 1: there is none, or negative errno. */
static int read_it(const struct stage_sandbox *stage, const char *path, struct buffer *ret, char *why, size_t size,
                   struct fail *fail)
{
    off_t len = 0;
    AUTO_CLOSE int file = evaluator_file_open(stage->sandbox, path, &len, fail);
    if (file < 0 && !blame_is_file_fault(file))
        return file;
    if (file < 0) {
        snprintf(why, size, "there is no program: %.200s: %.200s", path, fail->text);
        return 1;
    }
    int code = evaluator_file_read(file, 0, PROGRAM_MAX + 1, ret, fail);
    if (code < 0 || ret->len <= PROGRAM_MAX)
        return code;
    snprintf(why, size, "%.200s is not a program: it has more than 1 MiB", path);
    return 1;
}

enum program_file program_file_take(struct job *job, struct buffer *ret, char *why, size_t size)
{
    struct stage_sandbox stage = {.part = STAGE_EVALUATORS};
    struct fail fail = {0};
    int code = open_agents(&stage, job, &fail);
    if (code == 0)
        code = read_it(&stage, job->task->eval_source, ret, why, size, &fail);
    if (code < 0)
        stage_end_failed(job, &stage, BLAME_EVALUATOR, code, &fail);
    else
        job->result.outcome = OUTCOME_OK;
    stage_confirm(job, &stage);
    stage_sandbox_close(&stage);
    return code < 0 || job->result.outcome != OUTCOME_OK ? PROGRAM_FAILED : code > 0 ? PROGRAM_LACKS : PROGRAM_TAKEN;
}
