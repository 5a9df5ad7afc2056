#include "workers/sandbox/backends/way.h"

#include <signal.h>

#include "workers/sandbox/backends/apptainer/apptainer.h"
#include "workers/sandbox/backends/landlock/plain_room.h"

static const struct room_way kernel_overlay = {.end_signal = SIGKILL,
                                               .prepare = room_prepare,
                                               .build = room_build,
                                               .confine = room_confine,
                                               .form = PACK_KERNEL,
                                               .has_terminals = true};
static const struct room_way fuse_overlay = {.end_signal = SIGKILL,
                                             .prepare = room_prepare,
                                             .build = room_build,
                                             .confine = room_confine,
                                             .form = PACK_FUSE,
                                             .has_terminals = true};
static const struct room_way plain = {.end_signal = SIGTERM,
                                      .build = plain_room_build,
                                      .confine = plain_room_confine,
                                      .guard = plain_room_guard,
                                      .meet = plain_room_meet,
                                      .form = PACK_WHOLE};

/* What its first process does comes after, in that program (apptainer_main.c). */
static const struct room_way by_apptainer = {.end_signal = SIGKILL, .build = apptainer_room_build};

const struct room_way *room_way(enum tier tier)
{
    switch (tier) {
    case TIER_landlock:
        return &plain;
    case TIER_fuse_overlayfs:
        return &fuse_overlay;
    case TIER_apptainer:
        return &by_apptainer;
    default:
        return &kernel_overlay;
    }
}
