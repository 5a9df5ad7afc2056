#include "workers/stages/build/build_merge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/layers/merge.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/stages/sandbox/base.h"

struct merge {
    struct build *build;
    const char *base;
    const struct stage_step *step;
    const struct parents *layers;
    char key[DIGEST_SIZE];
    enum fault *fault;
};

static int make_key(struct merge *merge)
{
    AUTO_BUFFER text = {0};
    char base[DIGEST_SIZE];
    int code = build_base_key(merge->build, merge->base, base);
    if (code < 0)
        return code;
    buffer_printf(&text, "sluice merge 1\n%s\n", base);
    parents_write(merge->layers, &text);
    return !text.failed && digest_of(buffer_peek(&text), merge->key) ? 0 : fail_memory(&merge->build->fail);
}

static int merge_on(struct merge *merge, const char *below, struct layer *ret)
{
    struct build *build = merge->build;
    int code = layer_merge(&build->store.layers, host_image_is(below) ? NULL : below, merge->layers->each,
                           merge->layers->count, ret, &build->fail);
    *merge->fault = ret->fault;
    return code == -ENAMETOOLONG || code == -EFBIG
               ? build_refuse(build, merge->step, "the files before it cannot be kept in one layer: %s",
                              build->fail.text)
               : code;
}

static int make(void *arg, char ret[DIGEST_SIZE])
{
    struct merge *merge = arg;
    struct build *build = merge->build;
    struct layer layer = {0};
    struct image_hold hold = {.lock = -1};
    int code = base_hold(build->job, merge->base, &hold, NULL, &build->fail);
    if (code < 0)
        return code;
    code = merge_on(merge, hold.path, &layer);
    image_hold_release(&hold);
    snprintf(ret, DIGEST_SIZE, "%s", layer.digest);
    layer_finish(&layer);
    return code;
}

int build_merge(struct build *build, const char *base, const struct stage_step *step, struct parents *layers,
                enum fault *fault)
{
    char merged[DIGEST_SIZE];
    struct merge merge = {.build = build, .base = base, .step = step, .layers = layers, .fault = fault};
    int code = make_key(&merge);
    if (code == 0)
        code = build_store_get(&build->store, merge.key, build->until_ms, make, &merge, merged, &build->fail);
    if (code < 0)
        return code;
    layers->count = merged[0] ? 1 : 0;
    memcpy(layers->each[0], merged, DIGEST_SIZE);
    return 0;
}
