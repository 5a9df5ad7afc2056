#include "workers/stages/teacher.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "schemas/trajectory/trajectory.h"
#include "workers/engines/engines.h"
#include "workers/jobs/blame.h"
#include "workers/jobs/job_engine.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/offload.h"

enum { AT_ONCE_MAX = 65536 /* bytes of a record that are read and written without a thread */ };

static const float LOGPROB_LEAST = -9999; /* what servers say of a token that they give no probability */

struct teaching {
    struct job *job;
    struct engine *engine;
    struct engine_about about;
    struct engine_stay stay;
    struct record record;
    struct refusal no; /* why it could not be read or written */
    uint64_t bytes;    /* of the columns */
    uint64_t done;     /* tokens */
};

/* The sampled tokens of a trace that can be scored, which the first of a trace cannot: from the first to the last. */
struct span {
    size_t from, rows; /* no rows: there are none */
};

static struct span span_of(const struct record_trace *trace)
{
    size_t from = 1, end = trace->token_count;
    while (end > 1 && !trace->mask[end - 1])
        end--;
    while (from < end && !trace->mask[from])
        from++;
    return (struct span){from, from < end ? end - from : 0};
}

/* ---- the record ---------------------------------------------------------------------------------- */

static int read_record(void *arg, const atomic_bool *stop)
{
    struct teaching *teaching = arg;
    (void)stop;
    return record_decode(teaching->job->start.record, &teaching->record, &teaching->no) ? 0 : -EBADMSG;
}

static int write_record(void *arg, const atomic_bool *stop)
{
    struct teaching *teaching = arg;
    (void)stop;
    return record_encode(&teaching->record, &teaching->job->result.record, &teaching->no) ? 0 : -EFBIG;
}

/* Reads or writes it. */
static int work_on_record(struct teaching *teaching, int (*work)(void *, const atomic_bool *), struct fail *fail)
{
    const bool is_small = teaching->job->start.record.len + teaching->bytes <= AT_ONCE_MAX;
    const int code = is_small ? work(teaching, NULL) : offload_run(work, teaching, fail);
    if (code == -EBADMSG)
        return fail_set(fail, code, "the run's record cannot be read: %s", teaching->no.text);
    return code == -EFBIG ? fail_set(fail, code, "the record cannot hold what the teacher says: %s", teaching->no.text)
                          : code;
}

/* Counts the columns' bytes: none where nothing was sampled. */
static int measure(struct teaching *teaching, struct fail *fail)
{
    const uint64_t row = sizeof(float) + teaching->job->task->score.top_k * (sizeof(uint32_t) + sizeof(float));
    for (size_t i = 0; i < teaching->record.trace_count; i++)
        teaching->bytes += span_of(&teaching->record.traces[i]).rows * row;
    return teaching->bytes <= RECORD_COLUMN_BYTES_MAX
               ? 0
               : fail_set(fail, -EFBIG,
                          "score.top_k is too much for so many tokens: a record holds %d bytes of columns, and these "
                          "are %llu",
                          RECORD_COLUMN_BYTES_MAX, (unsigned long long)teaching->bytes);
}

/* ---- whose ids they are -------------------------------------------------------------------------- */

/* Ids mean something only to the tokenizer that they were sampled with. */
static int check_tokenizer(const struct teaching *teaching, struct fail *fail)
{
    const char *own = teaching->about.tokenizer_digest;
    for (size_t i = 0; i < teaching->record.trace_count; i++) {
        const struct record_trace *trace = &teaching->record.traces[i];
        if (span_of(trace).rows > 0 && (!*own || strcmp(trace->tokenizer_digest, own) != 0))
            return fail_set(fail, -EINVAL,
                            "its tokenizer is not that of the policy, whose ids would mean something else to it: %s, "
                            "and the trace's is %s",
                            *own ? own : "unknown", *trace->tokenizer_digest ? trace->tokenizer_digest : "unknown");
    }
    return 0;
}

/* ---- scores -------------------------------------------------------------------------------------- */

/* Room for a trace's scores, a row for each token of its span: 0 where none was sampled, as in its own. */
struct rows {
    struct token_scores scores;
    struct span span;
};

static void rows_finish(struct rows *rows)
{
    free(rows->scores.logprobs);
    free(rows->scores.top_ids);
    free(rows->scores.top_logprobs);
}
#define AUTO_ROWS __attribute__((cleanup(rows_finish))) struct rows

static int rows_make(struct rows *rows, struct span span, uint64_t top_k, struct fail *fail)
{
    *rows = (struct rows){.span = span, .scores = {.top_k = (uint32_t)top_k}};
    struct token_scores *scores = &rows->scores;
    scores->logprobs = calloc(span.rows, sizeof(*scores->logprobs));
    scores->top_ids = top_k ? calloc(span.rows * top_k, sizeof(*scores->top_ids)) : NULL;
    scores->top_logprobs = top_k ? calloc(span.rows * top_k, sizeof(*scores->top_logprobs)) : NULL;
    return scores->logprobs && (!top_k || (scores->top_ids && scores->top_logprobs)) ? 0 : fail_memory(fail);
}

/* llama.cpp's server says the least number that there is of a token whose probability it rounds to none. */
static int rows_check(const struct rows *rows, const struct record_trace *trace, struct fail *fail)
{
    for (size_t i = 0; i < rows->span.rows; i++)
        if (rows->scores.logprobs[i] <= LOGPROB_LEAST)
            return fail_set(fail, -EPROTO, "it gives token %zu (id %u) no probability at all", rows->span.from + i,
                            trace->token_ids[rows->span.from + i]);
    return 0;
}

static bool add_column(struct record_trace *trace, const char *name, const char *type, const struct rows *rows,
                       void *data, uint32_t width)
{
    const uint32_t row = width ? width : 1;
    struct record_extra column = {.offset = (uint32_t)rows->span.from,
                                  .rows = (uint32_t)rows->span.rows,
                                  .shape = {.count = width > 0, .sizes = {width}},
                                  .values = {data, rows->span.rows * row * record_type_size(type)}};
    snprintf(column.name, sizeof(column.name), "%s", name);
    snprintf(column.type, sizeof(column.type), "%s", type);
    return record_add_column(trace, &column);
}

static bool add_columns(struct record_trace *trace, const struct rows *rows)
{
    const struct token_scores *scores = &rows->scores;
    return add_column(trace, "teacher_logprobs", "f32", rows, scores->logprobs, 0) &&
           (!scores->top_k || (add_column(trace, "top_ids", "u32", rows, scores->top_ids, scores->top_k) &&
                               add_column(trace, "top_logprobs", "f32", rows, scores->top_logprobs, scores->top_k)));
}

static int score_trace(struct teaching *teaching, struct record_trace *trace, struct fail *fail)
{
    const struct span span = span_of(trace);
    AUTO_ROWS rows = {.span = {0}};
    if (span.rows == 0)
        return 0;
    int code = rows_make(&rows, span, teaching->job->task->score.top_k, fail);
    if (code < 0)
        return code;
    struct engine_scoring scoring = {.ids = trace->token_ids,
                                     .wanted = trace->mask,
                                     .count = span.from + span.rows,
                                     .from = span.from,
                                     .scores = rows.scores,
                                     .done = &teaching->done,
                                     .at = span.from};
    engine_stay(&teaching->stay, teaching->engine, scoring.count);
    code = engine_score(teaching->engine, &scoring, fail);
    if (code == 0 && !engine_serves(teaching->engine, teaching->about.identity))
        code = fail_set(fail, -ESTALE, "it became another model while it scored");
    if (code == 0)
        code = rows_check(&rows, trace, fail);
    return code < 0 ? code : add_columns(trace, &rows) ? 0 : fail_memory(fail);
}

static int score_all(struct teaching *teaching, struct fail *fail)
{
    int code = engine_describe(teaching->engine, &teaching->about, fail);
    if (code == 0)
        code = check_tokenizer(teaching, fail);
    for (size_t i = 0; i < teaching->record.trace_count && code == 0; i++) {
        activity_wait("the teacher's scores of trace %zu of %zu", i + 1, teaching->record.trace_count);
        code = score_trace(teaching, &teaching->record.traces[i], fail);
        activity_go_on();
    }
    engine_stay(&teaching->stay, NULL, 0);
    return code;
}

/* ---- the job ------------------------------------------------------------------------------------- */

static void say_scored(const struct teaching *teaching, double seconds)
{
    struct job_result *result = &teaching->job->result;
    const char *model = teaching->about.model;
    const size_t len = strlen(result->detail);
    verdict_add_metric(&result->verdict, "teacher_tokens", (double)teaching->done, NULL);
    verdict_add_metric(&result->verdict, "teacher_seconds", seconds, NULL);
    snprintf(result->detail + len, sizeof(result->detail) - len, "%s%llu tokens scored by %.100s", len ? "; " : "",
             (unsigned long long)teaching->done, model[0] ? model : engine_base_url(teaching->engine));
}

/* The limit is the task's: an engine that is slower may be answering others well (a limit of ours is passed within). */
static void end_late(struct job *job, const struct teaching *teaching)
{
    job_set_outcome(job, blame_get(BLAME_EVALUATOR, BLAME_TIME).outcome,
                    "score.timeout_s, %llu s, was over after %llu tokens of the teacher%s%s",
                    (unsigned long long)job->task->score.timeout_s, (unsigned long long)teaching->done,
                    teaching->engine ? " at " : "", teaching->engine ? engine_base_url(teaching->engine) : "");
}

/* What did not come to its end says nothing: neither the teacher nor the evaluator. */
static void end_failed(struct teaching *teaching, int code, const struct fail *fail)
{
    static const char hint[] = ": its context must be longer by a token than the policy's";
    struct job *job = teaching->job;
    verdict_finish(&job->result.verdict);
    buffer_clear(&job->result.record);
    if (code == -EFBIG)
        job_set_outcome(job, OUTCOME_TASK, "%s", fail->text);
    else if (code == -ETIMEDOUT && fiber_is_late())
        end_late(job, teaching);
    else if (teaching->engine)
        job_engine_failed(job, teaching->engine, "the teacher", code, fail, hint);
    else
        job_set_outcome(job, code == -ECANCELED ? OUTCOME_CANCELLED : OUTCOME_INFRA, "%s", fail->text);
}

static int score_and_write(struct teaching *teaching, struct fail *fail)
{
    const int64_t began_us = clock_us();
    int code = score_all(teaching, fail);
    const double seconds = (double)(clock_us() - began_us) / 1e6;
    if (code == 0)
        code = work_on_record(teaching, write_record, fail);
    if (code == 0)
        say_scored(teaching, seconds);
    return code;
}

void teacher_score(struct job *job)
{
    struct teaching teaching = {.job = job};
    struct fail fail = {0};
    record_init(&teaching.record);
    fiber_lift_deadline(loop_now_ms() + (int64_t)task_score_s(job->task) * 1000);
    int code = job->start.record.len > 0 ? work_on_record(&teaching, read_record, &fail) : 0;
    if (code == 0)
        code = measure(&teaching, &fail);
    if (code == 0 && teaching.bytes > 0 && (teaching.engine = job_find_engine(job, "the teacher")))
        code = score_and_write(&teaching, &fail);
    if (code < 0)
        end_failed(&teaching, code, &fail);
    fiber_pop_deadline();
    record_finish(&teaching.record);
}
