/*
 * The evaluator "judge": a model says what the agent's work is worth. It samples on the engine that the broker gave the
 * job, of the judges' policy; what it samples is no part of the trajectory's traces, only counted among the metrics.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/engines/engines.h"
#include "workers/engines/generate.h"
#include "workers/evaluators/evaluator_files.h"
#include "workers/evaluators/evaluator_sandbox.h"
#include "workers/evaluators/evaluators.h"
#include "workers/evaluators/judge/prompt.h"
#include "workers/evaluators/judge/reply.h"
#include "workers/evaluators/judge/scoring.h"
#include "workers/evaluators/judged.h"
#include "workers/jobs/job_engine.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/requests.h"
#include "workers/stages/sandbox/stage_confirm.h"

enum { DRAWS_MAX = 8, TAIL_MAX = 500, UNREADABLE = 1 };

struct judging {
    struct job *job;
    struct engine *engine;
    struct engine_stay stay;
    struct stage_sandbox stage; /* view files */
    struct buffer judged;       /* UTF-8 */
    struct judge_votes votes;
    struct verdict verdict;
    uint64_t calls, prompt_tokens, sampled_tokens, differ;
    double seconds;
    char *reply;   /* the last one ... */
    char why[256]; /* ... and why it was not readable, or "" */
};

/* ---- what is judged ---------------------------------------------------------------------------------- */

/* So many bytes from there, whatever they are, as text. */
static int put_bytes(int file, off_t from, size_t len, struct buffer *out, struct fail *fail)
{
    AUTO_BUFFER bytes = {0};
    int code = evaluator_file_read(file, from, len, &bytes, fail);
    if (code < 0)
        return code;
    for (size_t i = 0; i < bytes.len; i++)
        bytes.data[i] = bytes.data[i] ? bytes.data[i] : '?';
    AUTO_FREE char *text = buffer_take_str(&bytes);
    if (!text)
        return fail_memory(fail);
    text_repair(text);
    return buffer_append_str(out, text) ? 0 : fail_memory(fail);
}

/* Its front and its end, where it is longer than its share. */
static int put_content(struct judging *judging, int file, size_t size, size_t share, struct fail *fail)
{
    const size_t front = size <= share ? size : share - share / 2;
    int code = put_bytes(file, 0, front, &judging->judged, fail);
    if (code < 0 || size <= share)
        return code;
    buffer_printf(&judging->judged, "\n[%zu bytes are left out here]\n", size - share);
    return put_bytes(file, (off_t)(size - share / 2), share / 2, &judging->judged, fail);
}

static int put_file(struct judging *judging, const char *path, struct fail *fail)
{
    const struct task_judge *judge = &judging->job->task->judge;
    off_t size = 0;
    AUTO_CLOSE int file = evaluator_file_open(judging->stage.sandbox, path, &size, fail);
    if (file < 0 && !blame_is_file_fault(file))
        return file;
    buffer_printf(&judging->judged, "%sThe file %s:\n", judging->judged.len ? "\n" : "", path);
    if (file >= 0)
        return put_content(judging, file, (size_t)size, judge->text_bytes / judge->file_count, fail);
    const char *const words = file == -EINVAL ? "(no regular file)\n" : "(it is not there)\n";
    return buffer_append_str(&judging->judged, words) ? 0 : fail_memory(fail);
}

static int gather_files(struct judging *judging, struct fail *fail)
{
    const struct task_judge *judge = &judging->job->task->judge;
    int code = evaluator_sandbox_open(&judging->stage, judging->job, fail);
    for (size_t i = 0; i < judge->file_count && code == 0; i++)
        code = put_file(judging, judge->files[i], fail);
    return code;
}

static int gather_conversation(struct judging *judging, struct fail *fail)
{
    AUTO_BUFFER messages = {0};
    int code = judged_messages(judging->job, true, &messages, fail);
    if (code == 0)
        judge_cut(buffer_peek(&messages), judging->job->task->judge.text_bytes, &judging->judged);
    return code;
}

static int gather(struct judging *judging, struct fail *fail)
{
    const struct task *task = judging->job->task;
    int code = 0;
    if (task_judge_reads(task, "files"))
        code = gather_files(judging, fail);
    else if (task_judge_reads(task, "conversation"))
        code = gather_conversation(judging, fail);
    else
        judge_cut(judging->job->start.answer, task->judge.text_bytes, &judging->judged);
    return code < 0 ? code : judging->judged.failed ? fail_memory(fail) : 0;
}

/* ---- one reply ----------------------------------------------------------------------------------------- */

/* None of what is quoted holds them. */
static int draw_marks(const struct judging *judging, struct judge_marks *ret, struct fail *fail)
{
    const struct slice judged = buffer_peek(&judging->judged);
    const struct slice reference = slice_from_str(judging->job->task->judge.reference);
    for (int i = 0; i < DRAWS_MAX; i++) {
        uint64_t random[2];
        if (getrandom(random, sizeof(random), 0) != sizeof(random))
            return fail_set(fail, -errno, "no random numbers: %s", strerror(errno));
        judge_marks_make(ret, random[0], (uint32_t)random[1]);
        if (judge_marks_fit(ret, judged) && judge_marks_fit(ret, reference))
            return 0;
    }
    return fail_set(fail, -EINVAL, "what is judged holds all numbers that were drawn for its marks");
}

static void take_reply(struct judging *judging, struct generation *generation)
{
    judging->calls++;
    judging->prompt_tokens += generation->prompt_tokens;
    judging->sampled_tokens += generation->sampled.count;
    judging->seconds += generation->seconds;
    free(judging->reply);
    judging->reply = take_ptr(&generation->text);
}

static int sample(struct judging *judging, const struct task_message *messages, struct generation *ret,
                  struct fail *fail)
{
    const struct task_judge *judge = &judging->job->task->judge;
    const struct task_sampling sampling = {
        .temperature = judge->temperature, .top_p = 1, .max_tokens = judge->max_tokens, .seed = -1};
    struct tokens ids = {0};
    activity_wait("the judge's reply %llu", (unsigned long long)judging->calls + 1);
    int code = engine_render(judging->engine, messages, JUDGE_MESSAGES, 0, &ids, fail);
    engine_stay(&judging->stay, judging->engine, ids.count);
    if (code == 0)
        code = engine_generate(judging->engine, &ids, &sampling, judge->max_tokens, judging->calls, ret, fail);
    activity_go_on();
    tokens_finish(&ids);
    return code;
}

/* 0: `values`; UNREADABLE; negative errno of the engine's. */
static int ask(struct judging *judging, bool is_swapped, double *values, struct fail *fail)
{
    const struct task *task = judging->job->task;
    struct task_message messages[JUDGE_MESSAGES] = {{0}};
    struct generation generation = {0};
    struct judge_marks marks;
    struct fail why = {0};
    int code = draw_marks(judging, &marks, fail);
    if (code == 0 && !judge_prompt_make(task, buffer_peek(&judging->judged), is_swapped, &marks, messages))
        code = fail_memory(fail);
    if (code == 0)
        code = sample(judging, messages, &generation, fail);
    if (code == 0) {
        const bool is_cut = strcmp(generation.finish, "length") == 0;
        take_reply(judging, &generation);
        code = judge_reply_read(slice_from_str(judging->reply), marks.verdict, judge_criteria_of(&task->judge), values,
                                &why);
        snprintf(judging->why, sizeof(judging->why), "%.200s%s", why.text,
                 code < 0 && is_cut ? "; it was cut at eval.judge.max_tokens" : "");
        code = code < 0 ? UNREADABLE : 0;
    }
    generation_finish(&generation);
    judge_prompt_finish(messages);
    return code;
}

/* Of a reference: both orders must say that it is the same. */
static int ask_sample(struct judging *judging, double *values, struct fail *fail)
{
    const struct task_judge *judge = &judging->job->task->judge;
    double other[TASK_CRITERIA_MAX];
    int code = ask(judging, false, values, fail);
    if (code != 0 || !judge->reference || strcmp(judge->swap, "check") != 0)
        return code;
    code = ask(judging, true, other, fail);
    if (code == 0 && other[0] != values[0]) {
        judging->differ++;
        values[0] = 0;
    }
    return code;
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static int ask_all(struct judging *judging, struct fail *fail)
{
    const struct task_judge *judge = &judging->job->task->judge;
    struct judge_votes *votes = &judging->votes;
    double values[TASK_CRITERIA_MAX];
    for (uint64_t i = 0; i < judge->samples; i++) {
        int code = ask_sample(judging, values, fail);
        if (code < 0)
            return code;
        votes->unreadable += code == UNREADABLE;
        for (size_t k = 0; code == 0 && k < judge_criteria_of(judge).count; k++)
            votes->values[k][votes->count] = values[k];
        votes->count += code == 0;
    }
    return 0;
}

static void add_metrics(struct judging *judging)
{
    const struct {
        const char *name;
        double value;
    } metrics[] = {
        {"judge_calls", (double)judging->calls},           {"judge_unreadable", (double)judging->votes.unreadable},
        {"judge_swap_differs", (double)judging->differ},   {"judge_prompt_tokens", (double)judging->prompt_tokens},
        {"judge_tokens", (double)judging->sampled_tokens}, {"judge_seconds", judging->seconds}};
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics); i++)
        verdict_add_metric(&judging->verdict, metrics[i].name, metrics[i].value, NULL);
}

static void end_judged(struct judging *judging)
{
    struct engine_about about = {0};
    engine_recall(judging->engine, &about);
    const bool has_reward = judge_score(&judging->job->task->judge, &judging->votes, &judging->verdict);
    const struct slice last = text_tail_slice(slice_from_str(judging->reply ? judging->reply : ""), TAIL_MAX);
    char came_to[1024];
    snprintf(came_to, sizeof(came_to), "%.900s", verdict_why(&judging->verdict));
    verdict_say(&judging->verdict, "%s%s%s%s; judged by %.100s, whose last words are: %.*s",
                has_reward ? "" : "the judge gave no verdict: ", came_to, *judging->why ? "; the last: " : "",
                judging->why, about.model[0] ? about.model : engine_base_url(judging->engine), SLICE_ARG(last));
    add_metrics(judging);
    evaluator_end(judging->job, &judging->verdict);
    if (!has_reward)
        judging->job->result.fault = FAULT_JUDGE;
}

/* The limit is the task's: an engine that is slower may be answering others well (a limit of ours is passed within). */
static void end_late(const struct judging *judging)
{
    job_set_outcome(judging->job, blame_get(BLAME_EVALUATOR, BLAME_TIME).outcome,
                    "limits.eval_s, %llu s, was over after %llu replies of the judge at %s",
                    (unsigned long long)judging->job->task->limits.eval_s, (unsigned long long)judging->calls,
                    engine_base_url(judging->engine));
}

static void end_failed(const struct judging *judging, int code, const struct fail *fail)
{
    if (code == -ETIMEDOUT && fiber_is_late())
        end_late(judging);
    else
        job_engine_failed(judging->job, judging->engine, "the judge", code, fail,
                          ": eval.judge.text_bytes bounds what it is shown");
}

static void judge(struct judging *judging)
{
    struct fail fail = {0};
    int code = gather(judging, &fail);
    job_begin_work(judging->job);
    if (code < 0) {
        stage_end_failed(judging->job, &judging->stage, BLAME_EVALUATOR, code, &fail);
        return;
    }
    engine_stay(&judging->stay, judging->engine, 0);
    code = ask_all(judging, &fail);
    engine_stay(&judging->stay, NULL, 0);
    if (code < 0)
        end_failed(judging, code, &fail);
    else
        end_judged(judging);
}

static void judge_run(struct job *job)
{
    struct judging judging = {.job = job, .stage = {.part = STAGE_EVALUATORS}};
    if (task_judge_reads(job->task, "files") && evaluator_lacks_files(job))
        return;
    judging.engine = job_find_engine(job, "the judge");
    if (judging.engine)
        judge(&judging);
    stage_confirm(job, &judging.stage);
    stage_sandbox_close(&judging.stage);
    verdict_finish(&judging.verdict);
    buffer_finish(&judging.judged);
    free(judging.reply);
}

const struct evaluator evaluator_judge = {.run = judge_run};
