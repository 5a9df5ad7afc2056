/*
 * loose_json.h - JSON as Python's json.dumps writes it and its json.loads reads it: NaN, Infinity and -Infinity, which
 * stand for what a data frame lacks, are null, and of a key given twice the last counts.
 */
#ifndef SLUICE_CLIENT_GATEWAY_BODIES_LOOSE_JSON_H
#define SLUICE_CLIENT_GATEWAY_BODIES_LOOSE_JSON_H

#include <jansson.h>

#include "common/base/slice.h"

/* NULL with an error: it is no JSON, or there is no memory. */
json_t *loose_json_read(struct slice text, json_error_t *error);
/* What a column holds that may be JSON in a text: another reference to it, or what its text says; NULL: neither. */
json_t *loose_json_decoded(json_t *value);

#endif
