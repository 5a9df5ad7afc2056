#include "workers/agents/ends.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "workers/runtime/fiber.h"

const struct end_row end_rows[END_COUNT] = {
#define END(name, word, outcome, agents, doc) {word, OUTCOME_##outcome, agents, doc},
#include "workers/agents/ends.def"
#undef END
};

enum outcome agent_end_by(struct agent_run *run, enum end end, const char *format, ...)
{
    const struct end_row *row = &end_rows[end];
    snprintf(run->end, sizeof(run->end), "%s", row->word);
    const size_t len = (size_t)snprintf(run->detail, sizeof(run->detail), "%s: ", row->word);
    va_list args;
    va_start(args, format);
    vsnprintf(run->detail + len, sizeof(run->detail) - len, format, args);
    va_end(args);
    return row->outcome;
}

int agent_record_full(struct fail *fail) { return fail_set(fail, -ENOMEM, "out of memory, or the record is full"); }

/* ---- by itself, and by what went wrong ------------------------------------------------------------ */

enum outcome agent_end(struct agent_run *run, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run->detail, sizeof(run->detail), format, args);
    va_end(args);
    strcpy(run->end, outcome == OUTCOME_OK ? "done" : "");
    return outcome;
}

/* `format` has one %s, for `what`. */
static enum outcome end_as(struct agent_run *run, enum outcome outcome, const char *end, const char *format,
                           const char *what)
{
    agent_end(run, outcome, format, what);
    snprintf(run->end, sizeof(run->end), "%s", end);
    return outcome;
}

enum blame_what agent_what(const struct agent_run *run, int error)
{
    const enum blame_what what = blame_what(error, run->sandbox);
    return what == BLAME_TIME && !fiber_is_late() ? BLAME_SYSTEM : what;
}

enum outcome agent_failed(struct agent_run *run, enum blame_who who, enum blame_what what, const struct fail *fail)
{
    const struct blame blame = blame_get(who, what);
    run->fault = blame.fault;
    switch (what) {
    case BLAME_CANCEL: return agent_end(run, blame.outcome, "cancelled");
    case BLAME_LIMIT:
        return end_as(run, blame.outcome, "limit", "%s: the sandbox used more than its limit",
                      sandbox_breach(run->sandbox));
    case BLAME_TIME: return end_as(run, blame.outcome, "time", "time: limits.run_s is used up%s", "");
    case BLAME_CONTEXT: return end_as(run, blame.outcome, "context", "context: %s", fail->text);
    case BLAME_STALE: return end_as(run, staleness_outcome(run->task), "stale", STALE_MARK "%s", fail->text);
    default: return agent_end(run, blame.outcome, "%s", fail->text);
    }
}

enum outcome agent_open_failed(struct agent_run *run, int error, const struct fail *fail)
{
    const enum outcome outcome = agent_failed(run, BLAME_NOBODY, agent_what(run, error), fail);
    if (outcome != OUTCOME_CANCELLED && run->open_fault != FAULT_NONE)
        run->fault = run->open_fault;
    return outcome;
}
