/* The ways in which verifiers are cheated, one after the other, and what they come to for each evaluator
 * (docs/tasks/cheating.md). */
#include "tests/workers/stages/plain_image.h"

#include "workers/sandbox/requests.h"

enum where { FRESH_COMMAND, FRESH_VERIFIER, AGENTS_COMMAND, AGENTS_VERIFIER, WHERE_COUNT };

static const char *const evals[WHERE_COUNT] = {
    [FRESH_COMMAND] =
        "\"kind\":\"command\",\"reward_file\":\"/logs/verifier/reward.txt\",\"command\":\"/tests/test.sh\"",
    [FRESH_VERIFIER] = "\"kind\":\"verifier\"",
    [AGENTS_COMMAND] = "\"kind\":\"command\",\"reward_file\":\"/logs/verifier/reward.txt\",\"sandbox\":\"agent\","
                       "\"command\":\"/tests/test.sh\"",
    [AGENTS_VERIFIER] = "\"kind\":\"verifier\",\"sandbox\":\"agent\""};

/* What each comes to: the verifier's own 0.25, the agent's 1 (the page says that it counts), or none. */
enum end { HOLDS, COUNTS, NO_REWARD };

struct way {
    const char *name, *agent; /* what the agent does; JSON */
    const char *check;        /* what of the verifier comes before its 0.25; JSON */
    enum end ends[WHERE_COUNT];
};

#define HOLDS_ALWAYS                                                                                                   \
    {                                                                                                                  \
        HOLDS, HOLDS, HOLDS, HOLDS                                                                                     \
    }
#define HOLDS_WHERE_FRESH                                                                                              \
    {                                                                                                                  \
        HOLDS, HOLDS, COUNTS, COUNTS                                                                                   \
    }
#define ALL_COUNT                                                                                                      \
    {                                                                                                                  \
        COUNTS, COUNTS, COUNTS, COUNTS                                                                                 \
    }

/* On an image of the task's own, of which the agent may change all. */
static const struct way ways[] = {
    {"a reward written before", "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt", "", HOLDS_ALWAYS},
    {"reward.json where the verifier writes reward.txt",
     "mkdir -p /logs/verifier; echo '{\\\"reward\\\":1}' > /logs/verifier/reward.json", "", HOLDS_ALWAYS},
    {"a link in its place", "mkdir -p /logs/verifier; echo 1 > /tmp/r; ln -s /tmp/r /logs/verifier/reward.txt", "",
     HOLDS_ALWAYS},
    {"a FIFO in its place", "mkdir -p /logs/verifier; mkfifo /logs/verifier/reward.txt", "", HOLDS_ALWAYS},
    {"a directory in its place", "mkdir -p /logs/verifier/reward.txt/x", "", HOLDS_ALWAYS},
    {"a read-only one",
     "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; chmod 444 /logs/verifier/reward.txt", "",
     HOLDS_ALWAYS},
    {"a process that writes it afterwards",
     "(until [ -e /tmp/begun ]; do sleep 0.05; done; sleep 2; echo 1 > /logs/verifier/reward.txt) > /dev/null 2>&1 &",
     "echo > /tmp/begun", HOLDS_ALWAYS},
    {"a process that writes it meanwhile",
     "(until [ -e /logs/verifier/done ]; do sleep 0.02; done; echo 1 > /logs/verifier/reward.txt; echo > /tmp/cheated) "
     "> /dev/null 2>&1 &",
     "late=1", HOLDS_WHERE_FRESH},
    {"a shell's start-up files",
     "for f in .bashrc .profile .bash_profile .bash_login; do echo 'cheat' > ~/$f; cp ~/$f "
     "/root/$f; done; export BASH_ENV=~/.bashrc ENV=~/.bashrc; mkdir -p /etc/profile.d; cp "
     "~/.bashrc /etc/profile.d/a.sh; cp ~/.bashrc /etc/bash.bashrc",
     "type cheat && exit", HOLDS_ALWAYS},
    {"a program of the image's replaced",
     "rm -f /usr/bin/cat; printf '#!/bin/bash\\\\necho right\\\\n' > /usr/bin/cat; chmod 755 /usr/bin/cat",
     "if [ $(cat /dev/null) ]; then echo 1 > /logs/verifier/reward.txt; exit; fi", ALL_COUNT},
    {"its own tests in the place of the verifier's",
     "mkdir -p /tests; printf '#!/bin/bash\\\\necho 1 > /logs/verifier/reward.txt\\\\n' > /tests/test.sh; chmod 755 "
     "/tests/test.sh",
     "", HOLDS_ALWAYS},
    {"lines that say that all passed", "echo PASSED > out; echo '{\\\"results\\\": {\\\"tests\\\": []}}' > out.json",
     "cat out; echo '>>>>> Applied Patch'; echo 'PASSED test_all'", HOLDS_ALWAYS},
};

static enum outcome run_leaving(struct agent_run *run)
{
    pid_t pid;
    struct fail fail = {0};
    const char *argv[] = {"/bin/bash", "-c", run->task->messages[0].content, NULL};
    int code = sandbox_start(run->sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail);
    if (code == 0)
        code = sandbox_wait(run->sandbox, pid, &fail);
    if (code != 0)
        fail_msg("%s: %d %s", argv[2], code, fail.text);
    run->answer = strdup("done");
    return OUTCOME_OK;
}

static void expect_end(const struct way *way, enum where where, const struct job *job, enum outcome outcome)
{
    const struct verdict *verdict = &job->result.verdict;
    const bool has_reward = verdict->has_reward && outcome == OUTCOME_OK;
    const char *detail = job->result.evaluation.is_done ? job->result.evaluation.detail : job->result.detail;
    const enum end end = !has_reward ? NO_REWARD : verdict->reward == 0.25 ? HOLDS : COUNTS;
    if (end != way->ends[where])
        fail_msg("%s, %s: %d (%g), not %d: %s", way->name, evals[where], end, verdict->reward, way->ends[where],
                 detail);
}

static void try(const struct way *way, enum where where)
{
    char json[4096];
    snprintf(
        json, sizeof(json),
        "{\"task\":\"t\",\"image\":\"%s/own\",\"prompt\":\"%s\",\"eval\":{%s,\"files\":{\"/tests/test.sh\":"
        "\"#!/bin/bash\\nmkdir -p /logs/verifier\\n%s\\necho 0.25 > /logs/verifier/reward.txt\\nif [ $late ]; then "
        "echo > /logs/verifier/done; for i in {1..40}; do [ -e /tmp/cheated ] && break; sleep 0.05; done; fi\\n\"}}}",
        directory, way->agent, evals[where], way->check);
    /* bash -c runs a script only where it may: of the evaluator "command" the task says so */
    char *mode = strstr(json, "\"files\":{\"/tests/test.sh\":");
    char with_mode[4096];
    snprintf(with_mode, sizeof(with_mode),
             "%.*s\"files\":[{\"path\":\"/tests/test.sh\",\"mode\":\"0755\",\"text\":%.*s}]}}", (int)(mode - json),
             json, (int)(strlen(mode) - strlen("\"files\":{\"/tests/test.sh\":") - 3),
             mode + strlen("\"files\":{\"/tests/test.sh\":"));
    struct job run = run_stage(STAGE_RUN, with_mode, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    if (where >= AGENTS_COMMAND) {
        assert_true(run.result.evaluation.is_done);
        expect_end(way, where, &run, run.result.evaluation.outcome);
    } else {
        struct job eval = run_stage(STAGE_EVAL, with_mode, NULL, &run.result.layer, run.result.answer);
        expect_end(way, where, &eval, eval.result.outcome);
        end_job(&eval);
    }
    end_job(&run);
}

FIBER_TEST(each_way_comes_to_what_the_page_says_it_does)
{
    make_plain_image("own");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        for (int where = 0; where < WHERE_COUNT; where++)
            try(&ways[i], (enum where)where);
}

/* With eval.trust the programs are the image's. */
FIBER_TEST(a_replaced_program_does_not_count_with_eval_trust)
{
    char json[2048];
    make_plain_image("own");
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"image\":\"%s/own\",\"prompt\":\"rm -f /usr/bin/cat; printf '#!/bin/bash\\\\necho "
             "right\\\\n' "
             "> /usr/bin/cat; chmod 755 /usr/bin/cat\",\"eval\":{\"kind\":\"verifier\",\"trust\":\"image\",\"files\":"
             "{\"/tests/test.sh\":\"#!/bin/bash\\nif [ $(cat /dev/null) ]; then echo 1; else echo 0.25; fi > "
             "/logs/verifier/reward.txt\"}}}",
             directory);
    expect_reward(json, 0.25, "reward.txt says 0.25");
}

/* ---- answers and programs: what is judged is text ---------------------------------------------------- */

static void expect_answer(const char *kind, const char *accepted, const char *answer, double reward)
{
    char json[512];
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"prompt\":\"p\",\"eval\":{\"kind\":\"%s\",\"answer\":\"%s\"}}", kind,
             accepted);
    struct job eval = run_stage(STAGE_EVAL, json, NULL, NULL, answer);
    expect(&eval, OUTCOME_OK, "");
    if (eval.result.verdict.reward != reward)
        fail_msg("%s, %s: %g: %s", kind, answer, eval.result.verdict.reward, eval.result.detail);
    end_job(&eval);
}

FIBER_TEST(an_answer_that_is_a_program_several_or_all_is_not_right)
{
    static const char *const math[] = {"\\boxed{__import__('os').system('true') or 2}",
                                       "\\boxed{2} \\boxed{3}",
                                       "\\boxed{1} or \\boxed{2} or \\boxed{3} is \\boxed{4}",
                                       "\\boxed{2 \\text{ or } 3}",
                                       "The answer is 1, 2, 3 or 4",
                                       "\\boxed{9^{9^{9^{9}}}}",
                                       "<think>\\boxed{2}</think> I do not know",
                                       "\\boxed{2"};
    static const char *const choice[] = {"A or B", "\\boxed{A, B, C, D}", "Answer: A B C D", "B. A", "ABCD"};
    for (size_t i = 0; i < sizeof(math) / sizeof(math[0]); i++)
        expect_answer("math", "2", math[i], 0);
    for (size_t i = 0; i < sizeof(choice) / sizeof(choice[0]); i++)
        expect_answer("choice", "A", choice[i], 0);
    expect_answer("exact", "Paris", "Paris, London, Rome or Berlin", 0);
    expect_answer("math", "2", "\\boxed{3} no, \\boxed{2}", 1); /* boxes that stand apart: the last counts */
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(each_way_comes_to_what_the_page_says_it_does),
        TEST(a_replaced_program_does_not_count_with_eval_trust),
        TEST(an_answer_that_is_a_program_several_or_all_is_not_right),
    };
    return cmocka_run_group_tests_name("ways to cheat", tests, NULL, NULL);
}

int main(void)
{
    run_bash = run_leaving;
    return run_as_everyone(group);
}
