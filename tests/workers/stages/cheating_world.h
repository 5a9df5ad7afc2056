/*
 * cheating_world.h - ways in which a verifier is cheated, each tried on every evaluator that runs a command, and what
 * it comes to (docs/tasks/cheating.md). An agent does what a shell may; then a script judges, which has 0.25 to give,
 * and gives 1 where `check`, a part of it, says "win". By its exit status alone it is 1 (0) or 0 (1).
 */
#ifndef SLUICE_TESTS_WORKERS_STAGES_CHEATING_WORLD_H
#define SLUICE_TESTS_WORKERS_STAGES_CHEATING_WORLD_H

#include <jansson.h>

#include "tests/workers/stages/leaving_agent.h"

enum where { FRESH_COMMAND, FRESH_STATUS, FRESH_VERIFIER, AGENTS_COMMAND, AGENTS_STATUS, AGENTS_VERIFIER, WHERE_COUNT };

#define BY_FILE "'kind':'command','command':'/tests/test.sh','reward_file':'/logs/verifier/reward.txt'"
#define BY_STATUS "'kind':'command','command':'/tests/test.sh'"
#define IN_AGENTS ",'sandbox':'agent'"

static const struct {
    const char *name, *eval; /* JSON, with ' for " */
    bool is_status, is_agents;
} judges[WHERE_COUNT] = {
    [FRESH_COMMAND] = {"command, reward_file", "{" BY_FILE "}", false, false},
    [FRESH_STATUS] = {"command, exit status", "{" BY_STATUS "}", true, false},
    [FRESH_VERIFIER] = {"verifier", "{'kind':'verifier'}", false, false},
    [AGENTS_COMMAND] = {"command, reward_file, there", "{" BY_FILE IN_AGENTS "}", false, true},
    [AGENTS_STATUS] = {"command, exit status, there", "{" BY_STATUS IN_AGENTS "}", true, true},
    [AGENTS_VERIFIER] = {"verifier, there", "{'kind':'verifier'" IN_AGENTS "}", false, true},
};

/* What it comes to: the verifier's own 0.25 (0 by its exit status), the agent's 1, or no reward. */
enum end { HOLDS, COUNTS, NO_REWARD };
static const char *const end_words[] = {"it holds", "it counts", "there is no reward"};

struct way {
    const char *name, *agent, *check;
    enum end ends[WHERE_COUNT];
    const char *limits; /* of the task, JSON with ' for "; NULL */
};

#define ENDS(command, status, verifier, agents_command, agents_status, agents_verifier)                                \
    {                                                                                                                  \
        command, status, verifier, agents_command, agents_status, agents_verifier                                      \
    }
#define HOLDS_ALWAYS ENDS(HOLDS, HOLDS, HOLDS, HOLDS, HOLDS, HOLDS)
#define COUNTS_ALWAYS ENDS(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)

static json_t *json_of(const char *text)
{
    AUTO_FREE char *json = strdup(text);
    for (char *at = json; *at; at++)
        if (*at == '\'')
            *at = '"';
    json_t *value = json_loads(json, 0, NULL);
    assert_non_null(value);
    return value;
}

static char *script_of(const char *check, bool is_status)
{
    static const char reward[] = "echo 0.25 > /logs/verifier/reward.txt\nif [ $late ]; then\n"
                                 "  echo > /logs/verifier/done\n  for i in {1..40}; do\n"
                                 "    [ -e /tmp/cheated ] && break\n    sleep 0.05\n  done\nfi\n";
    char *script = NULL;
    const int len = is_status
                        ? asprintf(&script, "#!/bin/bash\nwin() { exit 0; }\n%s\nexit 1\n", check)
                        : asprintf(&script,
                                   "#!/bin/bash\nmkdir -p /logs/verifier\nwin() { echo 1 > /logs/verifier/reward.txt; "
                                   "exit 0; }\n%s\n%s",
                                   check, reward);
    assert_true(len > 0);
    return script;
}

/* `image`: NULL is the host's. The caller frees it. */
static char *task_of(const struct way *way, const char *check, enum where where, const char *image)
{
    AUTO_FREE char *script = script_of(check, judges[where].is_status);
    json_t *eval = json_of(judges[where].eval);
    json_t *task = json_pack("{s:s, s:s, s:o}", "task", "t", "prompt", way->agent, "eval", eval);
    assert_int_equal(
        json_object_set_new(eval, "files",
                            json_pack("[{s:s, s:s, s:s}]", "path", "/tests/test.sh", "mode", "0755", "text", script)),
        0);
    if (image)
        json_object_set_new(task, "image", json_string(image));
    if (way->limits)
        json_object_set_new(task, "limits", json_of(way->limits));
    char *text = json_dumps(task, JSON_COMPACT);
    json_decref(task);
    assert_non_null(text);
    return text;
}

static void expect_way(const struct way *way, enum where where, enum end expected, const struct job *job,
                       enum outcome outcome, const char *detail)
{
    const struct verdict *verdict = &job->result.verdict;
    const double own = judges[where].is_status ? 0 : 0.25;
    const bool has_reward = verdict->has_reward && outcome == OUTCOME_OK;
    const enum end end = !has_reward ? NO_REWARD : verdict->reward == own ? HOLDS : COUNTS;
    if (end != expected || (end == COUNTS && verdict->reward != 1) || (end == NO_REWARD && outcome != OUTCOME_TASK))
        fail_msg("%s, %s: %s, and not %s: %g, %s: %s", way->name, judges[where].name, end_words[end],
                 end_words[expected], verdict->reward, outcome_wire(outcome), detail);
}

static void try_way(const struct way *way, const char *check, enum where where, enum end expected, const char *image)
{
    AUTO_FREE char *text = task_of(way, check, where, image);
    struct job run = run_stage(STAGE_RUN, text, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "ended by itself");
    if (judges[where].is_agents) {
        assert_true(run.result.evaluation.is_done);
        expect_way(way, where, expected, &run, run.result.evaluation.outcome, run.result.evaluation.detail);
    } else {
        struct job eval = run_stage(STAGE_EVAL, text, NULL, &run.result.layer, run.result.answer);
        expect_way(way, where, expected, &eval, eval.result.outcome, eval.result.detail);
        end_job(&eval);
    }
    end_job(&run);
}

#endif
