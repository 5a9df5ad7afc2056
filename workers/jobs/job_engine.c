#include "workers/jobs/job_engine.h"

#include <stdio.h>

#include "schemas/messages/message_max.h"
#include "workers/engines/engines.h"

struct engine *job_find_engine(struct job *job, const char *who)
{
    char url[MESSAGE_MAX(job_start, engine) + 1];
    if (!job->start.has_engine) {
        job_set_outcome(job, OUTCOME_INFRA, "%s needs an engine and the job names none", who);
        return NULL;
    }
    snprintf(url, sizeof(url), "%.*s", SLICE_ARG(job->start.engine));
    struct engine *engine = engines_get(job->context->engines, url);
    if (!engine)
        job_set_fault(job, OUTCOME_INFRA, FAULT_NODE, "no engine can be made for %s: out of memory", url);
    return engine;
}
