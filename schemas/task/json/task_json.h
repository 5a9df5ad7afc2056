/*
 * task_json.h - a task's JSON as jansson's values, several times sooner than jansson reads it: a
 * task is mostly a few long strings, which common/json/json_doc.h passes eight bytes at a time and
 * which are copied once.
 *
 * It reads the common form only. What it is not sure of it leaves to jansson: a string with a \u by
 * itself, anything else by giving up. So jansson alone says what is JSON and why something is not;
 * what is read here, jansson reads as the same values.
 */
#ifndef SLUICE_SCHEMAS_TASK_TASK_JSON_H
#define SLUICE_SCHEMAS_TASK_TASK_JSON_H

#include <jansson.h>

#include "common/base/slice.h"

/*
 * *ret: an object or an array, as json_loadb with JSON_REJECT_DUPLICATES makes it; the caller's. -E2BIG: it has more
 * than `values_max` values and names. -EPROTO: given up; ask jansson. *ret is NULL after an error.
 */
int task_json_read(struct slice json, size_t values_max, json_t **ret);

#endif
