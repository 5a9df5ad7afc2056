/* json_doc_look.h - what stands in a document of json_doc.h. */
#ifndef SLUICE_COMMON_JSON_JSON_DOC_LOOK_H
#define SLUICE_COMMON_JSON_JSON_DOC_LOOK_H

#include "common/json/json_doc.h"

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
/* What stands between the quotes: what is meant, unless `has_escapes`. Of an array or object, between its brackets. */
struct slice json_doc_raw(const struct json_doc *doc, const struct json_doc_node *node);
bool json_doc_is(const struct json_doc *doc, const struct json_doc_node *node, const char *string);
/*
 * Bytes of the \u that the rest of a raw string begins with, or of two that are one character's halves. *ret: that
 * character; 0xd800 to 0xdfff: a half by itself, which means nothing.
 */
size_t json_doc_unicode(struct slice rest, uint32_t *ret);
/* The string as it is meant, appended; what \u cannot mean becomes U+FFFD. */
bool json_doc_string(const struct json_doc *doc, const struct json_doc_node *node, struct buffer *ret);

#endif
