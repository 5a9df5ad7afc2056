/*
 * steps_world.h - runs of tasks with steps, in real sandboxes: each step's prompt is a command, which the agent runs
 * and of which it kills nothing; the verifier of a step that says none of its own counts the lines of f that are right.
 */
#ifndef SLUICE_TESTS_WORKERS_STAGES_STEPS_WORLD_H
#define SLUICE_TESTS_WORKERS_STAGES_STEPS_WORLD_H

#include "tests/workers/stages/kinds_world.h"

#include "schemas/trajectory/trajectory.h"
#include "workers/sandbox/requests.h"

/* Its prompt is a command, of which nothing is killed at its end; a trace of two tokens for it. */
static inline enum outcome run_leaving(struct agent_run *run)
{
    pid_t pid;
    struct fail fail = {0};
    const char *argv[] = {"/bin/bash", "-c", run->task->messages[0].content, NULL};
    struct sandbox_exec exec = {.argv = argv};
    const struct record_turn prompt = {.role = "prompt"}, reply = {.role = "assistant", .finish = "stop"};
    assert_true(record_start_trace(run->record, run->reason ? run->reason : ""));
    assert_true(record_append(run->record, &prompt, (uint32_t[]){1, 2}, NULL, 2, false));
    assert_true(record_append(run->record, &reply, (uint32_t[]){3}, NULL, 1, true));
    int code = sandbox_start(run->sandbox, &exec, &pid, &fail);
    if (code == 0)
        code = sandbox_wait(run->sandbox, pid, &fail);
    record_say(run->record, "user", slice_from_str(run->task->messages[0].content), NULL, 0);
    run->answer = strdup(run->task->messages[0].content);
    snprintf(run->detail, sizeof(run->detail), "%s", code < 0 ? fail.text : "ended by itself");
    snprintf(run->end, sizeof(run->end), "%s", code == -ETIMEDOUT ? "time" : "done");
    return code == -ETIMEDOUT ? OUTCOME_AGENT : code < 0 ? OUTCOME_INFRA : OUTCOME_OK;
}

#define REWARD(what) "#!/bin/bash\\n" what " > /logs/verifier/reward.txt\\n"
#define EVALUATED(before, after)                                                                                       \
    "\"eval\":{\"kind\":\"verifier\"," before "\"files\":{\"/tests/test.sh\":\"" REWARD("grep -c right f") "\"}" after \
                                                                                                           "}"
#define STEP(name, prompt, more) "{\"name\":\"" name "\",\"prompt\":\"" prompt "\"" more "}"
#define TEST_SH(what) ",\"eval\":{\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\n" what "\\n\"}}"

/* What it must come to; the job is for end_job. */
static inline struct job run_steps(const char *json, enum outcome outcome, enum outcome evaluated, const char *words)
{
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    const struct job_evaluation *evaluation = &run.result.evaluation;
    if (run.result.outcome != outcome || !evaluation->is_done)
        fail_msg("%s: %s", outcome_wire(run.result.outcome), run.result.detail);
    if (evaluation->outcome != evaluated || !strstr(evaluation->detail, words))
        fail_msg("%s: %s, not %s: %s", outcome_wire(evaluation->outcome), evaluation->detail, outcome_wire(evaluated),
                 words);
    assert_true(run.result.verdict.has_reward == (evaluated == OUTCOME_OK));
    assert_int_equal(run.task->step_count > 0, 1); /* the whole again */
    return run;
}

static inline void expect_part(const struct job *run, const char *name, double value, double weight)
{
    const struct verdict *verdict = &run->result.verdict;
    for (size_t i = 0; i < verdict->part_count; i++)
        if (strcmp(verdict->parts[i].name, name) == 0) {
            if (verdict->parts[i].value != value || verdict->parts[i].weight != weight)
                fail_msg("%s is %g of weight %g", name, verdict->parts[i].value, verdict->parts[i].weight);
            return;
        }
    fail_msg("there is no part %s", name);
}

static const char *evaluated_in; /* "agent" where a step was, in the agent's own sandbox */

static inline void expect_rewards(const char *json, double reward, const char *words)
{
    struct job run = run_steps(json, OUTCOME_OK, OUTCOME_OK, words);
    if (run.result.verdict.reward != reward)
        fail_msg("%g, not %g: %s", run.result.verdict.reward, reward, run.result.evaluation.detail);
    assert_string_equal(run.result.verdict.sandbox ? run.result.verdict.sandbox : "", evaluated_in);
    end_job(&run);
}

#define RIGHT STEP("a", "echo right > f", "")
#define WRONG STEP("b", "echo wrong > f", "")
#define NEXT STEP("next", "echo right > f", "")

#endif
