/* parse.h - statements. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_READING_PARSE_H
#define SLUICE_WORKERS_ENGINES_JINJA_READING_PARSE_H

#include "workers/engines/jinja/reading/parser.h"

/* The whole of a template: its statements. */
struct jinja_node *jinja_parse_all(struct jinja_parser *parser);

#endif
