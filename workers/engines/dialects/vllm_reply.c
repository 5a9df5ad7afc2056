#include "workers/engines/dialects/vllm_reply.h"

#include <errno.h>

#include "common/base/cleanup.h"

static const struct tree_node *choice_of(const struct tree *tree)
{
    return tree_first(tree_get(tree, tree_root(tree), "choices"));
}

/* What both routes have alike. */
static int read_choice(const struct tree *tree, size_t prompt_count, uint64_t max_tokens,
                       struct generation *ret, struct fail *fail)
{
    const struct tree_node *choice = choice_of(tree);
    const struct tree_node *usage = tree_get(tree, tree_root(tree), "usage");
    const struct tree_node *details = tree_get(tree, usage, "prompt_tokens_details");
    if (!choice)
        return fail_set(fail, -EPROTO, "the engine's answer has no choices");
    int error = reply_finish(tree, tree_get(tree, choice, "finish_reason"), ret, fail);
    if (error == 0)
        error = reply_ids(tree, tree_get(tree, choice, "token_ids"), max_tokens, &ret->sampled,
                          fail);
    if (error == 0)
        error = reply_prompt(tree_get(tree, usage, "prompt_tokens"), prompt_count, ret, fail);
    (void)tree_id(tree_get(tree, details, "cached_tokens"), &ret->cached_tokens);
    return error == 0 ? reply_room(ret, fail) : error;
}

static int other_tokens(size_t i, struct fail *fail)
{
    return fail_set(fail, -EPROTO, "the engine's log-probability %zu is of another token", i);
}

static int wrong_count(uint32_t count, const struct generation *ret, struct fail *fail)
{
    return fail_set(fail, -EPROTO, "the engine gave %u log-probabilities for %zu tokens", count,
                    ret->sampled.count);
}

/* "token_id:N" */
static bool is_named(const struct tree *tree, const struct tree_node *name, uint32_t id)
{
    char wanted[32];
    snprintf(wanted, sizeof(wanted), "token_id:%u", id);
    return tree_is(tree, name, wanted);
}

static bool is_entry_of(const struct tree *tree, const struct tree_node *entry, uint32_t id)
{
    uint32_t said;
    const struct tree_node *token_id = tree_get(tree, entry, "token_id");
    return token_id ? tree_id(token_id, &said) && said == id
                    : is_named(tree, tree_get(tree, entry, "token"), id);
}

static int read_content(const struct tree *tree, const struct tree_node *content,
                        struct generation *ret, struct fail *fail)
{
    if (tree_count(content) != ret->sampled.count)
        return wrong_count(tree_count(content), ret, fail);
    const struct tree_node *entry = tree_first(content);
    for (size_t i = 0; i < ret->sampled.count; i++, entry = tree_behind(tree, entry)) {
        if (!is_entry_of(tree, entry, ret->sampled.ids[i]))
            return other_tokens(i, fail);
        int error = reply_logprob(tree_get(tree, entry, "logprob"), i, &ret->logprobs[i], fail);
        if (error < 0)
            return error;
    }
    return 0;
}

int vllm_reply_generate(const struct tree *tree, const struct tokens *prompt, uint64_t max_tokens,
                        struct generation *ret, struct fail *fail)
{
    int error = read_choice(tree, prompt->count, max_tokens, ret, fail);
    if (error < 0)
        return error;
    const struct tree_node *choice = choice_of(tree);
    reply_versions(tree, tree_get(tree, choice, "weight_versions"), ret);
    return read_content(tree, tree_get(tree, tree_get(tree, choice, "logprobs"), "content"), ret,
                        fail);
}

static int check_prompt(const struct tree *tree, const struct tree_node *ids,
                        const struct tokens *prompt, struct fail *fail)
{
    if (tree_count(ids) != prompt->count)
        return fail_set(fail, -EPROTO,
                        "the engine read a prompt of %u token ids where %zu were sent",
                        tree_count(ids), prompt->count);
    const struct tree_node *node = tree_first(ids);
    for (size_t i = 0; i < prompt->count; i++, node = tree_behind(tree, node)) {
        uint32_t id;
        if (!tree_id(node, &id) || id != prompt->ids[i])
            return fail_set(fail, -EPROTO, "the engine read another prompt: token %zu is not %u", i,
                            prompt->ids[i]);
    }
    return 0;
}

/* Servers that cannot name tokens by their ids name them by their text: nothing to check then. */
static bool names_ids(const struct tree *tree, const struct tree_node *name)
{
    AUTO_BUFFER text = {0};
    return tree_string(tree, name, &text) && text.len > 9 && memcmp(text.data, "token_id:", 9) == 0;
}

static int read_lists(const struct tree *tree, const struct tree_node *logprobs,
                      struct generation *ret, struct fail *fail)
{
    const struct tree_node *values = tree_get(tree, logprobs, "token_logprobs");
    const struct tree_node *names = tree_get(tree, logprobs, "tokens");
    if (tree_count(values) != ret->sampled.count)
        return wrong_count(tree_count(values), ret, fail);
    if (tree_count(names) != ret->sampled.count)
        names = NULL;
    const struct tree_node *value = tree_first(values), *name = tree_first(names);
    for (size_t i = 0; i < ret->sampled.count; i++, value = tree_behind(tree, value)) {
        if (name && !is_named(tree, name, ret->sampled.ids[i]) && names_ids(tree, name))
            return other_tokens(i, fail);
        int error = reply_logprob(value, i, &ret->logprobs[i], fail);
        if (error < 0)
            return error;
        name = name ? tree_behind(tree, name) : NULL;
    }
    return 0;
}

int vllm_reply_complete(const struct tree *tree, const struct tokens *prompt, uint64_t max_tokens,
                        struct generation *ret, struct fail *fail)
{
    int error = read_choice(tree, prompt->count, max_tokens, ret, fail);
    const struct tree_node *choice = choice_of(tree);
    if (error == 0)
        error = check_prompt(tree, tree_get(tree, choice, "prompt_token_ids"), prompt, fail);
    if (error == 0)
        error = reply_text(tree, tree_get(tree, choice, "text"), ret, fail);
    return error == 0 ? read_lists(tree, tree_get(tree, choice, "logprobs"), ret, fail) : error;
}

/* The likeliest so far. */
struct top {
    bool has;
    double value;
};

static void top_take(struct top *top, const struct tree_node *node)
{
    double value;
    if (!tree_number(node, &value) || (top->has && value <= top->value))
        return;
    *top = (struct top){true, value};
}

bool vllm_reply_top(const struct tree *tree, double *ret)
{
    const struct tree_node *logprobs = tree_get(tree, choice_of(tree), "logprobs");
    const struct tree_node *entry = tree_first(tree_get(tree, logprobs, "content"));
    const struct tree_node *list = tree_get(tree, entry, "top_logprobs");
    const struct tree_node *map = tree_first(tree_get(tree, logprobs, "top_logprobs"));
    struct top top = {0};
    for (uint32_t i = 0; i < tree_count(list); i++)
        top_take(&top, tree_get(tree, tree_at(tree, list, i), "logprob"));
    const struct tree_node *name = map && map->kind == TREE_OBJECT ? map + 1 : NULL;
    for (uint32_t i = 0; name && i < map->count; i++, name = tree_behind(tree, name + 1))
        top_take(&top, name + 1);
    if (top.has)
        *ret = top.value;
    return top.has;
}

/* [null, {"ID": {"logprob": ...}, ...}, ...]: of the whole answer, or of its choice. */
int vllm_reply_scores(const struct tree *tree, const struct tokens *ids, size_t from, float *ret,
                      struct fail *fail)
{
    const struct tree_node *list = tree_get(tree, tree_root(tree), "prompt_logprobs");
    if (tree_count(list) == 0)
        list = tree_get(tree, choice_of(tree), "prompt_logprobs");
    if (tree_count(list) == 0)
        return fail_set(fail, -ENOTSUP, "it does not tell a prompt's log-probabilities");
    const struct tree_node *entry = tree_first(list);
    int error = reply_scored(list, ids, fail);
    for (size_t i = 0; error == 0 && i < ids->count; i++, entry = tree_behind(tree, entry)) {
        char name[16];
        snprintf(name, sizeof(name), "%u", ids->ids[i]);
        const struct tree_node *score = tree_get(tree, tree_get(tree, entry, name), "logprob");
        error = i < from ? 0 : reply_logprob(score, i, &ret[i - from], fail);
    }
    return error;
}
