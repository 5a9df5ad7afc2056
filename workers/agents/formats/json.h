/*
 * json.h - calls as JSON: {"name": ..., "arguments": {...}}, as Hermes and Llama 3 have them. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_JSON_H
#define SLUICE_WORKERS_AGENTS_FORMATS_JSON_H

#include "workers/agents/formats/reading.h"
#include "workers/tools/toolbox.h"

/*
 * Reads the calls that start at `from`: one value, an object or a list of them, in a code fence or
 * not; then more, for as long as a next one follows, `separator` (a byte; 0: blanks) in between.
 * Where it ends, or NULL with reply->wrong.
 */
const char *json_read_calls(struct reading *reading, const char *from, char separator);

/*
 * Where calls without a tag start, reading->at or later: a line that opens an object whose first name
 * is "name" (or "type" of value "function"), and which has arguments or parameters; or all there is.
 * NULL: nowhere. The first is noted as the reply's.
 */
const char *json_find_bare(struct reading *reading);

/* Whether json_find_bare may find that place of a text that goes on, or the code fence before it. */
enum call_start json_starts_bare(const char *text, const char *at);

/* {"name": NAME, KEY: ARGUMENTS} */
void json_say_call(const char *name, const char *key, const json_t *arguments, struct buffer *out);
/* Each tool of the box on a line, or over several; false: no memory. */
bool json_describe_tools(const struct toolbox *box, size_t flags, struct buffer *out);

#endif
