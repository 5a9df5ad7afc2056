#include "workers/stages/kinds.h"

#include <string.h>

static const struct task_kind *const kinds[] = {&kind_sandbox, &kind_noop};

const struct task_kind *task_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}
