#include "workers/jobs/shaping.h"

#include <stdio.h>

double shaping_penalty(const struct task_shaping *shaping, uint64_t sampled_tokens)
{
    if (shaping->max_tokens == 0 || sampled_tokens + shaping->buffer_tokens <= shaping->max_tokens)
        return 0;
    if (sampled_tokens >= shaping->max_tokens)
        return -shaping->penalty;
    const uint64_t exceeded = sampled_tokens - (shaping->max_tokens - shaping->buffer_tokens);
    return -(double)exceeded / (double)shaping->buffer_tokens * shaping->penalty;
}

/* Behind the evaluator's words, where they leave room. */
static void say(struct job *job, const char *words)
{
    char *detail = job->result.detail;
    const size_t len = strlen(detail), room = sizeof(job->result.detail) - len;
    if (strlen(words) + 3 <= room)
        snprintf(detail + len, room, "%s%s", len ? "; " : "", words);
}

static void penalize(struct job *job)
{
    struct job_result *result = &job->result;
    char words[128];
    const double penalty = shaping_penalty(&job->task->shaping, job->start.sampled_tokens);
    if (!result->verdict.has_reward || penalty == 0)
        return;
    result->has_raw_reward = true;
    result->raw_reward = result->verdict.reward;
    result->verdict.reward += penalty;
    snprintf(words, sizeof(words), "%.4g for a length of %llu tokens", penalty,
             (unsigned long long)job->start.sampled_tokens);
    say(job, words);
}

void shaping_apply(struct job *job)
{
    struct job_result *result = &job->result;
    if (!task_is_shaped(job->task) || result->outcome != OUTCOME_OK)
        return;
    if (!job->start.has_sampled_tokens || !job->start.has_truncated) {
        job_set_outcome(job, OUTCOME_INFRA,
                        "the task's shaping asks how long the run was, and its worker did not say: "
                        "upgrade the run workers, and submit the task again");
        return;
    }
    penalize(job);
    result->filtered = strcmp(job->task->shaping.truncated, "filter") == 0 && job->start.truncated;
    if (result->filtered)
        say(job, "cut off by a limit on tokens, and filtered");
}
