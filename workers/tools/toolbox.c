#include "workers/tools/toolbox.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/nearest.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/spent.h"
#include "workers/tools/arguments.h"
#include "workers/tools/tools.h"

/* ---- the box ------------------------------------------------------------------------------ */

static bool find(const struct toolbox *box, const char *name, size_t *ret)
{
    for (*ret = 0; *ret < box->count; ++*ret)
        if (strcmp(box->tools[*ret]->name, name) == 0)
            return true;
    return false;
}

const struct tool *toolbox_nearest(const struct toolbox *box, const char *name)
{
    struct nearest nearest = {.wanted = slice_from_str(name)};
    const struct tool *best = NULL;
    for (size_t i = 0; i < box->count; i++) {
        nearest_offer_str(&nearest, box->tools[i]->name);
        if (slice_is(nearest.name, box->tools[i]->name))
            best = box->tools[i];
    }
    return best;
}

int toolbox_add(struct toolbox *box, const char *name, struct fail *fail)
{
    const struct tool *tool = tool_find(name);
    size_t at;
    int code = tool || !box->source ? 0 : box->source->find(box->source, name, &tool, fail);
    if (code < 0)
        return code;
    if (!tool)
        return fail_set(fail, -EINVAL, "there is no tool \"%.64s\"", name);
    if (find(box, name, &at) || box->count == TOOLBOX_MAX)
        return fail_set(fail, -EINVAL, "the tool %s exists already", tool->name);
    if (tool->needs_sandbox && !box->sandbox)
        return fail_set(fail, -EINVAL, "the tool %s needs a sandbox", tool->name);
    const char *lack = tool->lacks ? tool->lacks(box) : NULL;
    if (lack)
        return fail_set(fail, -ENOSYS, "%s", lack);
    box->tools[box->count] = tool;
    box->states[box->count] = tool->self;
    box->opened[box->count++] = false;
    return 0;
}

static int refuse_name(const struct toolbox *box, const char *name, struct tool_result *ret, struct fail *fail)
{
    AUTO_BUFFER names = {0};
    for (size_t i = 0; i < box->count; i++)
        buffer_printf(&names, "%s%s", i ? ", " : "", box->tools[i]->name);
    AUTO_FREE char *text = buffer_take_str(&names);
    const struct tool *nearest = toolbox_nearest(box, name);
    ret->is_refused = true;
    return tool_refuse(ret, fail, "There is no tool \"%.64s\"; %s is the nearest. The tools are: %s.", name,
                       nearest ? nearest->name : "none", text ? text : "");
}

/* A tool opened while the fiber is late or cancelled is opened again by the next call. */
static int open_one(struct toolbox *box, size_t at, struct fail *fail)
{
    const struct tool *tool = box->tools[at];
    int code = box->opened[at] || !tool->open ? 0 : tool->open(box, &box->states[at], fail);
    box->opened[at] |= code == 0;
    return code;
}

static int refuse_open(const struct tool *tool, struct tool_result *ret, struct fail *fail)
{
    char words[sizeof(fail->text)];
    snprintf(words, sizeof(words), "%s", fail->text);
    return tool_refuse(ret, fail, "%s does not start: %s.", tool->name, words);
}

int toolbox_call(struct toolbox *box, const char *name, const json_t *arguments, struct tool_result *ret,
                 struct fail *fail)
{
    char wrong[512];
    size_t at;
    *ret = (struct tool_result){0};
    if (!find(box, name, &at))
        return refuse_name(box, name, ret, fail);
    if (!tool_check(box->tools[at], arguments, wrong, sizeof(wrong))) {
        ret->is_refused = true;
        return tool_refuse(ret, fail, "%s", wrong);
    }
    int64_t began_us = clock_us();
    activity_tool(name);
    activity_enter(PHASE_TOOL);
    int code = open_one(box, at, fail);
    if (code == -ENOEXEC && box->has_acted)
        code = refuse_open(box->tools[at], ret, fail);
    else if (code == 0)
        code = box->tools[at]->call(box, box->states[at], arguments, ret, fail);
    activity_leave(PHASE_TOOL);
    box->has_acted |= code == 0 && box->tools[at]->needs_sandbox;
    ret->seconds = (double)(clock_us() - began_us) / 1e6;
    spent_tool_call(name, ret->seconds);
    if (code < 0)
        tool_result_finish(ret);
    else if (ret->total < ret->len)
        ret->total = ret->len;
    return code;
}

void toolbox_close(struct toolbox *box)
{
    for (size_t i = box->count; i-- > 0;)
        if (box->opened[i] && box->tools[i]->close)
            box->tools[i]->close(box->states[i]);
    box->count = 0;
}
