/*
 * hook_edits.h - what hooks made of a conversation, so that it is made of it again: the harness gives back its own
 * words. One that an edit is not known in is another's, as that of a title or of a sub-agent: its hooks are asked.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOK_EDITS_H
#define SLUICE_WORKERS_AGENTS_PROXY_HOOKS_HOOK_EDITS_H

#include "common/base/fail.h"
#include "workers/agents/proxy/said.h"

enum { HOOK_EDITS_MAX = 4096 };

/* Messages that became others, and by what the place is known again. */
struct hook_edit {
    size_t at;
    struct said_request before;       /* the one before them, if any */
    struct said_request was, becomes; /* either may be none */
    struct said_request behind;       /* those behind them up to the first that is not a system's */
    bool is_at_end;                   /* nothing else was behind them: later a turn is, or nothing again */
    size_t tools;                     /* on offer: an index of hook_edits.tools */
};

struct hook_edits {
    struct hook_edit *edits; /* each of the conversation that those before it leave */
    size_t count, capacity;
    json_t *tools; /* a list of lists of tools */
};

/*
 * Makes the edits that are known in this conversation. -ENOMEM, or -E2BIG: with them it has too many messages; or of
 * the other: too many edits.
 */
int hook_edits_repeat(const struct hook_edits *edits, struct said_request *request, struct fail *fail);
/* Messages [at, at + count) become `becomes`, which is copied. */
int hook_edits_make(struct hook_edits *edits, struct said_request *request, size_t at, size_t count,
                    const struct said_request *becomes, struct fail *fail);
void hook_edits_finish(struct hook_edits *edits);

#endif
