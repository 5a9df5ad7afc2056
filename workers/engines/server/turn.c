#include "workers/engines/server/turn.h"

#include <stdlib.h>

const char *tell_role_word(enum tell_role role)
{
    static const char *const words[TELL_ROLES] = {"user", "tool"};
    return words[role];
}

void generation_finish(struct generation *generation)
{
    tokens_finish(&generation->sampled);
    free(generation->logprobs);
    free(generation->text);
    free(generation->spans);
    *generation = (struct generation){0};
}
