#include "workers/job.h"

#include <stdarg.h>
#include <stdio.h>

#include "workers/text.h"

void job_end(struct job *job, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(job->result.detail, sizeof(job->result.detail), format, args);
    va_end(args);
    text_repair(job->result.detail);
    job->result.outcome = outcome;
}
