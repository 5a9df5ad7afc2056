#include "workers/agents/conversation/loop_detector.h"

enum { RING = (REPEATS_MAX + 1) * REPEATS_PERIOD_MAX };

/* FNV-1a: nobody gains from a collision, which only says of two calls that they are the same. */
static uint64_t mix(uint64_t hash, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.data[i]) * 0x100000001b3;
    return (hash ^ bytes.len) * 0x100000001b3;
}

void loop_detector_add(struct loop_detector *repeats, const char *name, struct slice call, struct slice result,
                       int status)
{
    uint64_t hash = mix(0xcbf29ce484222325, slice_from_str(name));
    hash = mix(mix(hash, call), result);
    repeats->seen[repeats->count++ % RING] = mix(hash, slice_of(&status, sizeof(status)));
}

static bool is_round(const struct loop_detector *repeats, size_t period, size_t times)
{
    if (repeats->count < period * times)
        return false;
    for (size_t i = 1; i <= period * (times - 1); i++)
        if (repeats->seen[(repeats->count - i) % RING] != repeats->seen[(repeats->count - i - period) % RING])
            return false;
    return true;
}

size_t loop_detector_find(const struct loop_detector *repeats, size_t max)
{
    for (size_t period = 1; period <= REPEATS_PERIOD_MAX; period++)
        if (is_round(repeats, period, max + 1))
            return period;
    return 0;
}

void loop_detector_forget(struct loop_detector *repeats) { repeats->count = 0; }
