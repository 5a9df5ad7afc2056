#include "workers/agents/conversation/age.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t behind_at(const struct age *age, uint64_t number)
{
    return age->first && number > age->first ? number - age->first : 0;
}

static bool is_too_far(const struct task *task, uint64_t behind)
{
    const int64_t most = task->limits.versions_behind;
    return most >= 0 && behind > (uint64_t)most;
}

bool age_lets(const struct age *age, const struct task *task, uint64_t number)
{
    return !is_too_far(task, behind_at(age, number));
}

int age_check(const struct age *age, const struct task *task, uint64_t number, struct fail *fail)
{
    const uint64_t behind = behind_at(age, number);
    if (age_lets(age, task, number) || strcmp(task->limits.on_stale, "mark") == 0)
        return 0;
    return fail_set(fail, -EKEYEXPIRED,
                    "the policy has gone on by %" PRIu64 " since the first turn, "
                    "limits.versions_behind is %" PRId64, behind, task->limits.versions_behind);
}

enum outcome age_outcome(const struct task *task)
{
    return strcmp(task->limits.on_stale, "refresh") == 0 ? OUTCOME_INFRA : OUTCOME_CANCELLED;
}

void age_take(struct age *age, uint64_t number)
{
    const uint64_t behind = behind_at(age, number);
    if (!age->first)
        age->first = number;
    age->most = behind > age->most ? behind : age->most;
}

bool age_is_marked(const struct age *age, const struct task *task)
{
    return is_too_far(task, age->most);
}
