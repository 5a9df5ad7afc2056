/*
 * log_json.h - an event of the log as one JSON object, for log.c.
 *
 * The pairs of an event are where its format, which is the program's own, says that they begin: in front of each a mark
 * is put before it is filled in, which nobody else knows. So text of others that looks like a pair, or ends a quote,
 * stays within the value that it is of. All values are strings; what would steer a terminal is escaped.
 */
#ifndef SLUICE_COMMON_BASE_LOG_JSON_H
#define SLUICE_COMMON_BASE_LOG_JSON_H

#include "common/base/slice.h"

enum { LOG_JSON_MARK_SIZE = 12, LOG_JSON_FORMAT_SIZE = 1024, LOG_JSON_LINE_SIZE = 4096 /* PIPE_BUF: one write */ };

/* What is put before pairs in this process: its length with the NUL is LOG_JSON_MARK_SIZE. */
void log_json_make_mark(char mark[LOG_JSON_MARK_SIZE]);
/* The format with a mark before each pair; one that is too long has none from there on. */
void log_json_mark(const char *format, const char *mark, char ret[LOG_JSON_FORMAT_SIZE]);

struct log_json_head {
    const char *time, *level, *program, *id;
};
/* The line, with its end; `text`: the marked format, filled in, perhaps cut. Pairs that do not fit are cut, and the
 * object is whole. */
size_t log_json_line(const struct log_json_head *head, struct slice text, const char *mark,
                     char ret[LOG_JSON_LINE_SIZE]);

#endif
