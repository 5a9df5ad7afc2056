/* json_doc_names.h - whether the names of a document's object differ. */
#ifndef SLUICE_COMMON_JSON_JSON_DOC_NAMES_H
#define SLUICE_COMMON_JSON_JSON_DOC_NAMES_H

#include "common/json/json_doc.h"

/*
 * Whether all members of an object have names of their own, escapes read: in time proportional to
 * the object's text, whoever wrote it. 1, 0 or -ENOMEM.
 */
int json_doc_names_are_unique(const struct json_doc *doc, const struct json_doc_node *object);

#endif
