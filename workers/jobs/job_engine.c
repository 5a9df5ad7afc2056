#include "workers/jobs/job_engine.h"

#include <errno.h>
#include <stdio.h>

#include "schemas/messages/message_max.h"
#include "workers/engines/engines.h"
#include "workers/jobs/blame.h"

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

void job_engine_failed(struct job *job, const struct engine *engine, const char *who, int code, const struct fail *fail,
                       const char *hint)
{
    enum blame_what what = blame_what(code, NULL);
    if (what == BLAME_TIME || (what == BLAME_SYSTEM && code != -ENOMEM))
        what = BLAME_ENGINE;
    const struct blame blame = blame_get(BLAME_EVALUATOR, what);
    job_set_fault(job, blame.outcome, blame.fault, "%s at %s: %s%s", who, engine_base_url(engine), fail->text,
                  what == BLAME_CONTEXT ? hint : "");
}
