/*
 * jinja.h - chat templates as Hugging Face's models bring them: Jinja 3.1 with trim_blocks, lstrip_blocks and loop
 * controls, as far as such templates use it. What comes out is what Jinja makes of it, byte for byte; what is not
 * known here is refused by its name, and never guessed. Pure: no I/O and no waiting; a rendering is bounded in steps,
 * memory and depth. A template is read once and rendered as often as wanted.
 */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_JINJA_H
#define SLUICE_WORKERS_ENGINES_JINJA_JINJA_H

#include <jansson.h>

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum { JINJA_SOURCE_MAX = 1 << 20 };

struct jinja;

/* -EINVAL with a sentence that names the line, -ENOMEM. */
int jinja_parse(struct slice source, struct jinja **ret, struct fail *fail);
void jinja_destroy(struct jinja **jinja);

/* globals: an object, whose members are the template's variables. Appends; -EINVAL with the template's own words where
 * it raises an exception. */
int jinja_render(const struct jinja *jinja, const json_t *globals, struct buffer *ret, struct fail *fail);

#endif
