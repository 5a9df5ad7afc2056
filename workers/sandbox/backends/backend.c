#include "workers/sandbox/backends/apptainer/apptainer_container.h"
#include "workers/sandbox/backends/landlock/landlock_seccomp.h"
#include "workers/sandbox/init/backend.h"

#include <signal.h>

#include "workers/sandbox/backends/landlock/landlock_container.h"
#include "workers/sandbox/container/confine.h"

static const struct sandbox_backend kernel_overlay = {.end_signal = SIGKILL,
                                                      .prepare = container_prepare,
                                                      .build = container_build,
                                                      .confine = container_confine,
                                                      .form = PACK_KERNEL,
                                                      .has_terminals = true};
static const struct sandbox_backend fuse_overlay = {.end_signal = SIGKILL,
                                                    .prepare = container_prepare,
                                                    .build = container_build,
                                                    .confine = container_confine,
                                                    .form = PACK_FUSE,
                                                    .has_terminals = true};
static const struct sandbox_backend plain = {.end_signal = SIGTERM,
                                             .build = landlock_container_build,
                                             .confine = landlock_container_confine,
                                             .guard = landlock_container_guard,
                                             .meet = landlock_container_meet,
                                             .form = PACK_WHOLE};

/* What its first process does comes after, in that program (apptainer_main.c). */
static const struct sandbox_backend by_apptainer = {.end_signal = SIGKILL, .build = apptainer_container_build};

const struct sandbox_backend *sandbox_backend(enum tier tier)
{
    switch (tier) {
    case TIER_landlock: return &plain;
    case TIER_fuse_overlayfs: return &fuse_overlay;
    case TIER_apptainer: return &by_apptainer;
    default: return &kernel_overlay;
    }
}
