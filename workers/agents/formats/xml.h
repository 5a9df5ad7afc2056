/*
 * xml.h - calls as tags without escapes: <function=NAME>, in it <parameter=NAME>value</parameter>,
 * as Qwen3-Coder and OpenHands have them. A value's type is what the tool's schema says; a string is
 * kept byte for byte, but for the line ends of the tags. No value can hold </parameter>. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_FORMATS_XML_H
#define SLUICE_WORKERS_AGENTS_FORMATS_XML_H

#include "workers/agents/formats/reading.h"

#define XML_FUNCTION "<function="
#define XML_FUNCTION_END "</function>"

/* Which line ends around a value belong to its tags. */
enum xml_lines {
    XML_EACH, /* one behind the start tag, if it is there, and one before the end tag */
    XML_BOTH  /* both or none: a value stands on the line of its tags, or on lines of its own */
};

/*
 * Reads the call whose <function= is at `from`. Behind its end, or at the reply's end, with
 * reply->is_open where its end tag is missing. NULL with reply->wrong.
 */
const char *xml_read_call(struct reading *reading, const char *from, enum xml_lines lines);

void xml_say_call(const char *name, const json_t *arguments, enum xml_lines lines, struct buffer *out);

#endif
