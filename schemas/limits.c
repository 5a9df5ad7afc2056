#include "schemas/limits.h"

#include <string.h>

static const struct limit limits[LIMIT_COUNT] = {
#define LIMIT(id, name, field, held, effect) {name, field, held, effect},
#include "schemas/limits.def"
#undef LIMIT
};

#define LIMIT(id, name, field, held, effect) _Static_assert(sizeof(name) <= LIMIT_NAME_SIZE, name " fits a record");
#include "schemas/limits.def"
#undef LIMIT

const struct limit *limit_get(enum limit_id id) { return &limits[id]; }

enum limit_id limit_find(const char *name)
{
    unsigned id = 0;
    while (id < LIMIT_COUNT && strcmp(limits[id].name, name) != 0)
        id++;
    return (enum limit_id)id;
}
