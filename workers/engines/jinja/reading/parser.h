/* parser.h - the words of a template one by one, and the nodes that are made of them. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_READING_PARSER_H
#define SLUICE_WORKERS_ENGINES_JINJA_READING_PARSER_H

#include "workers/engines/jinja/reading/tree.h"

/* What is read, and how far. */
struct jinja_parser {
    struct jinja_run *run;
    struct jinja_tokens tokens;
    size_t at;
    struct jinja_node nothing; /* in place of what could not be had: written to, and never used */
};

/* Never NULL. What goes wrong is in run. */
struct jinja_node *jinja_node_new(struct jinja_parser *parser, enum jinja_node_kind kind);
const struct jinja_token *jinja_peek(const struct jinja_parser *parser);
bool jinja_peeks(const struct jinja_parser *parser, enum jinja_token_kind kind, const char *text);
/* Takes it if it is next. */
bool jinja_take(struct jinja_parser *parser, enum jinja_token_kind kind, const char *text);
/* The same, and a failure if it is not. */
void jinja_want(struct jinja_parser *parser, enum jinja_token_kind kind, const char *text);
/* A failure: `wanted` is, and not what is there. */
void jinja_refuse_token(struct jinja_parser *parser, const char *wanted);
struct slice jinja_want_name(struct jinja_parser *parser);

#endif
