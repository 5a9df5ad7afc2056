/*
 * engine.h - LLM inference servers, token ids in, token ids out. One dialect, one file, one
 * row in dialects.c. All calls run in a fiber. Errors are negative errno with a sentence:
 *   -EAGAIN    busy, starting or overloaded: try again later     (infra)
 *   -EIO, -ECONNREFUSED, -ETIMEDOUT: gone or broken              (infra)
 *   -EPROTO    an answer that is not what the dialect promises   (infra)
 *   -ESTALE    it became another while it was asked (identity.h)  (infra)
 *   -E2BIG     the prompt does not fit the context               (agent)
 *   -EINVAL    it will never take this request                   (task)
 *   -ENOTSUP   engine_bridge alone: a new trace is needed
 *   -ECANCELED the fiber was cancelled
 * Retries with back-off for the first three happen inside (calls.h), bounded by the fiber's
 * deadline and ENGINE_TRIES. Time in the engine's own queue is time of the call; not every engine
 * says how long it was.
 */
#ifndef SLUICE_WORKERS_ENGINES_ENGINE_H
#define SLUICE_WORKERS_ENGINES_ENGINE_H

#include "common/base/buffer.h"
#include "common/base/fail.h"
#include "common/base/slice.h"
#include "schemas/task/task.h"
#include "workers/engines/server/turn.h"
#include "workers/runtime/http.h"

enum { ENGINE_TRIES = 5 };

struct engine; /* one server as one worker sees it; shared by its rollouts */

/* What the engine is called with from now on (http.h); false when out of memory. */
bool engine_set_credentials(struct engine *engine, const char *credentials);

struct engine_about {
    uint64_t context_tokens;   /* that one request may use */
    char template_digest[80];  /* "sha256:..." */
    char tokenizer_digest[80]; /* of what it makes of a sample; "": it cannot be asked */
    char model_digest[80];     /* of what else must stay the same under a rollout: its name or path, say */
    char identity[80];         /* of all three: token ids of another mean something else */
    char model[256];           /* its name as the engine tells it, cut to fit; "": it tells none */
};
/* What it serves, by its own word now. */
int engine_describe(struct engine *engine, struct engine_about *ret, struct fail *fail);
/* The same as it was last told, without asking. False: it has not told yet. */
bool engine_recall(const struct engine *engine, struct engine_about *ret);
/* Whether that is who answered last: right behind a call that returned, who answered that. */
bool engine_serves(const struct engine *engine, const char *identity);

/*
 * The chat template applied, generation prompt included, as ids. The messages from `text_from` on
 * are text whatever they say: the names of special tokens in them do not become such (in those
 * before they do: whoever wrote the task may want them).
 */
int engine_render(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                  struct tokens *ret, struct fail *fail);
/* Of its -EINVAL what the template, or the engine, says of the messages, without what was asked and how. */
const char *engine_render_words(const struct fail *fail);

/* A reply, and what is said to it: one turn in that role, or several in a row. */
struct telling {
    enum tell_role role;
    uint32_t last; /* the reply's last sampled id */
    /* Its text, and those of replies before it that a turn in this role may be the first to change. */
    const char *const *replies;
    size_t reply_count;
    const struct slice *contents;
    size_t count;
    bool trusts; /* engine_trust (server/identity.h); engine_settle it */
};

/*
 * What stands between a reply and the next one: the ids that, after `prompt + sampled`, say
 * the contents in that role as the template has them. Text between two special tokens is encoded in one
 * pass, and content with special tokens off, so that output cannot inject a role.
 * -ENOTSUP: what the template makes of this conversation does not begin with the ids so far; the
 * sentence begins with a word of docs/trajectory.md ("Why a trace starts").
 */
int engine_bridge(struct engine *engine, const struct telling *telling, struct tokens *ret, struct fail *fail);
/*
 * Whether the template writes `mark` around a turn of the role tool, and such turns have bridges,
 * several in a row too.
 */
int engine_marks_tools(struct engine *engine, const char *mark, bool *ret, struct fail *fail);

/* What these ids say, special tokens by their names, appended. */
int engine_say(struct engine *engine, const struct tokens *ids, struct buffer *ret, struct fail *fail);

/*
 * Tokens that were sampled before, scored as the engine is now: for each ids[i] with wanted[i], i > 0,
 * its row of `scores` becomes the natural log of its probability after ids[0..i), of the kind that
 * engine_logprobs_mode says at temperature 1. Other rows stay as they are. What follows the last that is wanted is not
 * shown to the engine. -E2BIG: the ids do not fit the context; -EINVAL: no id of this engine's, more likeliest ids
 * than it tells, or it cannot do it.
 */
struct engine_scoring {
    const uint32_t *ids;
    const uint8_t *wanted;
    size_t count;
    size_t from;                /* before it nothing is wanted ... */
    struct token_scores scores; /* ... and a row for each id behind */
    uint64_t *done;             /* counts up as it goes, for who shows progress */
    size_t at;                  /* `from`; then where a try after a failed one goes on */
};
int engine_score(struct engine *engine, struct engine_scoring *scoring, struct fail *fail);

const char *engine_base_url(const struct engine *engine);
const char *engine_logprobs_mode(const struct engine *engine);

#endif
