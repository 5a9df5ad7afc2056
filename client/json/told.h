/* told.h - what an answer of the broker's, or an event, tells by a name; "" and 0 where it tells none of that kind. */
#ifndef SLUICE_CLIENT_JSON_TOLD_H
#define SLUICE_CLIENT_JSON_TOLD_H

#include <jansson.h>

const char *told_text(const json_t *object, const char *name);
long long told_number(const json_t *object, const char *name);

#endif
