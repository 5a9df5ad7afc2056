#include "workers/stages/sandbox/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/images/names.h"
#include "workers/runtime/offload.h"

/* ---- images by name --------------------------------------------------------------------------- */

struct naming {
    const struct job *job;
    const char *name;
    char *path;
    struct stat it; /* of scratch */
    struct fail *fail;
};

/* An empty directory of the cache. */
static int make_scratch(struct naming *naming)
{
    naming->path = dirtree_join(naming->job->context->layers.cache, ".scratch");
    if (!naming->path)
        return fail_memory(naming->fail);
    if ((mkdir(naming->path, 0755) < 0 && errno != EEXIST) || stat(naming->path, &naming->it) < 0)
        return dirtree_refuse(naming->fail, "make", naming->path);
    return 0;
}

static int naming_work(void *arg, const atomic_bool *stop)
{
    struct naming *naming = arg;
    (void)stop;
    return strcmp(naming->name, "scratch") == 0
               ? make_scratch(naming)
               : image_names_find(naming->job->context->image_names, naming->name, &naming->path, naming->fail);
}

int base_hold(const struct job *job, const char *name, struct image_hold *ret, char **ret_path, struct fail *fail)
{
    struct naming naming = {.job = job, .name = name, .fail = fail};
    const bool is_path = name[0] == '/', is_scratch = strcmp(name, "scratch") == 0;
    int code = is_path ? 0 : offload_run(naming_work, &naming, fail);
    AUTO_FREE char *path = is_path ? strdup(name) : naming.path;
    AUTO_FREE char *held = is_scratch && code == 0 ? strdup(path) : NULL;
    if (code == 0 && (!path || (is_scratch && !held)))
        code = fail_memory(fail);
    if (code == 0 && is_scratch)
        *ret = (struct image_hold){
            .path = take_ptr(&held), .lock = -1, .dev = naming.it.st_dev, .ino = naming.it.st_ino};
    else if (code == 0)
        code = images_hold(job->context->images, path, ret, fail);
    if (code == 0 && ret_path)
        *ret_path = take_ptr(&path);
    return code;
}

/* ---- the Dockerfile ----------------------------------------------------------------------------- */

static int find_base(void *arg, const char *name, struct image_config *ret, struct fail *fail)
{
    struct image_hold hold = {.lock = -1};
    int code = base_hold(arg, name, &hold, NULL, fail);
    if (code == 0 && !image_config_copy(&hold.config, ret))
        code = fail_memory(fail);
    if (hold.path)
        image_hold_release(&hold);
    return code;
}

const char *base_of(const struct build_stages *stages, size_t stage)
{
    while (stages->each[stage].base_stage >= 0)
        stage = (size_t)stages->each[stage].base_stage;
    return stages->each[stage].base;
}

static int read_stages(const struct job *job, const struct task_base *of, bool environment_only,
                       struct build_stages *ret, struct fail *fail)
{
    struct dockerfile dockerfile;
    const struct build_sources sources = {.args = &of->build->args,
                                          .target = of->build->target,
                                          .image = of->image && strcmp(of->image, "host") == 0 ? NULL : of->image,
                                          .environment_only = environment_only,
                                          .find_base = find_base,
                                          .arg = (void *)(uintptr_t)job};
    ret->count = 0;
    int code = dockerfile_parse(slice_from_str(of->build->dockerfile), &dockerfile, fail);
    if (code == 0)
        code = build_stages_make(&dockerfile, &sources, ret, fail);
    dockerfile_finish(&dockerfile);
    return code == -EINVAL ? fail_wrap(fail, "the Dockerfile") : code;
}

int base_read(const struct job *job, const struct task_base *of, struct build_stages *ret, struct fail *fail)
{
    return read_stages(job, of, false, ret, fail);
}

int base_fill_environment(struct image_config *environment, struct fail *fail)
{
    if (!environment->user)
        environment->user = strdup("root");
    if (!environment->workdir)
        environment->workdir = strdup("/");
    return environment->user && environment->workdir ? 0 : fail_memory(fail);
}

static int take_environment(struct build_stages *stages, struct image_hold *ret, struct fail *fail)
{
    image_config_finish(&ret->config);
    ret->config = stages->each[stages->target].environment;
    stages->each[stages->target].environment = (struct image_config){0};
    return base_fill_environment(&ret->config, fail);
}

static int find_built(const struct job *job, const struct task_base *of, struct image_hold *ret, struct fail *fail)
{
    AUTO_FREE struct build_stages *stages = calloc(1, sizeof(*stages));
    if (!stages)
        return fail_memory(fail);
    int code = read_stages(job, of, true, stages, fail);
    if (code == 0)
        code = base_hold(job, base_of(stages, stages->target), ret, NULL, fail);
    if (code == 0 && (code = take_environment(stages, ret, fail)) < 0)
        image_hold_release(ret);
    build_stages_finish(stages);
    return code;
}

int base_find(const struct job *job, const struct task_base *of, struct image_hold *ret, struct fail *fail)
{
    return of->build->dockerfile ? find_built(job, of, ret, fail)
                                 : images_hold(job->context->images, of->image, ret, fail);
}
