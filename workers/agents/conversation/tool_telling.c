#include "workers/agents/conversation/tool_telling.h"

#include <string.h>

#include "workers/agents/formats/models.h"
#include "common/loop/loop_now.h"

int tool_telling_find_format(struct model *model, struct tool_telling *ret, struct fail *fail)
{
    struct engine_about about;
    ret->format = tool_format_find(model->run->task->agent_form);
    if (ret->format)
        return 0;
    model->call_start_ms = loop_now_ms();
    int error = engine_describe(model->run->engine, &about, fail);
    if (error < 0)
        return error;
    model->call_start_ms = 0;
    ret->format = tool_format_of_model(about.model);
    return 0;
}

int tool_telling_find_role(struct model *model, struct tool_telling *ret, struct fail *fail)
{
    const char *wanted = model->run->task->agent_tool_role, *mark = ret->format->tool_mark;
    int error = 0;
    if (mark && strcmp(wanted, "user") != 0) {
        model->call_start_ms = loop_now_ms();
        error = model_refuse_another(model, engine_marks_tools(model->run->engine, mark, &ret->is_framed, fail), fail);
    }
    if (error < 0)
        return error;
    model->call_start_ms = 0;
    ret->role = ret->is_framed || strcmp(wanted, "tool") == 0 ? TELL_TOOL : TELL_USER;
    return 0;
}

void tool_telling_say(const struct tool_telling *telling, const char *name, const struct tool_result *result,
                      struct buffer *out)
{
    const bool has_line = result->len > 0 && result->text[result->len - 1] == '\n';
    if (telling->is_framed)
        buffer_append(out, result->text, result->len - has_line);
    else
        telling->format->tell(name, result, out);
}
