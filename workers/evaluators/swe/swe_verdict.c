#include "workers/evaluators/swe/swe_verdict.h"

#include "common/base/text.h"
#include "workers/evaluators/swe/grading.h"
#include "workers/evaluators/swe/log_line.h"
#include "workers/evaluators/swe/log_parser.h"

enum { TAIL_MAX = 600 };

struct judging {
    const struct task_swe *swe;
    const struct swe_run *run;
    const struct log_parser *parser;
    struct script_log said;
    struct test_log log, witness;
    int witness_status; /* pytest's own exit status */
    struct verdict *verdict;
};

bool swe_wants_witness(const struct task_swe *swe)
{
    const struct log_parser *parser = log_parser_find(swe->log_parser);
    return strcmp(swe->witness, "pytest") == 0 || (strcmp(swe->witness, "auto") == 0 && parser && parser->is_pytest);
}

static void measure(struct verdict *verdict, const char *name, double value)
{
    verdict_add_metric(verdict, name, value, NULL);
}

/* ---- signs of a broken environment ------------------------------------------------------------------- */

/* What a program says that lacks what no patch can give it. A hint, and no verdict. */
static const char *find_environment_fault(struct slice log)
{
    static const struct {
        const char *sign, *words;
    } rows[] = {{"Cannot allocate memory", "out of memory"},
                {"OutOfMemoryError", "out of memory"},
                {"MemoryError", "out of memory"},
                {"No space left on device", "the disk is full"},
                {"Temporary failure in name resolution", "no network"},
                {"Could not resolve host", "no network"},
                {"cannot open display", "no display"},
                {"Missing X server", "no display"},
                {"Failed to launch the browser", "no browser"},
                {"Cannot connect to the Docker daemon", "no container daemon"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (log_line_find(log, rows[i].sign) >= 0)
            return rows[i].words;
    return NULL;
}

/* ---- endings ---------------------------------------------------------------------------------------------- */

static struct slice tail_of(struct slice log)
{
    log = text_strip(log);
    return log.len > TAIL_MAX ? slice_from(log, log.len - TAIL_MAX) : log;
}

static void end_unresolved(struct judging *judging, const char *why)
{
    const char *fault = find_environment_fault(judging->run->log);
    measure(judging->verdict, "environment_fault", fault ? 1 : 0);
    verdict_set_reward(judging->verdict, 0, NULL);
    if (fault)
        verdict_say(judging->verdict, "not resolved: %s (the log has a sign of a broken environment: %s)", why, fault);
    else
        verdict_say(judging->verdict, "not resolved: %s", why);
}

static void end_broken(struct judging *judging, const char *what)
{
    const struct slice tail = tail_of(judging->run->log);
    verdict_say(judging->verdict, "the evaluator is broken: %s: %.*s", what, SLICE_ARG(tail));
}

/* ---- what must hold ------------------------------------------------------------------------------------------ */

/* Whether the tests began and ended, once each; else the judging has ended. */
static bool check_marks(struct judging *judging)
{
    const struct script_log *said = &judging->said;
    if (said->begins == 0 && judging->run->timed_out)
        end_broken(judging, "its time was up before the tests began");
    else if (said->begins == 0 && judging->run->status == SCRIPT_NO_TESTS)
        end_broken(judging, "eval.swe.test_patch does not apply");
    else if (said->begins == 0)
        end_broken(judging, "the tests did not begin");
    else if (judging->run->timed_out)
        end_unresolved(judging, "the tests were stopped when the time was up");
    else if (said->begins > 1 || said->ends > 1)
        end_unresolved(judging, "a mark around the tests was printed twice");
    else if (said->ends == 0 || !said->tests.data)
        end_unresolved(judging, "the tests ended their script");
    else
        return true;
    return false;
}

/* The first of its lines is the nonce and an exit status; false: it has not seen the end,
 * or is not the witness's own. */
static bool read_witness(struct judging *judging)
{
    struct slice rest = judging->run->witness, line;
    if (rest.len == 0 || !log_line_next(&rest, &line) || !log_line_starts(line, judging->run->witness_nonce))
        return false;
    judging->witness_status = script_read_number(slice_from(line, strlen(judging->run->witness_nonce)));
    log_parser_read(judging->parser, rest, &judging->witness);
    return judging->witness_status >= 0 && !judging->witness.has_overflown;
}

static const char *find_doubt(struct judging *judging)
{
    const struct swe_run *run = judging->run;
    const struct script_log *said = &judging->said;
    if (judging->log.has_overflown)
        return "the log names more tests than can be";
    if (judging->log.count == 0)
        return "the log names no test";
    if (said->exit_status > 0 && !judging->log.has_failures)
        return "the tests' exit status is that of a failure, and the log has none";
    if (judging->parser->total && judging->parser->total(said->tests) < 1)
        return "the test runner did not come to its end: it counts no tests";
    if (run->has_witness && !run->has_begun)
        return "pytest has not loaded the witness; where the tests need not be pytest's own, eval.swe.witness is none";
    if (run->has_witness && !read_witness(judging))
        return "pytest did not come to its end";
    if (run->has_witness && judging->witness_status == 0 && judging->witness.has_failures)
        return "pytest's exit status is 0, and tests failed";
    return NULL;
}

/* ---- the verdict ------------------------------------------------------------------------------------------- */

static double fraction(size_t good, size_t of) { return of ? (double)good / (double)of : 1; }

static void grade(struct judging *judging)
{
    struct swe_grade grade;
    struct verdict *verdict = judging->verdict;
    const char *doubt = find_doubt(judging);
    const bool has_witness = judging->run->has_witness && !doubt;
    swe_grade(judging->swe, &judging->log, has_witness ? &judging->witness : NULL, verdict, &grade);
    measure(verdict, "tests_logged", (double)judging->log.count);
    measure(verdict, "fail_to_pass", fraction(grade.fail_to_pass_good, grade.fail_to_pass));
    measure(verdict, "pass_to_pass", fraction(grade.pass_to_pass_good, grade.pass_to_pass));
    measure(verdict, "doubtful", doubt && grade.is_resolved);
    if (!doubt && grade.is_resolved) {
        verdict_set_reward(verdict, 1, NULL);
        verdict_say(verdict, "resolved: %zu of %zu tests that must pass, and %zu of %zu that must not fail",
                    grade.fail_to_pass_good, grade.fail_to_pass, grade.pass_to_pass_good, grade.pass_to_pass);
        return;
    }
    const bool is_missed = grade.first[0] && !judging->log.has_overflown; /* first: "" where it is resolved */
    end_unresolved(judging, is_missed ? grade.first : doubt ? doubt : "");
}

void swe_judge(const struct task_swe *swe, const struct swe_run *run, struct verdict *verdict)
{
    struct judging judging = {.swe = swe, .run = run, .parser = log_parser_find(swe->log_parser), .verdict = verdict};
    judging.log.by_name.seed = judging.witness.by_name.seed = run->seed;
    script_read_log(swe, run->log, run->nonce, &judging.said);
    measure(verdict, "timed_out", run->timed_out);
    measure(verdict, "log_cut", run->is_cut);
    measure(verdict, "test_exit_status", judging.said.exit_status);
    if (check_marks(&judging)) {
        log_parser_read(judging.parser, judging.said.tests, &judging.log);
        grade(&judging);
    }
    test_log_finish(&judging.log);
    test_log_finish(&judging.witness);
}
