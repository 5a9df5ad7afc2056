/* ends.h - how an agent ended: by itself, by a limit (ends.def), or by what went wrong (jobs/blame.h). */
#ifndef SLUICE_WORKERS_AGENTS_ENDS_H
#define SLUICE_WORKERS_AGENTS_ENDS_H

#include "workers/agents/agent.h"
#include "workers/jobs/blame.h"

enum end {
#define END(name, word, outcome, agents, doc) END_##name,
#include "workers/agents/ends.def"
#undef END
    END_COUNT
};

struct end_row {
    const char *word;
    enum outcome outcome;
    const char *agents, *doc;
};

extern const struct end_row end_rows[END_COUNT];

/* run->detail is "WORD: ..."; returns the outcome. */
enum outcome agent_end_by(struct agent_run *run, enum end end, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -ENOMEM: the record takes no more, or there is no memory. */
int agent_record_full(struct fail *fail);

/* What an error means in a run: as blame_what, but out of time only when the run is. */
enum blame_what agent_what(const struct agent_run *run, int error);
/* The outcome that blame.h gives it; run->detail and run->fault. */
enum outcome agent_failed(struct agent_run *run, enum blame_who who, enum blame_what what, const struct fail *fail);
/* The same where its sandbox could not be opened, which is nobody's doing inside, and whose fault that was. */
enum outcome agent_open_failed(struct agent_run *run, int error, const struct fail *fail);

/* run->detail; returns the outcome. */
enum outcome agent_end(struct agent_run *run, enum outcome outcome, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
