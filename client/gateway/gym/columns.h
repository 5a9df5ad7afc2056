/* columns.h - numbers by name, and what is told of each. */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_COLUMNS_H
#define SLUICE_CLIENT_GATEWAY_GYM_COLUMNS_H

#include <jansson.h>

#include "common/base/buffer.h"
#include "common/containers/table.h"

enum { COLUMNS_MAX = 256 /* others are left out */ };

struct column {
    const char *name; /* borrowed of a row that was added */
    double *values;
    size_t count, capacity;
};
struct columns {
    struct column list[COLUMNS_MAX];
    struct table by_name; /* of the list, until it is sorted */
    size_t count, next;   /* where the next name likely is, as rows have theirs in one order */
};

/* All numbers of an object, true and false as 1 and 0, but those whose names are among `but`. False: out of memory. */
bool row_columns_add(struct columns *columns, const json_t *object, const char *const *but);
/* "mean/NAME": ..., as members with a comma between. only_means: nothing else. */
void columns_append(struct columns *columns, bool only_means, struct buffer *out);
void columns_clear(struct columns *columns);

#endif
