#include "workers/agents/ends.h"

#include <stdarg.h>
#include <stdio.h>

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
