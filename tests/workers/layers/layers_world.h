/* layers_world.h - a store and a cache of layers in tests, in the fixture's directory. */
#ifndef SLUICE_TESTS_WORKERS_LAYERS_LAYERS_WORLD_H
#define SLUICE_TESTS_WORKERS_LAYERS_LAYERS_WORLD_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include "workers/layers/layer.h"

static char store[128], cache[128];
static struct layers layers = {.store = store, .cache = cache};

/* What `code` says: of the set-up before. */
static inline int make_layers(int code)
{
    if (code == 0) {
        make_dir(store, sizeof(store), "store");
        make_dir(cache, sizeof(cache), "cache");
    }
    return code;
}

#endif
