/* The evaluator "command": eval.command in the evaluator's sandbox, and what it says there of a reward. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
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

/* Up to NUMBER_MAX bytes of a regular file; false when it is none, or longer, or holds a NUL. */
static bool read_short(struct sandbox *sandbox, int file, char text[NUMBER_MAX + 1])
{
    struct stat it;
    size_t len = 0;
    if (sandbox_stat_file(sandbox, file, &it, NULL) < 0 || !S_ISREG(it.st_mode) || it.st_size > NUMBER_MAX)
        return false;
    for (ssize_t got = 1; got > 0 && len < NUMBER_MAX; len += (size_t)got)
        if ((got = pread(file, text + len, NUMBER_MAX - len, (off_t)len)) < 0)
            return false;
    text[len] = '\0';
    return strlen(text) == len;
}

static void judge_file(struct job *job, struct stage_sandbox *room)
{
    struct fail fail = {0};
    char text[NUMBER_MAX + 1];
    double reward;
    const char *path = job->task->eval_reward_file;
    AUTO_CLOSE int file = sandbox_open_file(room->sandbox, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, &fail);
    if (file < 0 && !blame_is_file_fault(file))
        stage_end_failed(job, room, BLAME_EVALUATOR, file, &fail);
    else if (file < 0)
        job_set_outcome(job, OUTCOME_TASK, "the evaluator left no reward: %s", fail.text);
    else if (!read_short(room->sandbox, file, text) || !parse_reward(text, &reward))
        job_set_outcome(job, OUTCOME_TASK, "the reward file %.200s holds no finite number", path);
    else
        evaluator_reward(job, reward, "the reward file says %g", reward);
}

static void judge_status(struct job *job, const struct ended *ended, const char *how, const char *tail)
{
    struct verdict verdict;
    exit_status_judge(job->task, ended->output.status, ended->errors.text, &verdict);
    if (!verdict.has_reward)
        job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken, it %s, %s: %s", how, verdict.why, tail);
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
        job_set_outcome(job, OUTCOME_TASK, "the evaluator is broken, it %s: %s", how, tail);
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
    stage_sandbox_close(&room);
}

const struct evaluator evaluator_command = {.run = command_run};
