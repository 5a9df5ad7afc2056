#include "workers/engines/dialects/vllm/vllm_reply.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"

enum { ID_DIGITS = 9 }; /* of an id as text */

static const struct json_doc_node *choice_of(const struct json_doc *doc)
{
    return json_doc_first(json_doc_get(doc, json_doc_root(doc), "choices"));
}

/* What both routes have alike, but for the tokens. */
static int read_choice(const struct json_doc *doc, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *choice = choice_of(doc);
    return choice ? reply_finish(doc, json_doc_get(doc, choice, "finish_reason"), ret, fail)
                  : fail_set(fail, -EPROTO, "the engine's answer has no choices");
}

static int read_usage(const struct json_doc *doc, size_t prompt_count, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *usage = json_doc_get(doc, json_doc_root(doc), "usage");
    const struct json_doc_node *details = json_doc_get(doc, usage, "prompt_tokens_details");
    (void)json_doc_id(json_doc_get(doc, details, "cached_tokens"), &ret->cached_tokens);
    return reply_prompt(json_doc_get(doc, usage, "prompt_tokens"), prompt_count, ret, fail);
}

static const char id_mark[] = "token_id:";
enum { ID_MARK_LEN = sizeof(id_mark) - 1 };

/* "token_id:N", compared from its end. */
static bool is_named(const struct json_doc *doc, const struct json_doc_node *name, uint32_t id)
{
    if (!name || name->kind != JSON_DOC_STRING)
        return false;
    const struct slice text = json_doc_raw(doc, name);
    size_t at = text.len;
    do
        if (at <= ID_MARK_LEN || text.data[--at] != '0' + id % 10)
            return false;
    while ((id /= 10) > 0);
    return at == ID_MARK_LEN && memcmp(text.data, id_mark, ID_MARK_LEN) == 0;
}

static bool is_entry_of(const struct json_doc *doc, const struct json_doc_node *entry, uint32_t id)
{
    uint32_t said;
    const struct json_doc_node *token_id = json_doc_get(doc, entry, "token_id");
    return token_id ? json_doc_id(token_id, &said) && said == id : is_named(doc, json_doc_get(doc, entry, "token"), id);
}

static int take_generate(const struct json_doc *doc, struct sampled_tokens *ret, struct fail *fail)
{
    const struct json_doc_node *choice = choice_of(doc);
    const struct json_doc_node *content = json_doc_get(doc, json_doc_get(doc, choice, "logprobs"), "content");
    const uint32_t count = json_doc_count(content);
    int error = sampled_tokens_ids(ret, doc, json_doc_get(doc, choice, "token_ids"), fail);
    if (error == 0)
        error = sampled_tokens_count(ret, count, fail);
    const struct json_doc_node *entry = json_doc_first(content);
    for (uint32_t i = 0; error == 0 && i < count; i++, entry = json_doc_behind(doc, entry))
        error = is_entry_of(doc, entry, sampled_tokens_due(ret))
                    ? sampled_tokens_logprob(ret, json_doc_get(doc, entry, "logprob"), fail)
                    : sampled_tokens_other(ret, fail);
    return error;
}

int vllm_reply_generate(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                        uint64_t max_tokens, struct generation *ret, struct fail *fail)
{
    int error = read_choice(doc, ret, fail);
    if (error == 0)
        error = sampled_tokens_read(streamed, take_generate, doc, max_tokens, ret, fail);
    if (error == 0)
        reply_versions(doc, json_doc_get(doc, choice_of(doc), "weight_versions"), ret);
    return error == 0 ? read_usage(doc, prompt->count, ret, fail) : error;
}

static int check_prompt(const struct json_doc *doc, const struct json_doc_node *ids, const struct tokens *prompt,
                        struct fail *fail)
{
    if (json_doc_count(ids) != prompt->count)
        return fail_set(fail, -EPROTO, "the engine read a prompt of %u token ids where %zu were sent",
                        json_doc_count(ids), prompt->count);
    const struct json_doc_node *node = json_doc_first(ids);
    for (size_t i = 0; i < prompt->count; i++, node = json_doc_behind(doc, node)) {
        uint32_t id;
        if (!json_doc_id(node, &id) || id != prompt->ids[i])
            return fail_set(fail, -EPROTO, "the engine read another prompt: token %zu is not %u", i, prompt->ids[i]);
    }
    return 0;
}

/* Servers that cannot name tokens by their ids name them by their text: nothing to check then. */
static bool names_ids(const struct json_doc *doc, const struct json_doc_node *name)
{
    AUTO_BUFFER text = {0};
    return json_doc_string(doc, name, &text) && text.len > ID_MARK_LEN && memcmp(text.data, id_mark, ID_MARK_LEN) == 0;
}

static int take_complete(const struct json_doc *doc, struct sampled_tokens *ret, struct fail *fail)
{
    const struct json_doc_node *choice = choice_of(doc), *logprobs = json_doc_get(doc, choice, "logprobs");
    const struct json_doc_node *values = json_doc_get(doc, logprobs, "token_logprobs");
    const struct json_doc_node *names = json_doc_get(doc, logprobs, "tokens");
    const uint32_t count = json_doc_count(values);
    int error = sampled_tokens_ids(ret, doc, json_doc_get(doc, choice, "token_ids"), fail);
    if (error == 0)
        error = sampled_tokens_count(ret, count, fail);
    if (json_doc_count(names) != count)
        names = NULL;
    const struct json_doc_node *value = json_doc_first(values), *name = json_doc_first(names);
    for (uint32_t i = 0; error == 0 && i < count; i++, value = json_doc_behind(doc, value)) {
        if (name && !is_named(doc, name, sampled_tokens_due(ret)) && names_ids(doc, name))
            return sampled_tokens_other(ret, fail);
        error = sampled_tokens_logprob(ret, value, fail);
        name = name ? json_doc_behind(doc, name) : NULL;
    }
    return error;
}

int vllm_reply_complete(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                        uint64_t max_tokens, struct generation *ret, struct fail *fail)
{
    int error = read_choice(doc, ret, fail);
    const struct json_doc_node *choice = choice_of(doc);
    if (error == 0)
        error = sampled_tokens_read(streamed, take_complete, doc, max_tokens, ret, fail);
    if (error == 0)
        error = read_usage(doc, prompt->count, ret, fail);
    if (error == 0)
        error = check_prompt(doc, json_doc_get(doc, choice, "prompt_token_ids"), prompt, fail);
    return error == 0 ? reply_text(doc, json_doc_get(doc, choice, "text"), ret, fail) : error;
}

/* The likeliest so far. */
struct top {
    bool has;
    double value;
};

static void top_take(struct top *top, const struct json_doc_node *node)
{
    double value;
    if (!json_doc_number(node, &value) || (top->has && value <= top->value))
        return;
    *top = (struct top){true, value};
}

bool vllm_reply_top(const struct json_doc *doc, double *ret)
{
    const struct json_doc_node *logprobs = json_doc_get(doc, choice_of(doc), "logprobs");
    const struct json_doc_node *entry = json_doc_first(json_doc_get(doc, logprobs, "content"));
    const struct json_doc_node *list = json_doc_get(doc, entry, "top_logprobs");
    const struct json_doc_node *map = json_doc_first(json_doc_get(doc, logprobs, "top_logprobs"));
    struct top top = {0};
    for (uint32_t i = 0; i < json_doc_count(list); i++)
        top_take(&top, json_doc_get(doc, json_doc_at(doc, list, i), "logprob"));
    const struct json_doc_node *name = map && map->kind == JSON_DOC_OBJECT ? map + 1 : NULL;
    for (uint32_t i = 0; name && i < map->count; i++, name = json_doc_behind(doc, name + 1))
        top_take(&top, name + 1);
    if (top.has)
        *ret = top.value;
    return top.has;
}

const char *vllm_reply_mode(const struct json_doc *doc)
{
    static const char *const modes[] = {"raw", "processed"};
    const struct json_doc_node *logprobs = json_doc_get(doc, choice_of(doc), "logprobs");
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        if (json_doc_is(doc, json_doc_get(doc, logprobs, "mode"), modes[i]))
            return modes[i];
    return NULL;
}

/* The id that a member of prompt_logprobs is named by. */
static bool read_id(const struct json_doc *doc, const struct json_doc_node *name, uint32_t *ret)
{
    uint32_t id = 0;
    const struct slice text = json_doc_raw(doc, name);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        id = id * 10 + (uint32_t)(text.data[i] - '0');
    }
    *ret = id;
    return text.len > 0 && text.len <= ID_DIGITS;
}

/* One of the likeliest, or the prompt's own token, whose rank may be any. */
static int read_top(const struct json_doc *doc, const struct json_doc_node *name, uint32_t own, size_t i,
                    struct reply_tops *tops, struct fail *fail)
{
    uint32_t id, rank;
    if (!read_id(doc, name, &id))
        return fail_set(fail, -EPROTO, "a likeliest token in place %zu has no id", i);
    if (!json_doc_id(json_doc_get(doc, name + 1, "rank"), &rank))
        return fail_set(fail, -EPROTO, "the engine tells no rank of token %u in place %zu", id, i);
    if (id == own && rank > tops->wanted)
        return 0;
    return reply_tops_put(tops, rank, json_doc_get(doc, name + 1, "logprob"), id, i, fail);
}

/* Of {"ID": {"logprob", "rank"}, ...}: the likeliest, and the prompt's own where it is none of them. */
static int read_tops(const struct json_doc *doc, const struct json_doc_node *entry, uint32_t own, size_t i,
                     struct reply_tops tops, struct fail *fail)
{
    const struct json_doc_node *name = entry && entry->kind == JSON_DOC_OBJECT ? entry + 1 : NULL;
    int error = 0;
    for (uint32_t k = 0; name && error == 0 && k < entry->count && tops.wanted; k++) {
        error = read_top(doc, name, own, i, &tops, fail);
        name = json_doc_behind(doc, name + 1);
    }
    return error < 0 ? error : reply_tops_check(&tops, i, fail);
}

/* [null, {"ID": {"logprob": ...}, ...}, ...]: of the whole answer, or of its choice. */
int vllm_reply_scores(const struct json_doc *doc, const struct tokens *ids, size_t from, const struct token_scores *ret,
                      struct fail *fail)
{
    const struct json_doc_node *list = json_doc_get(doc, json_doc_root(doc), "prompt_logprobs");
    if (json_doc_count(list) == 0)
        list = json_doc_get(doc, choice_of(doc), "prompt_logprobs");
    if (json_doc_count(list) == 0)
        return fail_set(fail, -ENOTSUP, "it does not tell a prompt's log-probabilities");
    const struct json_doc_node *entry = json_doc_first(list);
    int error = reply_scored(list, ids, fail);
    for (size_t i = 0; error == 0 && i < ids->count; i++, entry = json_doc_behind(doc, entry)) {
        char name[16];
        if (!token_scores_want(ret, from, i))
            continue;
        snprintf(name, sizeof(name), "%u", ids->ids[i]);
        const struct json_doc_node *score = json_doc_get(doc, json_doc_get(doc, entry, name), "logprob");
        error = reply_logprob(score, i, &ret->logprobs[i - from], fail);
        if (error == 0)
            error = read_tops(doc, entry, ids->ids[i], i, reply_tops_of(ret, i - from), fail);
    }
    return error;
}

/* ---- streams --------------------------------------------------------------------------------- */

const struct fold_form vllm_stream_generate = {
    .rows = {{FOLD_LAST, "\"usage\":", ",", {"usage"}},
             {FOLD_WORDS, "\"choices\":[{"},
             {FOLD_LAST, "\"weight_versions\":", ",", {"choices", "weight_versions"}},
             {FOLD_FINISH, "\"finish_reason\":", "}]}", {"choices", "finish_reason"}}},
    .cut = "\"length\"",
    .take = take_generate};

const struct fold_form vllm_stream_complete = {
    .rows = {{FOLD_LAST, "\"usage\":", ",", {"usage"}},
             {FOLD_WORDS, "\"choices\":[{"},
             {FOLD_FIRST, "\"prompt_token_ids\":", ",", {"choices", "prompt_token_ids"}},
             {FOLD_TEXT, "\"text\":\"", "\",", {"choices", "text"}},
             {FOLD_FINISH, "\"finish_reason\":", "}]}", {"choices", "finish_reason"}}},
    .cut = "\"length\"",
    .take = take_complete};
