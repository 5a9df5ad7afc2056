#include "workers/engines/dialects/stop_tokens.h"

#include <errno.h>
#include <stdio.h>

#include "workers/engines/template/special_tokens.h"

bool stop_tokens_have(const struct tokens *ends, uint32_t id)
{
    for (size_t i = 0; i < ends->count; i++)
        if (ends->ids[i] == id)
            return true;
    return false;
}

/* No turn goes on behind its end. */
static int check_middle(const struct tokens *ends, const struct tokens *sampled, struct fail *fail)
{
    for (size_t i = 0; i + 1 < sampled->count; i++)
        if (stop_tokens_have(ends, sampled->ids[i]))
            return fail_set(fail, -EPROTO,
                            "the engine sampled %zu tokens behind token %u, which ends a turn",
                            sampled->count - i - 1, sampled->ids[i]);
    return 0;
}

int stop_tokens_check(struct engine *engine, struct generation *generation, struct fail *fail)
{
    if (check_middle(&engine->info.ends, &generation->sampled, fail) < 0)
        return -EPROTO;
    uint32_t last = generation->sampled.ids[generation->sampled.count - 1];
    bool is_end = stop_tokens_have(&engine->info.ends, last);
    if (is_end)
        snprintf(generation->finish, sizeof(generation->finish), "stop");
    if (is_end || strcmp(generation->finish, "stop") != 0)
        return 0;
    int error = engine_is_special(engine, last, &is_end, fail);
    if (error == 0 && !is_end)
        error = fail_set(fail, -EPROTO,
                         "the engine ended a turn with token %u, which is plain text", last);
    if (error == 0 && !tokens_append(&engine->info.ends, &last, 1))
        error = fail_set(fail, -ENOMEM, "out of memory");
    return error;
}
