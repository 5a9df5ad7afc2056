/*
 * anthropic_tools.h - the tools that an Anthropic request offers. Those with `defer_loading` are held back: the model
 * knows them by name alone until it finds them with a tool of the harness's, whose result refers to them. A reference
 * is unfolded to what the model reads in its place, so that the offered tools, and the prompt, stay as they were. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_ANTHROPIC_TOOLS_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_ANTHROPIC_TOOLS_H

#include "workers/agents/proxy/dialects/body.h"

/* All of the tools' list, and bytes of a request's references unfolded. */
enum { ANTHROPIC_TOOLS_MAX = 1024, ANTHROPIC_UNFOLDED_MAX = 1 << 20 };

bool anthropic_read_tool(struct body *body, const struct body_place *tool);
/* The tool that a block of a result refers to, into the text of the message in hand. */
bool anthropic_unfold_tool(struct body *body, const struct body_place *reference);

#endif
