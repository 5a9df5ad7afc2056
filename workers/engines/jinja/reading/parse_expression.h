/* parse_expression.h - an expression. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_READING_PARSE_EXPRESSION_H
#define SLUICE_WORKERS_ENGINES_JINJA_READING_PARSE_EXPRESSION_H

#include "workers/engines/jinja/reading/parser.h"

struct jinja_node *jinja_parse_expression(struct jinja_parser *parser);
/* The same without "if" at its top. */
struct jinja_node *jinja_parse_plain(struct jinja_parser *parser);

#endif
