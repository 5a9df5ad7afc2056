#include "workers/agents/conversation/prompt.h"

bool prompt_say_messages(struct record *record, const struct task_message *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!record_say(record, messages[i].role, slice_from_str(messages[i].content), NULL, 0))
            return false;
    return true;
}

bool prompt_say(struct agent_run *run)
{
    return prompt_say_messages(run->record, run->task->messages, run->task->message_count);
}
