/*
 * json_doc.h - a JSON text, read once into one array of nodes that point into it. For what an
 * engine says of thousands of tokens, and for the broker's and workers' many tasks, where a hash
 * table and a copy of every name and string would cost more than all the rest.
 *
 * Strict: RFC 8259, no name twice in one object (readers differ in which they take), UTF-8 not
 * checked (readers repair what they keep), at most JSON_DOC_LEVELS_MAX deep. Memory: 24 bytes a node, of which a byte of text makes at most one half. The text must
 * outlive the document.
 */
#ifndef SLUICE_COMMON_BASE_JSON_DOC_H
#define SLUICE_COMMON_BASE_JSON_DOC_H

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
    uint32_t next;        /* index of the node behind this one and all within it */
    uint32_t count;       /* array: elements; object: members (a name and a value each) */
    union {
        int64_t integer;
        double real;
        struct {
            uint32_t from, len; /* string: between its quotes, in the text */
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
void json_doc_finish(struct json_doc *doc);

/* Nodes are borrowed from the document. All of these take NULL for "not there". */
const struct json_doc_node *json_doc_root(const struct json_doc *doc);
/* The value of a member; NULL: not there, or no object. */
const struct json_doc_node *json_doc_get(const struct json_doc *doc, const struct json_doc_node *object,
                                         const char *name);
/* Element `at`, in time proportional to it; NULL: not there, or no array. */
const struct json_doc_node *json_doc_at(const struct json_doc *doc, const struct json_doc_node *array, uint32_t at);
/*
 * The first element of an array that has one, and the one behind an element that is not the last.
 * Behind an object's node stand its members in order: a name (JSON_DOC_STRING) and its value each.
 */
const struct json_doc_node *json_doc_first(const struct json_doc_node *array);
const struct json_doc_node *json_doc_behind(const struct json_doc *doc, const struct json_doc_node *node);
uint32_t json_doc_count(const struct json_doc_node *array); /* 0 when it is no array */

/* False: not there, or of another kind; *ret stays as it was. */
bool json_doc_id(const struct json_doc_node *node, uint32_t *ret);   /* an integer of 0..INT32_MAX */
bool json_doc_number(const struct json_doc_node *node, double *ret); /* an integer or a real */
/* What stands between the quotes: what is meant, unless `has_escapes`. */
struct slice json_doc_raw(const struct json_doc *doc, const struct json_doc_node *string);
bool json_doc_is(const struct json_doc *doc, const struct json_doc_node *node, const char *string);
/* The string as it is meant, appended; what \u cannot mean becomes U+FFFD. */
bool json_doc_string(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *ret);

#endif
