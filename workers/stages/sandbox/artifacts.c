#include "workers/stages/sandbox/artifacts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"
#include "workers/runtime/offload.h"
#include "workers/stages/sandbox/real_path.h"

struct finding { /* for the thread that reads links: the image may be far away */
    const struct task *task;
    const char *const *roots;
    size_t root_count;
    const char *workdir;
    struct artifacts *into;
    struct fail *fail;
};

/* One that leads round and round, or to the root, names nothing. */
static int find(const struct finding *finding, const struct task_artifact *artifact)
{
    char path[PATH_MAX];
    AUTO_FREE char *whole = artifact->path[0] == '/' ? strdup(artifact->path)
                                                     : dirtree_join(finding->workdir, artifact->path);
    if (!whole)
        return fail_memory(finding->fail);
    if (real_path_find(finding->roots, finding->root_count, whole, path) < 0)
        return 0;
    struct dirtree_place place = {
        .path = strdup(path), .exclude = artifact->exclude, .exclude_count = artifact->exclude_count};
    if (!place.path)
        return fail_memory(finding->fail);
    finding->into->places[finding->into->count++] = place;
    return 0;
}

static int find_all(void *arg, const atomic_bool *stop)
{
    const struct finding *finding = arg;
    int code = 0;
    (void)stop;
    for (size_t i = 0; i < finding->task->artifacts.count && code == 0; i++)
        code = find(finding, &finding->task->artifacts.each[i]);
    return code;
}

int artifacts_find(const struct task *task, const char *const *roots, size_t root_count, const char *workdir,
                   struct artifacts *ret, struct fail *fail)
{
    struct finding finding = {task, roots, root_count, workdir, ret, fail};
    *ret = (struct artifacts){.places = calloc(task->artifacts.count + 1, sizeof(*ret->places))};
    return ret->places ? offload_run(find_all, &finding, fail) : fail_memory(fail);
}

void artifacts_finish(struct artifacts *artifacts)
{
    for (size_t i = 0; i < artifacts->count; i++)
        free(artifacts->places[i].path);
    free(artifacts->places);
    *artifacts = (struct artifacts){0};
}
