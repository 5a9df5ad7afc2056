#include "workers/sandbox/way.h"

#include <signal.h>

#include "workers/sandbox/plain_room.h"

static const struct room_way kernel_overlay = {SIGKILL, room_build, room_confine, NULL, NULL, PACK_KERNEL, PACK_KERNEL,
                                                true};
static const struct room_way fuse_overlay = {SIGKILL, room_build, room_confine, NULL, NULL, PACK_FUSE, PACK_FUSE, true};
static const struct room_way plain = {.end_signal = SIGTERM,
                                      .build = plain_room_build,
                                      .confine = plain_room_confine,
                                      .guard = plain_room_guard,
                                      .meet = plain_room_meet,
                                      .form = PACK_WHOLE,
                                      .first_form = PACK_FIRST};

const struct room_way *room_way(enum tier tier)
{
    return tier == TIER_landlock ? &plain : tier == TIER_fuse_overlayfs ? &fuse_overlay : &kernel_overlay;
}
