/* ends.h - what ends a rollout whose agent did not end it: ends.def. */
#ifndef SLUICE_WORKERS_AGENTS_ENDS_H
#define SLUICE_WORKERS_AGENTS_ENDS_H

#include "workers/agents/agent.h"

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

#endif
