#include "workers/engines/dialects/id_check.h"

#include <errno.h>

static uint64_t end_of(const struct tokens *ids)
{
    uint64_t end = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] >= end)
            end = (uint64_t)ids->ids[i] + 1;
    return end;
}

static void raise_taken(struct engine_info *info, uint64_t end)
{
    if (end > info->ids_taken)
        info->ids_taken = end;
}

/* One token after this one. */
static int show(struct engine *engine, uint32_t id, struct fail *fail)
{
    static const struct task_sampling neutral = {.temperature = 1, .top_p = 1, .seed = 1};
    uint32_t ids[] = {engine->info.plain_id, id};
    const struct tokens prompt = {.ids = ids, .count = 2};
    struct generation got = {0};
    int error = engine->dialect->generate(engine, &prompt, &neutral, 1, 0, &got, fail);
    generation_finish(&got);
    return error;
}

int id_check(struct engine *engine, const struct tokens *prompt, const struct tokens *sampled,
              struct fail *fail)
{
    const uint64_t end = end_of(sampled), vocabulary = engine->info.vocabulary;
    if (vocabulary > 0)
        return end <= vocabulary ? 0
                                 : fail_set(fail, -EPROTO,
                                            "the engine sampled token %llu of a vocabulary of %llu",
                                            (unsigned long long)end - 1,
                                            (unsigned long long)vocabulary);
    raise_taken(&engine->info, end_of(prompt)); /* which it has taken */
    if (end <= engine->info.ids_taken)
        return 0;
    struct fail why = {0};
    int error = show(engine, (uint32_t)(end - 1), &why);
    if (error == 0)
        raise_taken(&engine->info, end);
    if (error == -EINVAL)
        return fail_set(fail, -EPROTO,
                        "the engine sampled token %llu, which it does not know itself: %.300s",
                        (unsigned long long)end - 1, why.text);
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}
