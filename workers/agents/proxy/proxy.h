/*
 * proxy.h - the model as a harness sees it: each request is one more turn somewhere in the tree (tree.h) of what this
 * rollout's model was shown and said. What the harness gives back of the model's is recognised by meaning and stands as
 * it was sampled; a path is extended id for id (engine_bridge), or begins anew with the reason. HTTP is server.h's.
 *
 * Several requests may be under way at once, each in a fiber of its own, all on one thread.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_PROXY_H
#define SLUICE_WORKERS_AGENTS_PROXY_PROXY_H

#include "workers/agents/conversation/tool_telling.h"
#include "workers/agents/proxy/dialects/dialects.h"
#include "workers/agents/proxy/hooks/hooks.h"
#include "workers/agents/proxy/tree.h"
#include "workers/agents/proxy/words.h"
#include "workers/live/turns.h"

enum { HANDLE_SIZE = 48 };

/* How the newest prompt ended, and whether that began a thought (ear.h): most prompts end alike. */
enum { PROMPT_END_TOKENS = 6 };
struct prompt_end {
    uint32_t ids[PROMPT_END_TOKENS];
    size_t count; /* 0: there was none */
    bool is_opened;
};

/* What of the task is used up: no more turns from then on, but where a shorter prompt fits the context. */
enum proxy_over { PROXY_GOES_ON, PROXY_OVER_TURNS, PROXY_OVER_TOKENS, PROXY_OVER_CONTEXT };

struct proxy {
    struct model model;
    struct tool_telling telling;
    struct tree tree;
    struct prompt_end end;
    struct hook_edits edits; /* of hooks */
    struct live_turns shown; /* to who watches */
    uint64_t requests;       /* for turns that were taken up */
    enum proxy_over over;
    int error;           /* of the engine or the node: the rollout cannot go on; 0: none */
    struct fail fail;    /* of `error`, or why it is over, in words */
    struct fail refused; /* by the model's chat template, last: such a request gets no turn, and the rollout goes on */
};

/* Awaits: asks the engine what it serves. -E...: as engine.h. */
int proxy_open(struct proxy *proxy, struct agent_run *run, struct fail *fail);
/*
 * Awaits. What became of the rollout, `error` and its words, once no request is at work any more: -ESTALE where it was
 * not its engine that answered all of them (model_settle).
 */
int proxy_settle(const struct proxy *proxy, int error, struct fail *fail);
/* Writes the tree into the record. False: it does not fit, or there is no memory. */
bool proxy_record(struct proxy *proxy);
void proxy_close(struct proxy *proxy);

/* A turn that was sampled, as it is told; proxy_turn_finish it. `reply` borrows from the rest. */
struct proxy_turn {
    struct reply reply;
    size_t node; /* of the tree */
    struct heard heard;
    struct said_request told; /* what a hook made of it; empty: it is told as it was said */
    struct reply_call calls[FORM_CALLS_MAX];
    char id[HANDLE_SIZE], handle[HANDLE_SIZE], call_ids[FORM_CALLS_MAX][HANDLE_SIZE];
};

/* A name that nobody can guess: the prefix, at most 15 bytes, and 128 random bits in hex. */
void proxy_mint(const char *prefix, char ret[HANDLE_SIZE]);

/*
 * Who hears a turn while it is sampled: of `reply` what is known by then, and what is new of its thinking, then of its
 * text, which stands whatever follows. On the loop's stack.
 */
struct proxy_listener {
    void (*heard)(void *arg, const struct reply *reply, struct slice thinking, struct slice text);
    void *arg;
};

/*
 * Awaits. Takes from the request what it needs. `listener`: NULL for nobody. False: there is no turn, and *why with the
 * words in `fail`; the proxy is over or has failed where that was its end.
 */
bool proxy_take_turn(struct proxy *proxy, struct said_request *request, const struct proxy_listener *listener,
                     struct proxy_turn *ret, enum reply_error *why, struct fail *fail);
/* Somebody has read what was sampled there. */
void proxy_note_delivered(struct proxy *proxy, size_t node);
void proxy_turn_finish(struct proxy_turn *turn);

/* Awaits. Tokens of the prompt that the request would be, rendered by the template. False as above. */
bool proxy_count_tokens(struct proxy *proxy, struct said_request *request, uint64_t *ret, enum reply_error *why,
                        struct fail *fail);

#endif
