#include "workers/engines/dialects/sampled_tokens.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "workers/engines/dialects/reply_check.h"

enum { FIRST_ROOM = 64 }; /* tokens */

void sampled_tokens_finish(struct sampled_tokens *sampled)
{
    tokens_finish(&sampled->ids);
    free(sampled->logprobs);
    *sampled = (struct sampled_tokens){0};
}

/* ---- ids ----------------------------------------------------------------------------------------- */

int sampled_tokens_ids(struct sampled_tokens *sampled, const struct json_doc *doc, const struct json_doc_node *list,
                       struct fail *fail)
{
    return reply_more_ids(doc, list, sampled->most, &sampled->ids, fail);
}

/* ---- log-probabilities ----------------------------------------------------------------------------- */

static int wrong_count(const struct sampled_tokens *sampled, size_t count, struct fail *fail)
{
    if (sampled->ids.count == 0)
        return fail_set(fail, -EPROTO, "the engine's answer has no token ids");
    return fail_set(fail, -EPROTO, "the engine gave %zu log-probabilities for %zu tokens", count, sampled->ids.count);
}

int sampled_tokens_count(const struct sampled_tokens *sampled, uint32_t logprobs, struct fail *fail)
{
    const size_t count = sampled->valued + logprobs;
    return count <= sampled->ids.count ? 0 : wrong_count(sampled, count, fail);
}

uint32_t sampled_tokens_due(const struct sampled_tokens *sampled) { return sampled->ids.ids[sampled->valued]; }

int sampled_tokens_other(const struct sampled_tokens *sampled, struct fail *fail)
{
    return fail_set(fail, -EPROTO, "the engine's log-probability %zu is of another token", sampled->valued);
}

static bool grow(struct sampled_tokens *sampled)
{
    const size_t capacity = sampled->capacity ? sampled->capacity * 2 : FIRST_ROOM;
    float *logprobs = realloc(sampled->logprobs, capacity * sizeof(*logprobs));
    if (!logprobs)
        return false;
    sampled->logprobs = logprobs;
    sampled->capacity = capacity;
    return true;
}

int sampled_tokens_logprob(struct sampled_tokens *sampled, const struct json_doc_node *node, struct fail *fail)
{
    if (sampled->valued == sampled->capacity && !grow(sampled))
        return fail_memory(fail);
    const int error = reply_logprob(node, sampled->valued, &sampled->logprobs[sampled->valued], fail);
    sampled->valued += error == 0;
    return error;
}

int sampled_tokens_pair(struct sampled_tokens *sampled, const struct json_doc_node *id,
                        const struct json_doc_node *logprob, struct fail *fail)
{
    uint32_t value;
    const int error = reply_id(id, sampled->ids.count, &value, fail);
    if (error < 0)
        return error;
    return tokens_append(&sampled->ids, &value, 1) ? sampled_tokens_logprob(sampled, logprob, fail) : fail_memory(fail);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

static int give(struct sampled_tokens *sampled, struct generation *ret, struct fail *fail)
{
    if (sampled->ids.count == 0 || sampled->valued != sampled->ids.count)
        return wrong_count(sampled, sampled->valued, fail);
    ret->sampled = sampled->ids;
    ret->logprobs = take_ptr(&sampled->logprobs);
    sampled->ids = (struct tokens){0};
    return 0;
}

int sampled_tokens_read(struct sampled_tokens *streamed, sampled_tokens_take *take, const struct json_doc *doc,
                        uint64_t most, struct generation *ret, struct fail *fail)
{
    struct sampled_tokens own = {.most = most};
    int error = streamed ? 0 : take(doc, &own, fail);
    if (error == 0)
        error = give(streamed ? streamed : &own, ret, fail);
    sampled_tokens_finish(&own);
    return error;
}
