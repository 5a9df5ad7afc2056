#include "workers/stages/build/build_room.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/runtime/offload.h"
#include "workers/stages/sandbox/base.h"

int build_refuse(struct build *build, const struct stage_step *step, const char *format, ...)
{
    char words[sizeof(build->refusal) - 48];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    snprintf(build->refusal, sizeof(build->refusal), "the Dockerfile, line %u: %s", step->line, words);
    return fail_set(&build->fail, -EINVAL, "%s", build->refusal);
}

int build_open_room(struct build *build, const char *base, const struct parents *layers,
                    const struct image_config *environment, struct stage_sandbox *room)
{
    *room = (struct stage_sandbox){.part = STAGE_BUILDS, .build = build->of.build};
    int code = base_hold(build->job, base, &room->image, NULL, &build->fail);
    if (code < 0)
        return code;
    image_config_finish(&room->image.config);
    if (!image_config_copy(environment, &room->image.config))
        return fail_memory(&build->fail);
    code = base_fill_environment(&room->image.config, &build->fail);
    if (code == 0 && layers)
        code = stage_sandbox_add_parents(room, build->job, layers, &build->fail);
    return code < 0 ? code : stage_sandbox_open(room, build->job, &build->fail);
}

/* ---- keys of images ------------------------------------------------------------------------------ */

struct looking {
    char *path; /* of an image, perhaps with :NAME behind it */
    struct stat it;
};

static int look_work(void *arg, const atomic_bool *stop)
{
    struct looking *looking = arg;
    (void)stop;
    if (stat(looking->path, &looking->it) == 0)
        return 0;
    char *colon = strrchr(looking->path, ':');
    *(colon ? colon : looking->path) = '\0';
    return stat(looking->path, &looking->it) < 0 ? -errno : 0;
}

/* By where it is, and when it was changed: what an image of that path is on all nodes. */
int build_base_key(struct build *build, const char *name, char ret[DIGEST_SIZE])
{
    char text[8192];
    struct image_hold hold = {.lock = -1};
    AUTO_FREE char *path = NULL;
    int code = base_hold(build->job, name, &hold, &path, &build->fail);
    if (code < 0)
        return code;
    image_hold_release(&hold);
    struct looking looking = {.path = strdup(path)};
    if (!looking.path)
        return fail_memory(&build->fail);
    if (strcmp(name, "scratch") != 0)
        offload_run(look_work, &looking, &build->fail); /* one that cannot be looked at has just been held */
    free(looking.path);
    snprintf(text, sizeof(text), "sluice build 1\n%s\n%lld %lld.%09ld", path, (long long)looking.it.st_size,
             (long long)looking.it.st_mtim.tv_sec, looking.it.st_mtim.tv_nsec);
    return digest_of(slice_from_str(text), ret) ? 0 : fail_memory(&build->fail);
}
