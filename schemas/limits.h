/* limits.h - the limits of a rollout by name (limits.def). */
#ifndef SLUICE_SCHEMAS_LIMITS_H
#define SLUICE_SCHEMAS_LIMITS_H

enum limit_id {
#define LIMIT(id, name, field, held, effect) LIMIT_##id,
#include "schemas/limits.def"
#undef LIMIT
    LIMIT_COUNT
};

enum {
    LIMIT_NAME_SIZE = 16,
    LIMIT_PROCESSES_MAX = 8192 /* of one sandbox: whoever watches it looks at as many */
};

struct limit {
    const char *name, *field, *held, *effect;
};

const struct limit *limit_get(enum limit_id id);
/* LIMIT_COUNT when there is none of that name. */
enum limit_id limit_find(const char *name);

#endif
