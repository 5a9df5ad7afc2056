/* A teacher's scores as columns of a record, of scripted engines: all of them, or none and the job says why. */
#include "tests/workers/engines/engine_world.h"

#include "schemas/trajectory/trajectory.h"
#include "workers/engines/server/engine_state.h"
#include "workers/jobs/result.h"
#include "workers/stages/teacher.h"

static struct world world;

enum { FIRST = 3, SECOND = 7, THIRD = 9, END = 11 }; /* sampled: [FIRST, SECOND) and [THIRD, END) */

/* The scripted engine's own formula. */
static float scripted_logprob(size_t position, uint32_t id)
{
    return (float)(-(double)((position * 7919 + (size_t)id * 104729) % 9973 + 1) / 1000);
}

/* ---- a run's record ---------------------------------------------------------------------------- */

static void append(struct record *record, const char *role, const char *text, bool sampled)
{
    struct tokens ids = {0};
    float logprobs[64] = {0};
    struct record_turn turn = {.length = 0};
    tokens_say(&ids, text);
    snprintf(turn.role, sizeof(turn.role), "%s", role);
    snprintf(turn.finish, sizeof(turn.finish), "%s", sampled ? "stop" : "");
    for (size_t i = 0; i < ids.count && sampled; i++)
        logprobs[i] = -1;
    assert_true(record_append(record, &turn, ids.ids, sampled ? logprobs : NULL, ids.count, sampled));
    tokens_finish(&ids);
}

/* A trace of two turns, and one where nothing was sampled. */
static void make_record(struct record *record, const char *tokenizer_digest)
{
    record_init(record);
    snprintf(record->agent, sizeof(record->agent), "chat");
    snprintf(record->logprobs_mode, sizeof(record->logprobs_mode), "raw");
    snprintf(record->tokenizer_digest, sizeof(record->tokenizer_digest), "%s", tokenizer_digest);
    assert_true(record_start_trace(record, ""));
    append(record, "prompt", "ask", false);
    append(record, "assistant", "look", true);
    append(record, "tool", "a?", false);
    append(record, "assistant", "it", true);
    append(record, "tool", "bye", false);
    assert_true(record_start_trace(record, "rewrite: x"));
    append(record, "prompt", "again", false);
}

static void encode(struct record *record, struct buffer *bytes)
{
    struct refusal no = {0};
    if (!record_encode(record, bytes, &no))
        fail_msg("%s: %s", no.field, no.text);
    record_finish(record);
}

/* ---- a job ------------------------------------------------------------------------------------- */

struct teach {
    const char *score;  /* the task's */
    const char *digest; /* of the policy's tokenizer; NULL: the engine's own */
    size_t many;        /* tokens of one turn more */
    struct job_context context;
    struct job job;
    struct buffer record;
    struct engine_about about;
    struct record scored; /* once it is scored */
};

static void append_many(struct record *record, size_t count)
{
    struct record_turn turn = {.role = "assistant", .finish = "stop"};
    uint32_t *ids = calloc(count, sizeof(*ids));
    assert_non_null(ids);
    assert_true(record_append(record, &turn, ids, NULL, count, true));
    free(ids);
}

static void teach(void *arg)
{
    struct teach *teach = arg;
    struct job *job = &teach->job;
    struct refusal no;
    struct record record;
    char task[256];
    snprintf(task, sizeof(task), "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"chat\"},\"score\":%s}",
             teach->score);
    assert_int_equal(engine_describe(world_engine(&world), &teach->about, NULL), 0);
    make_record(&record, teach->digest ? teach->digest : teach->about.tokenizer_digest);
    if (teach->many)
        append_many(&record, teach->many);
    encode(&record, &teach->record);
    teach->context = (struct job_context){.loop = world.loop, .http = world.http, .engines = world.engines};
    job->context = &teach->context;
    job->task = task_parse(slice_from_str(task), &no);
    assert_non_null(job->task);
    job->start.engine = slice_from_str(world.url);
    job->start.has_engine = true;
    job->start.record = buffer_peek(&teach->record);
    job_set_outcome(job, OUTCOME_OK, "as the evaluator says");
    assert_true(verdict_set_reward(&job->result.verdict, 0.5, NULL));
    teacher_score(job);
}

static void teach_run(struct teach *one, const char *script)
{
    struct refusal no = {0};
    world_open(&world, script, NULL);
    world_run(&world, teach, one, 0, 1);
    record_init(&one->scored);
    if (one->job.result.record.len && !record_decode(buffer_peek(&one->job.result.record), &one->scored, &no))
        fail_msg("%s: %s", no.field, no.text);
}

static void teach_close(struct teach *one)
{
    record_finish(&one->scored);
    result_finish(&one->job.result);
    task_destroy(one->job.task);
    buffer_finish(&one->record);
    world_close(&world);
}

/* It says nothing: no record, no reward; the outcome, the fault and words of it are these. */
static void assert_failed(const struct teach *one, enum outcome outcome, enum fault fault, const char *words)
{
    const struct job_result *result = &one->job.result;
    if (result->outcome != outcome || result->fault != fault || !strstr(result->detail, words))
        fail_msg("%s: %s", outcome_wire(result->outcome), result->detail);
    assert_int_equal(result->record.len, 0);
    assert_false(result->verdict.has_reward);
}

/* ---- columns ----------------------------------------------------------------------------------- */

static const struct record_extra *column_of(const struct record_trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->column_count; i++)
        if (strcmp(trace->columns[i].name, name) == 0)
            return &trace->columns[i];
    return NULL;
}

static bool is_sampled(size_t at) { return (at >= FIRST && at < SECOND) || (at >= THIRD && at < END); }

static void assert_tops(const struct record_extra *ids, const struct record_extra *logprobs, size_t row, size_t at,
                        uint32_t k)
{
    const uint32_t *id = (const uint32_t *)ids->values.data + row * k;
    const float *logprob = (const float *)logprobs->values.data + row * k;
    for (uint32_t i = 0; i < k; i++) {
        assert_true(logprob[i] == (is_sampled(at) ? scripted_logprob(at, id[i]) : 0));
        assert_true(is_sampled(at) || id[i] == 0);
        assert_true(i == 0 || logprob[i] <= logprob[i - 1]);
    }
}

static void assert_columns(const struct teach *one, uint32_t k)
{
    const struct record_trace *trace = &one->scored.traces[0];
    const struct record_extra *logprobs = column_of(trace, "teacher_logprobs");
    const struct record_extra *ids = column_of(trace, "top_ids"), *tops = column_of(trace, "top_logprobs");
    assert_int_equal(one->scored.trace_count, 2);
    assert_int_equal(one->scored.traces[1].column_count, 0);
    assert_int_equal(trace->column_count, k ? 3 : 1);
    assert_string_equal(logprobs->type, "f32");
    assert_true(logprobs->offset == FIRST && logprobs->rows == END - FIRST && logprobs->shape.count == 0);
    if (k) {
        assert_true(ids->shape.count == 1 && ids->shape.sizes[0] == k && tops->shape.sizes[0] == k);
        assert_string_equal(ids->type, "u32");
    }
    for (size_t at = FIRST; at < END; at++) {
        const float logprob = ((const float *)logprobs->values.data)[at - FIRST];
        assert_true(logprob == (is_sampled(at) ? scripted_logprob(at, trace->token_ids[at]) : 0));
        if (k)
            assert_tops(ids, tops, at - FIRST, at, k);
    }
}

/* All but the columns is the run's. */
static void assert_else_the_same(struct teach *one)
{
    AUTO_BUFFER bytes = {0};
    struct record_trace *trace = &one->scored.traces[0];
    for (size_t i = 0; i < trace->column_count; i++) {
        free(trace->columns[i].values.data);
        free(trace->columns[i].counts.data);
    }
    trace->column_count = 0;
    assert_true(record_encode(&one->scored, &bytes, NULL));
    assert_int_equal(bytes.len, one->record.len);
    assert_memory_equal(bytes.data, one->record.data, bytes.len);
}

static double metric_of(const struct verdict *verdict, const char *name)
{
    for (size_t i = 0; i < verdict->metric_count; i++)
        if (strcmp(verdict->metrics[i].name, name) == 0)
            return verdict->metrics[i].value;
    return -1;
}

static void each_sampled_token_has_what_the_teacher_makes_of_it(void **state)
{
    (void)state;
    static const char *const scripts[] = {"{}", "{'dialect': 'vllm'}", "{'dialect': 'sglang'}"};
    for (size_t i = 0; i < COUNT(scripts); i++)
        for (uint32_t k = 0; k <= 8; k += 8) {
            struct teach one = {.score = k ? "{\"engine\":\"teacher\",\"top_k\":8}" : "{\"engine\":\"teacher\"}"};
            teach_run(&one, scripts[i]);
            const struct job_result *result = &one.job.result;
            if (result->outcome != OUTCOME_OK)
                fail_msg("%s: %s", scripts[i], result->detail);
            assert_columns(&one, k);
            assert_else_the_same(&one);
            assert_true(result->verdict.has_reward && result->verdict.reward == 0.5);
            assert_true(metric_of(&result->verdict, "teacher_tokens") == 6);
            assert_true(metric_of(&result->verdict, "teacher_seconds") > 0);
            assert_non_null(strstr(result->detail, "as the evaluator says; 6 tokens scored by "));
            teach_close(&one);
        }
}

/* Its columns are 200 KB: another thread packs them. */
static void a_long_turn_is_scored_like_a_short_one(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    struct teach one = {.score = "{\"engine\":\"teacher\"}", .many = MANY};
    teach_run(&one, "{'dialect': 'vllm', 'context': 65536}");
    if (one.job.result.outcome != OUTCOME_OK)
        fail_msg("%s", one.job.result.detail);
    const struct record_trace *trace = &one.scored.traces[1];
    const struct record_extra *column = column_of(trace, "teacher_logprobs");
    assert_true(column->rows == MANY && column->offset == strlen("again"));
    for (size_t i = 0; i < MANY; i++)
        assert_true(((const float *)column->values.data)[i] == scripted_logprob(column->offset + i, 0));
    assert_true(metric_of(&one.job.result.verdict, "teacher_tokens") == MANY + 6);
    teach_close(&one);
}

/* ---- what fails -------------------------------------------------------------------------------- */

static void another_tokenizer_is_refused_by_name_and_nothing_is_asked(void **state)
{
    (void)state;
    struct teach one = {.score = "{\"engine\":\"teacher\"}", .digest = "sha256:other"};
    teach_run(&one, "{}");
    assert_failed(&one, OUTCOME_TASK, FAULT_NONE, "its tokenizer is not that of the policy");
    assert_non_null(strstr(one.job.result.detail, "and the trace's is sha256:other"));
    json_t *log = world_log(&world);
    assert_int_equal(log_count(log, "/completion"), 0);
    json_decref(log);
    teach_close(&one);
    struct teach unknown = {.score = "{\"engine\":\"teacher\"}", .digest = ""};
    teach_run(&unknown, "{}");
    assert_failed(&unknown, OUTCOME_TASK, FAULT_NONE, "and the trace's is unknown");
    teach_close(&unknown);
}

static void what_a_teacher_cannot_take_is_the_tasks_fault(void **state)
{
    (void)state;
    struct teach one = {.score = "{\"engine\":\"teacher\"}"};
    teach_run(&one, "{'context': 10}");
    assert_failed(&one, OUTCOME_TASK, FAULT_NONE, "its context must be longer by a token than the policy's");
    teach_close(&one);
    struct teach none = {.score = "{\"engine\":\"teacher\"}"};
    teach_run(&none, "{'dialect': 'openai'}");
    assert_failed(&none, OUTCOME_TASK, FAULT_NONE, "tells no log-probabilities of given tokens");
    teach_close(&none);
    struct teach many = {.score = "{\"engine\":\"teacher\",\"top_k\":64}", .many = 530000};
    teach_run(&many, "{}");
    assert_failed(&many, OUTCOME_TASK, FAULT_NONE, "score.top_k is too much for so many tokens");
    teach_close(&many);
}

/* Half of the first trace is scored by then. */
static void a_teacher_that_breaks_off_leaves_no_half_of_a_column(void **state)
{
    (void)state;
    static const char *const faults[] = {"500", "garbage", "close"};
    for (size_t i = 0; i < COUNT(faults); i++) {
        char script[256];
        struct teach one = {.score = "{\"engine\":\"teacher\",\"timeout_s\":1}"};
        snprintf(script, sizeof(script),
                 "{'rules': [{'path': '/completion', 'times': 3}, {'path': '/completion', 'fault': '%s'}]}", faults[i]);
        teach_run(&one, script);
        assert_failed(&one, OUTCOME_INFRA, FAULT_ENGINE, "the teacher at http://");
        teach_close(&one);
    }
}

static void what_is_no_probability_is_the_engines_fault(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "{'rules': [{'path': '/completion', 'fault': 'no_chance'}]}",
        "{'dialect': 'vllm', 'rules': [{'fault': 'prompt_clamped'}]}",
        "{'dialect': 'vllm', 'rules': [{'fault': 'prompt_null'}]}",
        "{'dialect': 'vllm', 'rules': [{'fault': 'prompt_nan'}]}",
        "{'dialect': 'vllm', 'rules': [{'fault': 'prompt_tops_beyond'}]}",
        "{'dialect': 'sglang', 'rules': [{'fault': 'sgl_clamped'}]}",
    };
    for (size_t i = 0; i < COUNT(scripts); i++) {
        struct teach one = {.score = "{\"engine\":\"teacher\",\"top_k\":3,\"timeout_s\":1}"};
        teach_run(&one, scripts[i]);
        assert_failed(&one, OUTCOME_INFRA, FAULT_ENGINE, "the teacher at http://");
        teach_close(&one);
    }
}

/* It may answer others well: only the service's own limits are the engine's to keep. */
static void a_limit_that_the_task_chose_is_the_tasks(void **state)
{
    (void)state;
    static const char *const replies[] = {"'fault': 'hang'", "'delay_ms': 300"};
    for (size_t i = 0; i < COUNT(replies); i++) {
        char script[256];
        struct teach one = {.score = "{\"engine\":\"teacher\",\"timeout_s\":1}"};
        snprintf(script, sizeof(script), "{'rules': [{'path': '/completion', %s}]}", replies[i]);
        teach_run(&one, script);
        assert_failed(&one, OUTCOME_TASK, FAULT_NONE, "score.timeout_s, 1 s, was over after ");
        teach_close(&one);
    }
}

/* As if its first call had lasted longer than any may. */
static void outlast(void *arg)
{
    const struct engine *engine = world_engine(&world);
    (void)arg;
    while (LIST_EMPTY(&engine->policy.calls))
        await_sleep(1);
    fiber_expire(LIST_FIRST(&engine->policy.calls)->fiber);
}

struct part {
    void (*run)(void *arg);
    void *arg;
};

static void run_part(void *arg)
{
    const struct part *part = arg;
    part->run(part->arg);
}

static void a_call_that_outlasts_the_services_limit_is_the_engines_fault(void **state)
{
    (void)state;
    struct teach one = {.score = "{\"engine\":\"teacher\",\"timeout_s\":2}"};
    struct part parts[] = {{teach, &one}, {outlast, NULL}};
    world_open(&world, "{'rules': [{'path': '/completion', 'fault': 'hang'}]}", NULL);
    world_run(&world, run_part, parts, sizeof(parts[0]), COUNT(parts));
    record_init(&one.scored);
    assert_failed(&one, OUTCOME_INFRA, FAULT_ENGINE, "the teacher at http://");
    teach_close(&one);
}

static void teach_nothing(void *arg)
{
    struct job *job = arg;
    struct refusal no;
    job->task = task_parse(slice_from_str("{\"task\":\"t\",\"prompt\":\"p\",\"score\":{\"engine\":\"teacher\"}}"), &no);
    assert_non_null(job->task);
    job_set_outcome(job, OUTCOME_OK, "fine");
    teacher_score(job);
    task_destroy(job->task);
}

static void a_run_without_a_record_has_nothing_to_score(void **state)
{
    (void)state;
    struct job jobs[] = {{.start = {.record = {0}}}, {.start = {.record = slice_from_str("\x80 no record")}}};
    world_open(&world, "{}", NULL);
    world_run(&world, teach_nothing, jobs, sizeof(jobs[0]), COUNT(jobs));
    assert_int_equal(jobs[0].result.outcome, OUTCOME_OK);
    assert_string_equal(jobs[0].result.detail, "fine");
    assert_int_equal(jobs[1].result.outcome, OUTCOME_INFRA);
    assert_non_null(strstr(jobs[1].result.detail, "the run's record cannot be read: "));
    assert_int_equal(jobs[0].result.record.len + jobs[1].result.record.len, 0);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sampled_token_has_what_the_teacher_makes_of_it),
        cmocka_unit_test(a_long_turn_is_scored_like_a_short_one),
        cmocka_unit_test(another_tokenizer_is_refused_by_name_and_nothing_is_asked),
        cmocka_unit_test(what_a_teacher_cannot_take_is_the_tasks_fault),
        cmocka_unit_test(a_teacher_that_breaks_off_leaves_no_half_of_a_column),
        cmocka_unit_test(what_is_no_probability_is_the_engines_fault),
        cmocka_unit_test(a_limit_that_the_task_chose_is_the_tasks),
        cmocka_unit_test(a_call_that_outlasts_the_services_limit_is_the_engines_fault),
        cmocka_unit_test(a_run_without_a_record_has_nothing_to_score),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
