/* listener.h - who hears of a turn while it is sampled. */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_LISTENER_H
#define SLUICE_WORKERS_ENGINES_SERVER_LISTENER_H

#include "common/base/slice.h"

struct engine_listener {
    /* The next characters of the turn's text: they stand. On the loop's stack; must not await. */
    void (*heard)(void *arg, struct slice text);
    void *arg;
};

#endif
