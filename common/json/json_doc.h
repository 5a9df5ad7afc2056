/*
 * json_doc.h - a JSON text, read once into one array of nodes that point into it. For what an
 * engine says of thousands of tokens, and for the broker's and workers' many tasks, where a hash
 * table and a copy of every name and string would cost more than all the rest.
 *
 * Strict: RFC 8259, no name twice in one object (readers differ in which they take), UTF-8 not
 * checked (readers repair what they keep), at most JSON_DOC_LEVELS_MAX deep. Memory: 24 bytes a node, of which
 * a byte of text makes at most one half. The text must outlive the document. json_doc_look.h says what stands in it.
 */
#ifndef SLUICE_COMMON_JSON_JSON_DOC_H
#define SLUICE_COMMON_JSON_JSON_DOC_H

#include "common/base/buffer.h"
#include "common/base/fail.h"

enum { JSON_DOC_LEVELS_MAX = 64 };

enum json_doc_kind {
    JSON_DOC_NULL,
    JSON_DOC_FALSE,
    JSON_DOC_TRUE,
    JSON_DOC_INTEGER, /* written without a point or an exponent, and fits an int64_t */
    JSON_DOC_REAL,
    JSON_DOC_STRING,
    JSON_DOC_ARRAY,
    JSON_DOC_OBJECT,
};

struct json_doc_node {
    enum json_doc_kind kind : 8;
    bool has_escapes : 1; /* string */
    bool is_ascii : 1;    /* string: as it is written */
    uint32_t next;        /* index of the node behind this one and all within it */
    uint32_t count;       /* array: elements; object: members (a name and a value each) */
    union {
        int64_t integer;
        double real;
        struct {
            uint32_t from, len; /* string, array, object: between its quotes or brackets, in the text */
        };
    };
};

struct json_doc {
    struct slice text;
    struct json_doc_node *nodes; /* the first is the root */
    size_t count, capacity;
};

/* -EPROTO with a sentence when the text is no JSON, -ENOMEM. json_doc_finish it also after an error. */
int json_doc_parse(struct slice text, struct json_doc *ret, struct fail *fail);
/* -E2BIG, too, as soon as it has more values and names than that. */
int json_doc_parse_up_to(struct slice text, size_t nodes_max, struct json_doc *ret, struct fail *fail);
void json_doc_finish(struct json_doc *doc);

#endif
