/*
 * meaning.h - whether two messages say the same, whatever a harness did to their bytes on the way: blanks at the ends
 * of a text and of an argument's lines, the order of keys, 1000.0 for 1000, arguments as text or as JSON, one that is
 * left out or given as its tool's schema has it by default. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_MEANING_H
#define SLUICE_WORKERS_AGENTS_PROXY_MEANING_H

#include "workers/agents/proxy/said.h"

/* The same message, where these tools are on offer: of what was shown, or of a turn without a handle. */
bool meaning_equals(const struct said *one, const struct said *other, const struct said_tool *tools, size_t count);
/* Whether the message gives back one of the handles of the turn: the id of a call, or its own handle. */
bool meaning_knows(const struct said *turn, const struct said *message);
/* The same tools, in the same order. */
bool meaning_tools_equal(const struct said_tool *one, size_t one_count, const struct said_tool *other,
                         size_t other_count);

#endif
