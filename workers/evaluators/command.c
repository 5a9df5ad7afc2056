/* The evaluator "command": eval.command in the evaluator's sandbox, and what it says there of a reward. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/evaluators/evaluators.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_sandbox.h"
#include "workers/evaluators/exit_status.h"

enum { OUTPUT_MAX = 16384, TAIL_MAX = 1200, NUMBER_MAX = 64 };

/* ---- judging ------------------------------------------------------------------------------ */

struct ended {
    struct sandbox_output output;
    struct sandbox_errors errors;
};

/* One finite number and nothing else but blanks around it. */
static bool parse_reward(char *text, double *ret)
{
    text += strspn(text, " \t\r\n");
    size_t len = strspn(text, "0123456789+-.eE");
    if (len == 0 || text[len + strspn(text + len, " \t\r\n")] != '\0')
        return false;
    text[len] = '\0';
    char *end;
    *ret = strtod(text, &end);
    return *end == '\0' && isfinite(*ret);
}

/* 0; 1: what lies there is no number; or negative errno. */
static int read_reward(struct sandbox *sandbox, const char *path, double *ret, struct fail *fail)
{
    off_t size = 0;
    AUTO_BUFFER text = {0};
    AUTO_CLOSE int file = evaluator_file_open(sandbox, path, &size, fail);
    if (file < 0)
        return file == -EINVAL ? 1 : file;
    int code = evaluator_file_read(file, 0, NUMBER_MAX + 1, &text, fail);
    if (code < 0)
        return code;
    const size_t len = text.len;
    AUTO_FREE char *number = buffer_take_str(&text);
    if (!number)
        return fail_memory(fail);
    return len <= NUMBER_MAX && strlen(number) == len && parse_reward(number, ret) ? 0 : 1;
}

static void judge_file(struct job *job, struct stage_sandbox *room)
{
    struct fail fail = {0};
    double reward = 0;
    const char *path = job->task->eval_reward_file;
    int code = read_reward(room->sandbox, path, &reward, &fail);
    if (code < 0 && !blame_is_file_fault(code))
        stage_end_failed(job, room, BLAME_EVALUATOR, code, &fail);
    else if (code < 0)
        job_set_outcome(job, OUTCOME_TASK, "the evaluator left no reward: %s", fail.text);
    else if (code > 0)
        job_set_outcome(job, OUTCOME_TASK, "the reward file %.200s holds no finite number", path);
    else
        evaluator_reward(job, reward, "the reward file says %g", reward);
}

static void judge_status(struct job *job, const struct ended *ended, const char *how, const char *tail)
{
    AUTO_VERDICT verdict = {0};
    exit_status_judge(job->task, ended->output.status, ended->errors.text, &verdict);
    if (!verdict.has_reward)
        job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken, it %s, %s%s%s", how, verdict_why(&verdict),
                        *tail ? ": " : "", tail);
    else
        evaluator_reward(job, verdict.reward, "the evaluator %s%s%s", how, *tail ? ": " : "", tail);
}

static void judge(struct job *job, struct stage_sandbox *room, const struct ended *ended)
{
    char how[160];
    const struct sandbox_output *output = &ended->output;
    const char *tail = stage_output_tail(output, TAIL_MAX);
    stage_describe_end(room, output, how, sizeof(how));
    bool is_whole = !output->timed_out && output->status < 256;
    if (sandbox_breach(room->sandbox))
        job_set_outcome(job, OUTCOME_TASK, "the evaluator went over its %s limit", sandbox_breach(room->sandbox));
    else if (is_whole && output->status == 0 && job->task->eval_reward_file)
        judge_file(job, room);
    else if (is_whole && !job->task->eval_reward_file)
        judge_status(job, ended, how, tail);
    else
        job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken, it %s%s%s", how, *tail ? ": " : "", tail);
}

static void command_run(struct job *job)
{
    struct stage_sandbox room = {.part = STAGE_EVALUATORS};
    struct ended ended = {.output = {0}};
    struct fail fail = {0};
    if (evaluator_lacks_files(job))
        return;
    int code = evaluator_sandbox_open(&room, job, &fail);
    job_begin_work(job);
    if (code == 0)
        code = sandbox_command_apart(room.sandbox, job->task->eval_command,
                                     stage_command_ms(job->task->limits.command_s), OUTPUT_MAX, &ended.output,
                                     &ended.errors, &fail);
    if (code == 0)
        judge(job, &room, &ended);
    else
        stage_end_failed(job, &room, BLAME_EVALUATOR, code, &fail);
    free(ended.output.text);
    stage_confirm(job, &room);
    evaluator_sandbox_close(&room, job);
}

const struct evaluator evaluator_command = {.run = command_run};
