/*
 * What work waits for: the part of the service that is short. Stages before it work ahead as long as there is something
 * to do, so it is the last one, in the order of a rollout's life, whose slots are all taken while as many
 * jobs as it has slots wait for them. Where runs wait because every engine has as many as it may, it is the engines.
 */
#include "broker/core_status.h"

#include <inttypes.h>
#include <stdio.h>

static bool engines_are_full(const struct core *core)
{
    return core->queues[PLACE_QUEUED][STAGE_RUN].count && core->engines_registered &&
           engine_is_ready(core) && !placing_has_room(core);
}

/* "": nothing. */
static const char *short_part(const struct core *core)
{
    for (int stage = STAGE_COUNT - 1; stage >= STAGE_INIT; stage--) {
        struct crew crew = crew_of(core, (enum stage)stage);
        size_t queued = core->queues[PLACE_QUEUED][stage].count;
        if (stage == STAGE_RUN && engines_are_full(core))
            return "engines";
        if (crew.slots && !crew.free && queued >= crew.slots)
            return stage_wire((enum stage)stage);
    }
    return "";
}

json_t *status_bottleneck(const struct core *core)
{
    const char *part = short_part(core);
    char why[160] = "";
    enum stage stage = STAGE_RUN;
    bool is_engines = strcmp(part, "engines") == 0;
    if (!*part)
        return json_null();
    if (!is_engines)
        stage_parse(slice_from_str(part), &stage);
    size_t queued = core->queues[PLACE_QUEUED][stage].count;
    if (is_engines)
        snprintf(why, sizeof(why), "every engine has as many rollouts as it may, and %zu run jobs wait", queued);
    else
        snprintf(why, sizeof(why), "all %" PRIu64 " %s slots are taken, and %zu jobs wait",
                 crew_of(core, stage).slots, part, queued);
    return json_pack("{s:s, s:s}", "part", part, "why", why);
}
