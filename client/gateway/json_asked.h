/* json_asked.h - JSON that a caller sent, in a body or as text in one: what reading it takes has a bound. */
#ifndef SLUICE_CLIENT_GATEWAY_JSON_ASKED_H
#define SLUICE_CLIENT_GATEWAY_JSON_ASKED_H

#include <jansson.h>

#include "common/base/slice.h"

enum { JSON_ASKED_VALUES_MAX = 1 << 20 }; /* of a text: of 32 MiB that are nothing else there could be 16 million */

/* As json_loadb. NULL with error->text where there are more values than that, too. `error` may be NULL. */
json_t *json_asked_read(struct slice text, size_t flags, json_error_t *error);
/* Where a string ends whose first quote is at `at`: its last quote, or the text's last byte where it has none. */
size_t json_asked_string_end(struct slice text, size_t at);

#endif
