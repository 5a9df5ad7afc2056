/* json_text.h - values as JSON. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_VALUES_JSON_TEXT_H
#define SLUICE_WORKERS_ENGINES_JINJA_VALUES_JSON_TEXT_H

#include "workers/engines/jinja/values/value.h"

/* json.dumps, with ensure_ascii off; indent 0: all in one line. */
void jinja_write_json(struct jinja_run *run, const struct jinja_value *value, unsigned indent, struct buffer *out);

#endif
