/* engine_state.h - what a worker remembers of one server; shared by its rollouts, on one thread. */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_ENGINE_STATE_H
#define SLUICE_WORKERS_ENGINES_SERVER_ENGINE_STATE_H

#include "workers/engines/server/dialect.h"
#include "workers/engines/server/parts.h"
#include "workers/runtime/http.h"
#include "workers/runtime/single_flight.h"

/* That who is at a line's other end is who the engine's facts tell of: what was counted then. */
struct engine_connection_proof {
    uint64_t info; /* the facts' number; 0: nothing is proven */
    uint64_t doubts, connects, requests;
    uint64_t policy; /* the number of the version that it served */
    int64_t at_ms;
};

/*
 * Over what it is spoken to. Lines in no act (identity.h) are kept, the last used first, while servers keep their
 * connections too.
 */
struct engine_connection {
    TAILQ_ENTRY(engine_connection) links;
    struct fiber *fiber; /* whose act it serves; NULL: nobody's */
    struct http_line *http;
    struct engine_connection_proof proof;
    bool trusts; /* the act in hand does, see engine_trust */
    int64_t used_ms;
};

/* How often in a row it gave the same mark, one that tells one start from another. */
struct engine_steadiness {
    char mark[80];
    unsigned proofs;
    bool is_owed; /* an act was trusted since */
};
TAILQ_HEAD(engine_connections, engine_connection);

struct model_dirs;

struct engine {
    struct engine *next;
    char *url; /* without a slash at the end */
    struct http *http;
    const struct dialect *const *dialects; /* that are known here; NULL ends them */
    const struct dialect *dialect;         /* NULL until described */
    struct single_flight described, learning_turns[TELL_ROLES], shown;
    char *tool_turn; /* how its template writes one; "": not at all */
    struct engine_info info;
    uint64_t number; /* of the facts: another whenever they become those of somebody else; 0: none yet */
    uint64_t doubts; /* whether it is still who it was (identity.h) */
    struct engine_mark marks[ENGINE_MARKS_MAX]; /* that those facts' servers gave; the newest ones */
    size_t mark_count;
    bool has_start; /* its marks tell one start from another */
    struct engine_start start;
    struct engine_steadiness steady;
    unsigned sketch; /* special_token_escape.h: the conversation that its template takes */
    struct engine_connections busy, idle;
    int64_t refusal_said_ms;     /* when the log was told of one last; 0: never ... */
    uint64_t refusals_unsaid;    /* ... and of how many not, since */
    int64_t pause_ms;            /* what its last refusal asked for; 0: nothing */
    struct engine_use use, told; /* engines.h */
    bool is_told;
    char told_identity[80];
    struct engine_probe probe;
    void (*probed)(void *arg); /* NULL: nobody wants to know */
    void *probed_arg;
    struct engine_policy policy;
    const struct tokenizers *tokenizers; /* the worker's; NULL: none */
    const struct model_dirs *model_dirs; /* likewise, for those that know ids alone */
    struct tokenizer *tokenizer;         /* that of them that agrees; NULL: none does, or not known */
    struct single_flight compared;
    struct turn_template *turn_templates; /* the newest first; older ones live while fibers use them */
};

#endif
