/*
 * log.h - programs log, libraries do not. One line an event on stderr:
 *     2026-11-21T04:00:00.000Z broker info worker.lost worker=w3 jobs=2 action=requeued
 * The id (the fourth word) is stable and can be searched for; the rest is key=value,
 * of which nothing can begin another line or steer a terminal (text.h: text_sanitize).
 *
 * As JSON the same is one object a line: {"time":...,"level":...,"program":...,"id":...} and the pairs, all strings
 * (log_json.h). No pair is called as one of these four, and none twice in an event.
 */
#ifndef SLUICE_COMMON_BASE_LOG_H
#define SLUICE_COMMON_BASE_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_TEXT, LOG_JSON };
#define LOG_FORMAT_WORDS "text|json" /* of an option of type WORD */

/*
 * `program` is borrowed; lines below `level` are not written. SLUICE_LOG=debug|info|warn|error and
 * SLUICE_LOG_FORMAT=text|json override.
 */
void log_open(const char *program, enum log_level level, enum log_format format);
void log_event(enum log_level level, const char *id, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
