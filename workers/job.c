#include "workers/job.h"

#include <stdarg.h>
#include <stdio.h>

#include "workers/text.h"

static void end(struct job *job, enum outcome outcome, enum fault fault, const char *format,
                va_list args)
{
    vsnprintf(job->result.detail, sizeof(job->result.detail), format, args);
    text_repair(job->result.detail);
    job->result.outcome = outcome;
    job->result.fault = fault;
}

void job_end(struct job *job, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(job, outcome, FAULT_NONE, format, args);
    va_end(args);
}

void job_fail(struct job *job, enum outcome outcome, enum fault fault, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(job, outcome, fault, format, args);
    va_end(args);
}
