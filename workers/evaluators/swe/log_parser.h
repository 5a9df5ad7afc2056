/*
 * log_parser.h - from what a test runner printed to names and statuses, as the parsers of SWE-bench 5 read it: a task's
 * names are those parsers' words. Pure, and for a thread: the log is the agent's program's, some 32 MiB of it.
 * Time goes by the log's length: of a line LOG_LINE_MAX bytes are read, and a pattern has a limit of steps; a log with
 * many lines that need more has overflown.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_LOG_PARSER_H
#define SLUICE_WORKERS_EVALUATORS_SWE_LOG_PARSER_H

#include "workers/evaluators/swe/test_log.h"

struct log_parser {
    const char *name; /* a word of task.def */
    void (*parse)(struct slice text, struct test_log *ret);
    const char *pattern; /* in place of parse: of a line (log_parsers.def) */
    bool is_stripped;    /* the line, before it is matched */
    bool is_pytest;
    /* How many tests the runner says that it ran, in its own last words; -1: it does not say. NULL: it never does. */
    int64_t (*total)(struct slice text);
};

const struct log_parser *log_parser_find(const char *name); /* NULL: there is none */
void log_parser_read(const struct log_parser *parser, struct slice text, struct test_log *ret);

#endif
