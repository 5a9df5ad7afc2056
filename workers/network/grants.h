/*
 * grants.h - what the operator of a worker lets tasks reach, by name: `--grant NAME=unix:PATH` or
 * `--grant NAME=tcp:HOST:PORT`. A task names grants, never addresses; a sandbox has no other way
 * out of its own network.
 */
#ifndef SLUICE_WORKERS_NETWORK_GRANTS_H
#define SLUICE_WORKERS_NETWORK_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/fail.h"
#include "schemas/task/task.h"

enum { GRANTS_MAX = 64, GRANT_HOST_SIZE = 256 };

/* No grant's name: a harness finds its model at SLUICE_GRANT_MODEL. */
#define GRANT_MODEL "model"

struct grant {
    char name[TASK_GRANT_SIZE];
    bool is_tcp;
    char host[GRANT_HOST_SIZE]; /* tcp: a name or an address; unix: the socket's path */
    uint16_t port;              /* tcp; the same one inside where it is free */
};

struct grants {
    struct grant items[GRANTS_MAX];
    size_t count;
};

/* Reads one NAME=...; -EINVAL with a sentence. */
int grants_add(struct grants *grants, const char *text, struct fail *fail);
/* NULL: there is none of that name. `grants` may be NULL. */
const struct grant *grants_find(const struct grants *grants, const char *name);
/* "a, b" or "none". */
void grants_format(const struct grants *grants, char *text, size_t size);

#endif
