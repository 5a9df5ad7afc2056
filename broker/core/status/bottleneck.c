/*
 * What work waits for: the part of the service that is short. Stages before it work ahead as long as there is something
 * to do, so it is the last one, in the order of a rollout's life, whose slots are all taken while as many
 * jobs as it has slots wait for them. Where runs wait because every engine has as many as it may, it is the engines.
 */
#include "broker/core/status/bottleneck.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/placing.h"
#include "broker/core/state/state.h"
#include "broker/core/status/stages.h"

#include <inttypes.h>

static bool engines_are_full(const struct core *core)
{
    return core->queues[PLACE_QUEUED][STAGE_RUN].count && core->engines_registered && engine_is_ready(core, NULL) &&
           !placing_has_room(core, NULL);
}

/* Takes `why`. */
static json_t *describe(const char *part, json_t *why) { return json_pack("{s:s, s:o}", "part", part, "why", why); }

/* NULL: the stage is not short. */
static json_t *shortage_of(const struct core *core, enum stage stage)
{
    struct stage_workers stage_workers = stage_workers_of(core, stage);
    size_t queued = core->queues[PLACE_QUEUED][stage].count;
    if (stage == STAGE_RUN && engines_are_full(core))
        return describe("engines",
                        json_sprintf("every engine has as many rollouts as it may, and %zu run jobs wait", queued));
    if (stage_workers.slots && !stage_workers.free && queued >= stage_workers.slots)
        return describe(stage_wire(stage), json_sprintf("all %" PRIu64 " %s slots are taken, and %zu jobs wait",
                                                        stage_workers.slots, stage_wire(stage), queued));
    return NULL;
}

json_t *status_bottleneck(const struct core *core)
{
    json_t *shortage = NULL;
    for (int stage = STAGE_COUNT - 1; stage >= STAGE_INIT && !shortage; stage--)
        shortage = shortage_of(core, (enum stage)stage);
    return shortage ? shortage : json_null();
}
