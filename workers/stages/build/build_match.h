/*
 * build_match.h - the paths that a source of COPY or ADD means below a root whose names and links are anybody's: hence
 * the limits, as a few links to "." make names without end. Blocking, for offload.h.
 */
#ifndef SLUICE_WORKERS_STAGES_BUILD_BUILD_MATCH_H
#define SLUICE_WORKERS_STAGES_BUILD_BUILD_MATCH_H

#include <stdatomic.h>
#include <stddef.h>

enum { BUILD_MATCHES_MAX = 4096, BUILD_NAMES_MAX = 1000000 };

/* Of one instruction; zero it but for what is set first. */
struct build_matching {
    int root; /* borrowed; the root of links, too */
    const atomic_bool *stop;
    size_t names; /* looked at until now */
    char **paths; /* of the pattern matched last, in the order of their names */
    size_t count;
};

/*
 * -ENOENT: it means nothing that is there; -E2BIG: more than BUILD_MATCHES_MAX paths; -EOVERFLOW: more than
 * BUILD_NAMES_MAX names to look at, all patterns together; -EINVAL: it is not a path below a root; -ECANCELED.
 */
int build_match(struct build_matching *matching, const char *pattern);
void build_matching_finish(struct build_matching *matching);

#endif
