/*
 * The evaluator "verifier": a command that leaves its rewards in files, as the tests of Harbor's tasks do
 * (docs/tasks/verifier.md). Its exit status decides nothing; a file that is missing, empty or no such file is no
 * reward, and outcome task.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/evaluators/evaluators.h"
#include "workers/evaluators/verifier/ctrf.h"
#include "workers/evaluators/verifier/reward_text.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/sandbox/stage_confirm.h"
#include "workers/stages/sandbox/stage_sandbox.h"

enum { OUTPUT_MAX = 4096, TAIL_MAX = 1200, AT_ONCE_MAX = 65536, PATH_SIZE = 4096 + 64 };

struct verifying {
    struct job *job;
    struct stage_sandbox room;
    struct sandbox_output output; /* of what is around the command, whose own goes to a file */
    struct verdict verdict;
};

static const char *command_of(const struct task *task)
{
    return task->eval_command ? task->eval_command : TASK_VERIFIER_COMMAND;
}

/* ---- files of the directory ------------------------------------------------------------------ */

/* A plain file of the reward directory; -ENOENT: it is not there. */
static int open_file(struct verifying *verifying, const char *name, off_t *ret_size, struct fail *fail)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/%s", task_reward_dir(verifying->job->task), name);
    return evaluator_file_open(verifying->room.sandbox, path, ret_size, fail);
}

/* Up to max + 1 bytes: with all of these it is too long. 0 or negative errno, as above. */
static int read_file(struct verifying *verifying, const char *name, size_t max, struct buffer *ret, struct fail *fail)
{
    off_t size = 0;
    AUTO_CLOSE int file = open_file(verifying, name, &size, fail);
    if (file < 0)
        return file;
    return evaluator_file_read(file, 0, size < (off_t)max + 1 ? (size_t)size : max + 1, ret, fail);
}

/* What was written last to the file of its output, from where a line begins; "" where there is none. */
static void read_tail(struct verifying *verifying, char tail[TAIL_MAX + 1])
{
    struct fail ignored;
    off_t size = 0;
    AUTO_CLOSE int file = open_file(verifying, "test-stdout.txt", &size, &ignored);
    ssize_t got = file < 0 ? 0 : pread(file, tail, TAIL_MAX, size > TAIL_MAX ? size - TAIL_MAX : 0);
    const size_t len = got < 0 ? 0 : (size_t)got;
    tail[len] = '\0';
    for (char *at = tail; (at = memchr(at, '\0', (size_t)(tail + len - at)));)
        *at = '?'; /* it is text */
    const char *line = size > TAIL_MAX && len > 0 ? strchr(tail, '\n') : NULL;
    if (line && line[1])
        memmove(tail, line + 1, strlen(line));
}

/* ---- judging ------------------------------------------------------------------------------------ */

struct rewards {
    const char *name;
    size_t max;
    void (*read)(struct slice text, struct verdict *verdict);
};

/* The first that is there counts, whatever is in the next. */
static const struct rewards files[] = {{"reward.json", REWARD_JSON_MAX, reward_json_read},
                                       {"reward.txt", REWARD_TXT_MAX, reward_txt_read}};

static void say_reward(const struct rewards *file, struct verdict *verdict)
{
    char why[VERDICT_WHY_BYTES];
    snprintf(why, sizeof(why), "%.1000s", verdict_why(verdict));
    if (verdict->has_reward)
        verdict_say(verdict, "%s says %.10g", file->name, verdict->reward);
    else
        verdict_say(verdict, "the verifier left no reward: %s: %s", file->name, why);
}

/* 0, also where they are bad; negative errno where the sandbox failed. */
static int read_rewards(struct verifying *verifying, struct fail *fail)
{
    struct verdict *verdict = &verifying->verdict;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        AUTO_BUFFER text = {0};
        int code = read_file(verifying, files[i].name, files[i].max, &text, fail);
        if (code == -ENOENT)
            continue;
        if (code < 0 && !blame_is_file_fault(code))
            return code;
        if (code < 0)
            verdict_say(verdict, "%s", fail->text);
        else
            files[i].read(buffer_peek(&text), verdict);
        say_reward(&files[i], verdict);
        return 0;
    }
    verdict_say(verdict, "the verifier left no reward: there is neither %s nor %s in %s", files[0].name, files[1].name,
                task_reward_dir(verifying->job->task));
    return 0;
}

/* Where what follows is added to why. */
static void say_more(struct verdict *verdict, const char *format, const char *a, const char *b)
{
    char why[VERDICT_WHY_BYTES];
    int len = snprintf(why, sizeof(why), "%s", verdict_why(verdict));
    snprintf(why + len, sizeof(why) - (size_t)len, format, a, b);
    verdict_say(verdict, "%s", why);
}

struct report {
    struct slice text;
    struct verdict *verdict;
    struct fail *fail;
};

static int report_work(void *arg, const atomic_bool *stop)
{
    const struct report *report = arg;
    (void)stop;
    return ctrf_read(report->text, report->verdict, report->fail) ? 0 : report->fail->code;
}

/* Results of single tests, where it left any: what is wrong with those costs no reward. */
static void read_tests(struct verifying *verifying)
{
    static const char name[] = "ctrf.json";
    AUTO_BUFFER text = {0};
    struct fail fail = {0};
    int code = read_file(verifying, name, CTRF_BYTES_MAX, &text, &fail);
    struct report report = {buffer_peek(&text), &verifying->verdict, &fail};
    if (code == -ENOENT)
        return;
    if (code == 0)
        code = text.len <= AT_ONCE_MAX ? report_work(&report, NULL) : offload_run(report_work, &report, &fail);
    if (code < 0)
        say_more(&verifying->verdict, "; %s is not read: %s", name, fail.text);
}

static int judge(struct verifying *verifying, struct fail *fail)
{
    struct job *job = verifying->job;
    char how[160], tail[TAIL_MAX + 1];
    const char *breach = sandbox_breach(verifying->room.sandbox);
    if (breach) {
        job_set_outcome(job, OUTCOME_TASK, "the verifier went over its %s limit", breach);
        return 0;
    }
    read_tail(verifying, tail);
    stage_describe_end(&verifying->room, &verifying->output, how, sizeof(how));
    const char *end = *tail || !verifying->output.len ? tail : stage_output_tail(&verifying->output, TAIL_MAX);
    if (verifying->output.timed_out) {
        job_set_outcome(job, OUTCOME_TASK, "the verifier %s%s%s", how, *end ? ": " : "", end);
        return 0;
    }
    int code = read_rewards(verifying, fail);
    if (code < 0)
        return code;
    read_tests(verifying);
    say_more(&verifying->verdict, *end ? "; it %s: %s" : "; it %s%s", how, end);
    evaluator_end(job, &verifying->verdict);
    return 0;
}

/* ---- running ------------------------------------------------------------------------------------- */

/* The file that the command begins with, where that is a path. */
static int make_executable(struct verifying *verifying, struct fail *fail)
{
    struct stat it;
    const char *command = command_of(verifying->job->task);
    AUTO_FREE char *path = strndup(command, strcspn(command, " \t\r\n;&|<>()'\"$`\\"));
    if (!path)
        return fail_memory(fail);
    if (path[0] != '/')
        return 0;
    struct sandbox *sandbox = verifying->room.sandbox;
    AUTO_CLOSE int file = sandbox_open_file(sandbox, path, O_RDONLY | O_NONBLOCK, 0, fail);
    if (file < 0)
        return blame_is_file_fault(file) ? 0 : file; /* who runs it says why it does not start */
    int code = sandbox_stat_file(sandbox, file, &it, fail);
    if (code < 0 || !S_ISREG(it.st_mode) || (it.st_mode & 0111) == 0111)
        return code;
    code = sandbox_chmod_file(sandbox, file, it.st_mode | 0111, fail);
    return blame_is_file_fault(code) ? 0 : code;
}

static int run(struct verifying *verifying, struct fail *fail)
{
    const struct task *task = verifying->job->task;
    AUTO_BUFFER text = {0};
    buffer_printf(&text, "(%s\n) > ", command_of(task));
    buffer_append_quoted(&text, task_reward_dir(task));
    buffer_append_str(&text, "/test-stdout.txt 2>&1");
    if (!buffer_append(&text, "", 1))
        return fail_memory(fail);
    int code = make_executable(verifying, fail);
    if (code == 0)
        code = sandbox_command(verifying->room.sandbox, (const char *)text.data, stage_command_ms(task->limits.eval_s),
                               OUTPUT_MAX, &verifying->output, fail);
    return code;
}

static void verifier_run(struct job *job)
{
    struct verifying verifying = {.job = job, .room = {.part = STAGE_EVALUATORS}};
    struct fail fail = {0};
    if (evaluator_lacks_files(job))
        return;
    int code = evaluator_sandbox_open(&verifying.room, job, &fail);
    job_begin_work(job);
    if (code == 0)
        code = run(&verifying, &fail);
    if (code == 0)
        code = judge(&verifying, &fail);
    if (code < 0)
        stage_end_failed(job, &verifying.room, BLAME_EVALUATOR, code, &fail);
    verdict_finish(&verifying.verdict);
    free(verifying.output.text);
    stage_confirm(job, &verifying.room);
    evaluator_sandbox_close(&verifying.room, job);
}

const struct evaluator evaluator_verifier = {.run = verifier_run};
