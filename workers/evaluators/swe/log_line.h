/*
 * log_line.h - lines of a log and the words of a line, as Python's str has them: a line ends with \n, \r\n or \r; what
 * separates words is Unicode's white space. Slices are of the log. Of a line LOG_LINE_MAX bytes are read.
 */
#ifndef SLUICE_WORKERS_EVALUATORS_SWE_LOG_LINE_H
#define SLUICE_WORKERS_EVALUATORS_SWE_LOG_LINE_H

#include "common/base/slice.h"

enum { LOG_LINE_MAX = 16384 };

/* The next line, taken off *rest; false behind the last. */
bool log_line_next(struct slice *rest, struct slice *ret);
/* The next word, taken off *rest; empty: there is none. */
struct slice log_line_word(struct slice *rest);
/* What stands before the line's last word, without the blanks between; and that word. */
struct slice log_line_last_word(struct slice line, struct slice *ret_before);

bool log_line_starts(struct slice line, const char *with);
bool log_line_ends(struct slice line, const char *with);
/* Where `what` stands first; -1: nowhere. */
ptrdiff_t log_line_find(struct slice line, const char *what);
static inline struct slice slice_from(struct slice s, size_t at) { return slice_of(s.data + at, s.len - at); }

/* A line that was changed. */
struct log_scratch {
    uint8_t bytes[LOG_LINE_MAX];
};
/* The line with `to`, which is no longer than `what`, for each `what`; in scratch, which may hold the line. */
struct slice log_line_replace(struct slice line, const char *what, const char *to, struct log_scratch *scratch);

#endif
