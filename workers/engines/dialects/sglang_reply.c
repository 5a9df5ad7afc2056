#include "workers/engines/dialects/sglang_reply.h"

#include <errno.h>
#include <stdlib.h>

static const struct tree_node *meta_of(const struct tree *tree)
{
    return tree_get(tree, tree_root(tree), "meta_info");
}

/* One [log-probability, id, ...]. */
static int read_entry(const struct tree *tree, const struct tree_node *entry, size_t i,
                      uint32_t *id, float *logprob, struct fail *fail)
{
    if (!tree_id(tree_at(tree, entry, 1), id))
        return fail_set(fail, -EPROTO, "token %zu of the engine's answer is no id", i);
    return reply_logprob(tree_at(tree, entry, 0), i, logprob, fail);
}

static int read_entries(const struct tree *tree, const struct tree_node *entries,
                        uint64_t max_tokens, struct generation *ret, struct fail *fail)
{
    const uint32_t count = tree_count(entries);
    if (count == 0)
        return fail_set(fail, -EPROTO, "the engine's answer has no output_token_logprobs");
    int error = reply_count(count, max_tokens, fail);
    if (error < 0)
        return error;
    ret->logprobs = calloc(count, sizeof(*ret->logprobs));
    if (!ret->logprobs)
        return fail_set(fail, -ENOMEM, "out of memory");
    const struct tree_node *entry = tree_first(entries);
    for (uint32_t i = 0; i < count; i++, entry = tree_behind(tree, entry)) {
        uint32_t id;
        error = read_entry(tree, entry, i, &id, &ret->logprobs[i], fail);
        if (error == 0 && !tokens_append(&ret->sampled, &id, 1))
            error = fail_set(fail, -ENOMEM, "out of memory");
        if (error < 0)
            return error;
    }
    return 0;
}

static int check_count(const struct tree_node *count, const struct generation *ret,
                       struct fail *fail)
{
    uint32_t said = 0;
    return tree_id(count, &said) && said == ret->sampled.count
               ? 0
               : fail_set(fail, -EPROTO,
                          "the engine counts %u sampled tokens and gives log-probabilities for %zu",
                          said, ret->sampled.count);
}

int sglang_reply_read(const struct tree *tree, const struct tokens *prompt, uint64_t max_tokens,
                      struct generation *ret, struct fail *fail)
{
    const struct tree_node *meta = meta_of(tree);
    const struct tree_node *prompt_tokens = tree_get(tree, meta, "prompt_tokens");
    const struct tree_node *versions = tree_get(tree, meta, "weight_versions");
    if (!prompt_tokens)
        return fail_set(fail, -EPROTO, "the engine's answer has no meta_info");
    int error = reply_finish(tree, tree_get(tree, tree_get(tree, meta, "finish_reason"), "type"),
                             ret, fail);
    if (error == 0)
        error = read_entries(tree, tree_get(tree, meta, "output_token_logprobs"), max_tokens, ret,
                             fail);
    if (error == 0)
        error = check_count(tree_get(tree, meta, "completion_tokens"), ret, fail);
    if (error == 0)
        error = reply_prompt(prompt_tokens, prompt->count, ret, fail);
    (void)tree_id(tree_get(tree, meta, "cached_tokens"), &ret->cached_tokens);
    reply_versions(tree, versions ? versions : tree_get(tree, meta, "weight_version"), ret);
    return error == 0 ? reply_text(tree, tree_get(tree, tree_root(tree), "text"), ret, fail)
                      : error;
}

bool sglang_reply_top(const struct tree *tree, double *ret)
{
    const struct tree_node *tops = tree_get(tree, meta_of(tree), "output_top_logprobs");
    return tree_number(tree_first(tree_first(tree_first(tops))), ret);
}

int sglang_reply_scores(const struct tree *tree, const struct tokens *ids, size_t from, float *ret,
                        struct fail *fail)
{
    const struct tree_node *list = tree_get(tree, meta_of(tree), "input_token_logprobs");
    const struct tree_node *entry = tree_first(list);
    int error = reply_scored(list, ids, fail);
    for (size_t i = 0; error == 0 && i < ids->count; i++, entry = tree_behind(tree, entry)) {
        uint32_t id = 0;
        error = i < from ? 0 : read_entry(tree, entry, i, &id, &ret[i - from], fail);
        if (error == 0 && i >= from && id != ids->ids[i])
            error = fail_set(fail, -EPROTO, "the engine scored another token at %zu", i);
    }
    return error;
}
