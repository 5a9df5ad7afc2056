/* listener.h - who hears of a turn while it is sampled. */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_LISTENER_H
#define SLUICE_WORKERS_ENGINES_SERVER_LISTENER_H

#include <stdbool.h>

#include "common/base/slice.h"

struct engine_listener {
    /*
     * The next characters of the turn's text: they stand, unless only looked at. On the loop's stack; must not await.
     */
    void (*heard)(void *arg, struct slice text);
    /*
     * Whoever only looks can be told that nothing of it stands, for it is sampled again: that it listens changes
     * nothing of the turn. NULL: what is heard stands.
     */
    void (*taken_back)(void *arg);
    void *arg;
};

#endif
