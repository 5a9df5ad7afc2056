#include "workers/agents/conversation/prompt.h"

bool prompt_say(struct agent_run *run)
{
    const struct task *task = run->task;
    for (size_t i = 0; i < task->message_count; i++)
        if (!record_say(run->record, task->messages[i].role, slice_from_str(task->messages[i].content), NULL, 0))
            return false;
    return true;
}
