/*
 * blame.h - who is blamed: the one table (blame.def) from what failed and whose turn it was to a
 * job's outcome and fault. Stages, agents and evaluators ask it and decide nothing themselves.
 */
#ifndef SLUICE_WORKERS_JOBS_BLAME_H
#define SLUICE_WORKERS_JOBS_BLAME_H

#include "schemas/messages/message.h"

struct fail;
struct sandbox;

enum blame_who { BLAME_NOBODY, BLAME_TASK, BLAME_AGENT, BLAME_EVALUATOR, BLAME_WHO_COUNT };

enum blame_what {
#define BLAME(what, code, doc, nobody, task, agent, evaluator) BLAME_##what,
#include "workers/jobs/blame.def"
#undef BLAME
    BLAME_WHAT_COUNT
};

struct blame {
    enum outcome outcome;
    enum fault fault;
};

/* What failed, by a negative errno; a limit that `sandbox` (or NULL) broke comes before all but a
 * cancel. */
enum blame_what blame_what(int code, const struct sandbox *sandbox);
struct blame blame_get(enum blame_who who, enum blame_what what);

/*
 * An error of a tool or a sandbox, as it may go up beside those of an engine: a cancel, the time, a
 * program that does not start, a handler that is gone; all others become -EIO. `fail` has it too; its sentence stays.
 */
int blame_inside(int code, struct fail *fail);

/* Whether a file could not be written, opened or packed because of what it is and where, not of us. */
bool blame_is_file_fault(int code);

#endif
