#include "workers/agents/ends.h"
#include "workers/agents/kinds/tool_calls.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/conversation/conversation.h"
#include "workers/tools/toolbox.h"

int tool_calls_open(struct toolbox *box, struct agent_run *run, enum outcome *ret)
{
    struct fail fail = {0};
    *box = (struct toolbox){
        .sandbox = run->sandbox, .limits = &run->task->limits, .search = run->search, .source = run->tools};
    for (size_t i = 0; i < run->task->tool_count; i++) {
        int code = toolbox_add(box, run->task->tools[i], &fail);
        if (code == 0)
            continue;
        *ret = agent_failed(run, BLAME_TASK, blame_what(code, NULL), &fail);
        return -1;
    }
    return 0;
}

static int say_call(struct agent_run *run, const char *name, const json_t *arguments, const struct tool_result *result,
                    struct fail *fail)
{
    AUTO_BUFFER words = {0};
    AUTO_FREE char *json = json_dumps(arguments, JSON_ENCODE_ANY);
    buffer_printf(&words, "%s: %s", name, json ? json : "");
    AUTO_FREE char *tool = buffer_take_str(&words);
    return json && tool && record_say(run->record, "tool", slice_of(result->text, result->len), tool, result->status)
               ? 0
               : agent_record_full(fail);
}

/* A refusal, and then how a call is written. */
static int add_example(const struct toolbox *box, const struct tool_format *format, const char *name,
                       struct tool_result *result, struct fail *fail)
{
    AUTO_BUFFER words = {0};
    const struct tool *tool = toolbox_nearest(box, name);
    if (!format || !tool)
        return 0;
    buffer_append(&words, result->text, result->len);
    buffer_printf(&words, " A call of %s looks like this:\n", tool->name);
    return tool_format_example(format, tool, &words) ? tool_say_bytes(result, buffer_peek(&words), fail)
                                                     : fail_memory(fail);
}

int tool_calls_make(struct toolbox *box, struct agent_run *run, const struct tool_format *format,
                    const struct tool_format_call *call, struct tool_result *ret, struct fail *fail)
{
    int error = toolbox_call(box, call->name, call->arguments, ret, fail);
    if (error == 0 && ret->is_refused)
        error = add_example(box, format, call->name, ret, fail);
    error = blame_inside(error, fail);
    if (error == 0)
        error = say_call(run, call->name, call->arguments, ret, fail);
    if (error < 0)
        tool_result_finish(ret);
    return error;
}
