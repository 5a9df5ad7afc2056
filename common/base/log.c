#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/sanitize.h"

static const char *const level_names[] = {"debug", "info", "warn", "error"};
static const char *log_program = "sluice";
static enum log_level log_least = LOG_INFO;

void log_open(const char *program, enum log_level level)
{
    log_program = program;
    log_least = level;
    const char *wanted = getenv("SLUICE_LOG");
    for (unsigned i = 0; wanted && i < sizeof(level_names) / sizeof(*level_names); i++)
        if (strcmp(wanted, level_names[i]) == 0)
            log_least = (enum log_level)i;
}

/* One write per line, so that lines of several processes do not mix; what is said makes no second one. */
void log_event(enum log_level level, const char *id, const char *format, ...)
{
    if (level < log_least)
        return;
    char line[2048];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
    len += (size_t)snprintf(line + len, sizeof(line) - len, ".%03ldZ %s %s %s ", now.tv_nsec / 1000000, log_program,
                            level_names[level], id);
    va_list args;
    va_start(args, format);
    int words = vsnprintf(line + len, sizeof(line) - len - 1, format, args);
    va_end(args);
    size_t room = sizeof(line) - 2 - len, more = words > 0 ? (size_t)words : 0;
    len += sanitize(line + len, more < room ? more : room, false);
    line[len++] = '\n';
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nowhere left to say so */
}
