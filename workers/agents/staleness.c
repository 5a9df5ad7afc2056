#include "workers/agents/staleness.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t behind_at(const struct staleness *age, uint64_t number)
{
    return age->first && number > age->first ? number - age->first : 0;
}

static bool is_too_far(const struct task *task, uint64_t behind)
{
    const int64_t most = task->limits.versions_behind;
    return most >= 0 && behind > (uint64_t)most;
}

bool staleness_lets(const struct staleness *age, const struct task *task, uint64_t number)
{
    return !is_too_far(task, behind_at(age, number));
}

int staleness_check(const struct staleness *age, const struct task *task, uint64_t number, struct fail *fail)
{
    const uint64_t behind = behind_at(age, number);
    if (staleness_lets(age, task, number) || strcmp(task->limits.on_stale, "mark") == 0)
        return 0;
    return fail_set(fail, -EKEYEXPIRED,
                    "the policy has gone on by %" PRIu64 " since the first turn, "
                    "limits.versions_behind is %" PRId64,
                    behind, task->limits.versions_behind);
}

enum outcome staleness_outcome(const struct task *task)
{
    return strcmp(task->limits.on_stale, "refresh") == 0 ? OUTCOME_INFRA : OUTCOME_CANCELLED;
}

void staleness_take(struct staleness *age, uint64_t number)
{
    const uint64_t behind = behind_at(age, number);
    if (!age->first)
        age->first = number;
    age->most = behind > age->most ? behind : age->most;
    if (number && (!age->oldest || number < age->oldest))
        age->oldest = number;
}

bool staleness_is_marked(const struct staleness *age, const struct task *task) { return is_too_far(task, age->most); }
