/*
 * agent_world.h - one agent over one task beside an engine, for tests; and the check that its
 * record is, id for id, what the engine was asked and what it answered.
 */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_AGENT_WORLD_H
#define SLUICE_TESTS_WORKERS_AGENTS_AGENT_WORLD_H

#include "tests/workers/engines/engine_world.h"
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <math.h>

#include "workers/agents/agent.h"
#include "workers/agents/kinds/agents.h"
#include "workers/jobs/blame.h"
#include "workers/sandbox/requests.h"

struct attempt {
    const char *json;                /* the task */
    const struct sandbox_plan *plan; /* NULL: on the host's image */
    int64_t deadline_ms, cancel_after_ms;
    struct task *task;
    struct record record;
    struct agent_run run;
    enum outcome outcome;
    bool keep_sandbox; /* close_attempt closes it */
};

static inline struct task *parse_task(const char *json)
{
    struct refusal no = {0};
    struct task *task = task_parse(slice_from_str(json), &no);
    if (!task)
        fail_msg("%s: %s: %s", json, no.field, no.text);
    return task;
}

/* For an agent that begins without one. */
static inline int attempt_open(struct agent_run *run, struct fail *fail)
{
    const struct attempt *attempt = run->open_arg;
    (void)fail;
    run->sandbox = attempt->plan ? open_sandbox(attempt->plan) : open_host();
    return 0;
}

static inline int attempt_put(struct agent_run *run, const struct task_file *files, size_t count, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < count && code == 0; i++)
        code = sandbox_write_file(run->sandbox, files[i].path, files[i].content, files[i].content_len, files[i].mode,
                                  fail);
    return blame_is_file_fault(code) ? fail_set(fail, -EINVAL, "cannot write %s", files[0].path) : code;
}

static inline void attempt_fiber(void *arg)
{
    struct attempt *attempt = arg;
    const struct agent *agent = agent_find(attempt->task->agent_kind);
    assert_non_null(agent);
    attempt->run = (struct agent_run){.task = attempt->task,
                                      .engine = world_engine(fiber_world),
                                      .sandbox = !agent->needs_sandbox ? NULL
                                                 : attempt->plan       ? open_sandbox(attempt->plan)
                                                                       : open_host(),
                                      .open_sandbox = attempt_open,
                                      .open_arg = attempt,
                                      .put_files = attempt_put,
                                      .record = &attempt->record};
    if (attempt->deadline_ms)
        fiber_push_deadline(clock_ms() + attempt->deadline_ms);
    attempt->outcome = agent->run(&attempt->run);
    if (attempt->deadline_ms)
        fiber_pop_deadline();
    if (!attempt->keep_sandbox)
        sandbox_close(&attempt->run.sandbox);
}

static inline void attempt_run(struct world *world, struct attempt *attempt)
{
    AUTO_FREE char *json = strdup(attempt->json);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    attempt->task = parse_task(json);
    record_init(&attempt->record);
    world_run(world, attempt_fiber, attempt, 0, 1);
    struct refusal no = {0};
    if (!record_check(&attempt->record, &no))
        fail_msg("the record is refused: %s: %s", no.field, no.text);
}

static inline void attempt_finish(struct attempt *attempt)
{
    sandbox_close(&attempt->run.sandbox);
    record_finish(&attempt->record);
    task_destroy(attempt->task);
    free(attempt->run.answer);
    attempt->run.answer = NULL;
}

static inline void assert_ended(const struct attempt *attempt, enum outcome outcome, const char *words)
{
    if (attempt->outcome != outcome || !strstr(attempt->run.detail, words))
        fail_msg("ended %s (%s), not %s (%s)", outcome_wire(attempt->outcome), attempt->run.detail,
                 outcome_wire(outcome), words);
}

/* ---- the record against the engine's own log ---------------------------------------------- */

static inline bool is_sampling(const json_t *line)
{
    const json_t *request = json_object_get(line, "request");
    return strcmp(json_string_value(json_object_get(line, "path")), "/completion") == 0 &&
           json_integer_value(json_object_get(line, "status")) == 200 && !json_object_get(request, "logit_bias");
}

static inline void assert_same_ids(const json_t *ids, const uint32_t *expected, size_t count)
{
    assert_int_equal(json_array_size(ids), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(json_integer_value(json_array_get(ids, i)), expected[i]);
}

/*
 * The entries of an answer are for those tokens of the turn, in order, that end a character:
 * each is found with its own id and exactly its log-probability. Returns how many tokens had none.
 */
static inline size_t assert_same_logprobs(const json_t *entries, const struct record_trace *trace,
                                          const struct record_turn *turn)
{
    size_t next = 0, missing = 0;
    for (size_t i = turn->offset; i < turn->offset + turn->length; i++) {
        const json_t *entry = json_array_get(entries, next);
        float reported = (float)json_number_value(json_object_get(entry, "logprob"));
        if (entry && json_integer_value(json_object_get(entry, "id")) == trace->token_ids[i] &&
            reported == trace->logprobs[i])
            next++;
        else
            missing++;
        assert_true(trace->mask[i] == 1 && trace->logprobs[i] <= 0 && isfinite(trace->logprobs[i]));
    }
    assert_int_equal(next, json_array_size(entries));
    return missing;
}

/* The next line of the log that tells of sampling, and *at behind it; NULL: there is none. */
static inline const json_t *next_sampling(const json_t *log, size_t *at)
{
    while (*at < json_array_size(log)) {
        const json_t *line = json_array_get(log, (*at)++);
        if (is_sampling(line))
            return line;
    }
    return NULL;
}

/* Returns the tokens that had no entry. */
static inline size_t assert_trace_is_the_log(const struct record_trace *trace, const json_t *log, size_t *at)
{
    size_t missing = 0;
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct record_turn *turn = &trace->turns[i];
        if (strcmp(turn->role, "assistant") != 0)
            continue;
        const json_t *line = next_sampling(log, at), *answer = json_object_get(line, "answer");
        assert_non_null(line);
        assert_same_ids(json_object_get(json_object_get(line, "request"), "prompt"), trace->token_ids, turn->offset);
        assert_same_ids(json_object_get(answer, "tokens"), trace->token_ids + turn->offset, turn->length);
        missing += assert_same_logprobs(json_object_get(answer, "completion_probabilities"), trace, turn);
    }
    return missing;
}

/*
 * Every sampled turn of every trace: its prompt as sent is all of the trace before it, its ids and
 * log-probabilities are those of the answer, and nothing else was sampled. A trace but the first
 * says why it starts. Returns tokens that had no entry.
 */
static inline size_t assert_record_is_the_log(const struct record *record, const struct world *world)
{
    json_t *log = world_log(world);
    size_t at = 0, missing = 0;
    assert_true(record->trace_count > 0);
    for (size_t i = 0; i < record->trace_count; i++) {
        assert_true((record->traces[i].reason[0] != '\0') == (i > 0));
        missing += assert_trace_is_the_log(&record->traces[i], log, &at);
    }
    assert_null(next_sampling(log, &at));
    json_decref(log);
    return missing;
}

/* The i-th turn in this role, of all traces. */
static inline const struct record_turn *turn_in_role(const struct record *record, const char *role, size_t which)
{
    for (size_t t = 0; t < record->trace_count; t++)
        for (size_t i = 0; i < record->traces[t].turn_count; i++)
            if (strcmp(record->traces[t].turns[i].role, role) == 0 && which-- == 0)
                return &record->traces[t].turns[i];
    return NULL;
}

static inline size_t count_turns(const struct record *record, const char *role)
{
    size_t count = 0;
    while (record->trace_count && turn_in_role(record, role, count))
        count++;
    return count;
}

/* The bytes of a turn of the first trace, without the special tokens. */
static inline char *turn_text(const struct record *record, const char *role, size_t which)
{
    const struct record_trace *trace = &record->traces[0];
    const struct record_turn *turn = turn_in_role(record, role, which);
    AUTO_BUFFER bytes = {0};
    assert_non_null(turn);
    for (size_t k = turn->offset; k < turn->offset + turn->length; k++)
        if (trace->token_ids[k] < 256)
            buffer_append(&bytes, &(uint8_t){(uint8_t)trace->token_ids[k]}, 1);
    return buffer_take_str(&bytes);
}

/* The which-th message in this role. */
static inline const struct record_message *message_in_role(const struct record *record, const char *role, size_t which)
{
    for (size_t i = 0; i < record->message_count; i++)
        if (strcmp(record->messages[i].role, role) == 0 && which-- == 0)
            return &record->messages[i];
    fail_msg("there is no such message");
    return NULL;
}

#endif
