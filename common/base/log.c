#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log_json.h"
#include "common/base/sanitize.h"

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *const format_names[] = {"text", "json"};
static const char *log_program = "sluice";
static enum log_level log_least = LOG_INFO;
static enum log_format log_form = LOG_TEXT;
static char mark[LOG_JSON_MARK_SIZE];

/* Which of the names an environment variable has; `otherwise` if it is none of them. */
static unsigned choose(const char *variable, const char *const *names, size_t count, unsigned otherwise)
{
    const char *wanted = getenv(variable);
    for (unsigned i = 0; wanted && i < count; i++)
        if (strcmp(wanted, names[i]) == 0)
            return i;
    return otherwise;
}

void log_open(const char *program, enum log_level level, enum log_format format)
{
    log_program = program;
    log_least = (enum log_level)choose("SLUICE_LOG", level_names, sizeof(level_names) / sizeof(*level_names), level);
    log_form = (enum log_format)choose("SLUICE_LOG_FORMAT", format_names, sizeof(format_names) / sizeof(*format_names),
                                       format);
    log_json_make_mark(mark);
}

enum { TIME_SIZE = 32, TEXT_SIZE = 2048 };

static void print_time(char ret[TIME_SIZE])
{
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    const size_t len = strftime(ret, TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ret + len, TIME_SIZE - len, ".%03ldZ", now.tv_nsec / 1000000);
}

/* Of `more` bytes that vsnprintf would have written into `room`. */
static size_t written(int more, size_t room) { return more < 0 ? 0 : (size_t)more < room ? (size_t)more : room - 1; }

static size_t print_text(const char *level, const char *id, const char *format, va_list args, char *line)
{
    char time[TIME_SIZE];
    print_time(time);
    size_t len = (size_t)snprintf(line, TEXT_SIZE, "%s %s %s %s ", time, log_program, level, id);
    const size_t room = TEXT_SIZE - 1 - len;
    len += sanitize(line + len, written(vsnprintf(line + len, room, format, args), room), false);
    line[len++] = '\n';
    return len;
}

static size_t print_json(const char *level, const char *id, const char *format, va_list args, char *line)
{
    char time[TIME_SIZE], marked[LOG_JSON_FORMAT_SIZE], text[TEXT_SIZE];
    print_time(time);
    log_json_mark(format, mark, marked);
    const size_t len = written(vsnprintf(text, sizeof(text), marked, args), sizeof(text));
    const struct log_json_head head = {.time = time, .level = level, .program = log_program, .id = id};
    return log_json_line(&head, slice_of(text, len), mark, line);
}

/* One write per line, so that lines of several processes do not mix; what is said makes no second one. */
void log_event(enum log_level level, const char *id, const char *format, ...)
{
    char line[LOG_JSON_LINE_SIZE];
    if (level < log_least)
        return;
    va_list args;
    va_start(args, format);
    const size_t len = (log_form == LOG_JSON ? print_json : print_text)(level_names[level], id, format, args, line);
    va_end(args);
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nowhere left to say so */
}
