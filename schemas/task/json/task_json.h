/*
 * task_json.h - a task's JSON, read in one pass into nodes that point into it (common/json/json_doc.h).
 *
 * Readers and writers of tasks elsewhere use jansson, so jansson alone says what is JSON and why something is not; what
 * is read here, jansson reads as the same values. What this is not sure of it gives up.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_JSON_H
#define SLUICE_SCHEMAS_TASK_TASK_JSON_H

#include "schemas/task/json/task_value.h"

/*
 * *ret: an object or an array, whose texts are UTF-8 without NUL. -E2BIG: it has more than `values_max` values and
 * names. -ENOMEM. -EPROTO: given up; ask jansson. json_doc_finish it also after an error.
 */
int task_json_read(struct slice json, size_t values_max, struct json_doc *ret);

static inline struct task_value task_json_root(const struct json_doc *doc)
{
    return (struct task_value){doc, json_doc_root(doc)};
}

#endif
