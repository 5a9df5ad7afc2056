/* tree.h - a template as a tree: what its tags and expressions say. */
#ifndef SLUICE_WORKERS_ENGINES_JINJA_READING_TREE_H
#define SLUICE_WORKERS_ENGINES_JINJA_READING_TREE_H

#include "workers/engines/jinja/reading/lexer.h"
#include "workers/engines/jinja/values/value.h"

enum jinja_node_kind {
    /* statements */
    NODE_TEXT,      /* text */
    NODE_PRINT,     /* a */
    NODE_FOR,       /* a: the target; b: over what; c: of these, or NULL; body, other */
    NODE_IF,        /* a; body, other */
    NODE_SET,       /* a: the target; b */
    NODE_SET_BLOCK, /* a: the target; body */
    NODE_MACRO,     /* text: its name; a: the parameters, each a NODE_NAME with `b`, its default, or NULL; body */
    NODE_SCOPE,     /* body */
    NODE_BREAK,
    NODE_CONTINUE,
    /* expressions */
    NODE_CONSTANT, /* constant */
    NODE_NAME,     /* text */
    NODE_LIST,     /* body: the items */
    NODE_TUPLE,
    NODE_DICT,      /* body: a name and a value in turn */
    NODE_ATTRIBUTE, /* a.text */
    NODE_ITEM,      /* a[b] */
    NODE_SLICE,     /* a[b:c:other], each of which may be NULL */
    NODE_ARGUMENT,  /* a; text: its name, or empty */
    NODE_CALL,      /* a(body) */
    NODE_FILTER,    /* a|text(body) */
    NODE_TEST,      /* a is text(body) */
    NODE_NOT,       /* a */
    NODE_NEGATIVE,
    NODE_AND, /* a, b */
    NODE_OR,
    NODE_CHOICE,   /* a if b else c; c may be NULL */
    NODE_OPERATION /* a text b */
};

struct jinja_node {
    enum jinja_node_kind kind;
    unsigned line;
    struct slice text;
    struct jinja_value constant;
    struct jinja_node *a, *b, *c, *body, *other;
    struct jinja_node *next; /* of a body or a list */
};

#endif
