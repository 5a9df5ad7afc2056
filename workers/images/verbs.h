/* verbs.h - what sluice-image does: one function a verb. Each prints and returns the exit status. */
#ifndef SLUICE_WORKERS_IMAGES_VERBS_H
#define SLUICE_WORKERS_IMAGES_VERBS_H

#include "common/cmdline/option.h"
#include "workers/images/image_cache.h"

enum image_exit {
    IMAGE_EXIT_OK = 0,
    IMAGE_EXIT_FAILED = 1, /* this node's doing: a full disk, no memory, no right to the cache */
    IMAGE_EXIT_USAGE = 2,
    IMAGE_EXIT_REFUSED = 3, /* the image's own doing: refusals.def */
    IMAGE_EXIT_STOPPED = 4  /* by a signal */
};

struct invocation {
#define OPTION OPTION_FIELD
#include "workers/images/options.def"
#undef OPTION
    const char *image; /* inspect, prepare */
    const atomic_bool *stop;
};

int image_verb_inspect(const struct invocation *in);
int image_verb_prepare(const struct invocation *in);
int image_verb_list(const struct invocation *in);
int image_verb_prune(const struct invocation *in);

#endif
