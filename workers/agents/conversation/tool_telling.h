/*
 * tool_telling.h - how a model is told of its tools and of what calls gave: in which form (formats/tool_format.h), in
 * whose turn. That of the task, or of the model and its template.
 */
#ifndef SLUICE_WORKERS_AGENTS_CONVERSATION_TOOL_TELLING_H
#define SLUICE_WORKERS_AGENTS_CONVERSATION_TOOL_TELLING_H

#include "workers/agents/conversation/model.h"
#include "workers/agents/formats/tool_format.h"

struct tool_telling {
    const struct tool_format *format;
    enum tell_role role; /* that results are told in */
    bool is_framed;      /* the template writes what is around them, not the form */
};

/* agent.form of the task, or the model's by its name. */
int tool_telling_find_format(struct model *model, struct tool_telling *ret, struct fail *fail);
/* agent.tool_role of the task, or tool where the template has such turns and can be extended; the format is known. */
int tool_telling_find_role(struct model *model, struct tool_telling *ret, struct fail *fail);
/* Appends one result as the model is told it, of several in one turn behind those before. */
void tool_telling_say(const struct tool_telling *telling, const char *name, const struct tool_result *result,
                      struct buffer *out);

#endif
