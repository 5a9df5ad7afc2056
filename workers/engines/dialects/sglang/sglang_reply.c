#include "workers/engines/dialects/sglang/sglang_reply.h"

#include <errno.h>
#include <stdlib.h>

#include "common/json/json_doc_look.h"

static const struct json_doc_node *meta_of(const struct json_doc *doc)
{
    return json_doc_get(doc, json_doc_root(doc), "meta_info");
}

/* One [log-probability, id, ...]. */
static int read_entry(const struct json_doc *doc, const struct json_doc_node *entry, size_t i, uint32_t *id,
                      float *logprob, struct fail *fail)
{
    const int error = reply_id(json_doc_at(doc, entry, 1), i, id, fail);
    return error < 0 ? error : reply_logprob(json_doc_at(doc, entry, 0), i, logprob, fail);
}

static int take_entries(const struct json_doc *doc, struct sampled_tokens *ret, struct fail *fail)
{
    const struct json_doc_node *entries = json_doc_get(doc, meta_of(doc), "output_token_logprobs");
    const uint32_t count = json_doc_count(entries);
    int error = reply_count(ret->ids.count + count, ret->most, fail);
    const struct json_doc_node *entry = json_doc_first(entries);
    for (uint32_t i = 0; error == 0 && i < count; i++, entry = json_doc_behind(doc, entry))
        error = sampled_tokens_pair(ret, json_doc_at(doc, entry, 1), json_doc_at(doc, entry, 0), fail);
    return error;
}

static int check_count(const struct json_doc_node *count, const struct generation *ret, struct fail *fail)
{
    uint32_t said = 0;
    return json_doc_id(count, &said) && said == ret->sampled.count
               ? 0
               : fail_set(fail, -EPROTO, "the engine counts %u sampled tokens and gives log-probabilities for %zu",
                          said, ret->sampled.count);
}

int sglang_reply_read(const struct json_doc *doc, struct sampled_tokens *streamed, const struct tokens *prompt,
                      uint64_t max_tokens, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *meta = meta_of(doc);
    const struct json_doc_node *prompt_tokens = json_doc_get(doc, meta, "prompt_tokens");
    const struct json_doc_node *versions = json_doc_get(doc, meta, "weight_versions");
    if (!prompt_tokens)
        return fail_set(fail, -EPROTO, "the engine's answer has no meta_info");
    if (!streamed && json_doc_count(json_doc_get(doc, meta, "output_token_logprobs")) == 0)
        return fail_set(fail, -EPROTO, "the engine's answer has no output_token_logprobs");
    int error = reply_finish(doc, json_doc_get(doc, json_doc_get(doc, meta, "finish_reason"), "type"), ret, fail);
    if (error == 0)
        error = sampled_tokens_read(streamed, take_entries, doc, max_tokens, ret, fail);
    if (error == 0)
        error = check_count(json_doc_get(doc, meta, "completion_tokens"), ret, fail);
    if (error == 0)
        error = reply_prompt(prompt_tokens, prompt->count, ret, fail);
    (void)json_doc_id(json_doc_get(doc, meta, "cached_tokens"), &ret->cached_tokens);
    reply_versions(doc, versions ? versions : json_doc_get(doc, meta, "weight_version"), ret);
    return error == 0 ? reply_text(doc, json_doc_get(doc, json_doc_root(doc), "text"), ret, fail) : error;
}

bool sglang_reply_top(const struct json_doc *doc, double *ret)
{
    const struct json_doc_node *tops = json_doc_get(doc, meta_of(doc), "output_top_logprobs");
    return json_doc_number(json_doc_first(json_doc_first(json_doc_first(tops))), ret);
}

static int read_tops(const struct json_doc *doc, const struct json_doc_node *list, size_t i, struct reply_tops tops,
                     struct fail *fail)
{
    const struct json_doc_node *entry = json_doc_first(list);
    int error = 0;
    if (json_doc_count(list) > tops.wanted)
        return fail_set(fail, -EPROTO, "the engine told %u likeliest tokens in place %zu, where %u were asked for",
                        json_doc_count(list), i, tops.wanted);
    for (uint32_t k = 0; error == 0 && k < json_doc_count(list); k++, entry = json_doc_behind(doc, entry)) {
        uint32_t id = 0;
        if (!json_doc_id(json_doc_at(doc, entry, 1), &id))
            return fail_set(fail, -EPROTO, "a likeliest token in place %zu has no id", i);
        error = reply_tops_add(&tops, json_doc_at(doc, entry, 0), id, i, fail);
    }
    return error < 0 ? error : reply_tops_check(&tops, i, fail);
}

/* Of all places, where they were asked for. */
static int read_all_tops(const struct json_doc *doc, const struct tokens *ids, size_t from,
                         const struct token_scores *ret, struct fail *fail)
{
    const struct json_doc_node *list = json_doc_get(doc, meta_of(doc), "input_top_logprobs");
    const struct json_doc_node *entry = json_doc_first(list);
    int error = ret->top_k ? reply_scored(list, ids, fail) : 0;
    for (size_t i = 0; ret->top_k && error == 0 && i < ids->count; i++, entry = json_doc_behind(doc, entry))
        error = !token_scores_want(ret, from, i) ? 0 : read_tops(doc, entry, i, reply_tops_of(ret, i - from), fail);
    return error;
}

int sglang_reply_scores(const struct json_doc *doc, const struct tokens *ids, size_t from,
                        const struct token_scores *ret, struct fail *fail)
{
    const struct json_doc_node *list = json_doc_get(doc, meta_of(doc), "input_token_logprobs");
    const struct json_doc_node *entry = json_doc_first(list);
    int error = reply_scored(list, ids, fail);
    for (size_t i = 0; error == 0 && i < ids->count; i++, entry = json_doc_behind(doc, entry)) {
        uint32_t id = 0;
        if (!token_scores_want(ret, from, i))
            continue;
        error = read_entry(doc, entry, i, &id, &ret->logprobs[i - from], fail);
        if (error == 0 && id != ids->ids[i])
            error = fail_set(fail, -EPROTO, "the engine scored another token at %zu", i);
    }
    return error < 0 ? error : read_all_tops(doc, ids, from, ret, fail);
}

/* ---- streams --------------------------------------------------------------------------------- */

const struct fold_form sglang_stream_form = {
    .rows = {{FOLD_TEXT, "\"text\":\"", "\",", {"text"}},
             {FOLD_WORDS, "\"meta_info\":{"},
             {FOLD_LAST, "\"prompt_tokens\":", ",", {"meta_info", "prompt_tokens"}},
             {FOLD_LAST, "\"completion_tokens\":", ",", {"meta_info", "completion_tokens"}},
             {FOLD_LAST, "\"cached_tokens\":", ",", {"meta_info", "cached_tokens"}},
             {FOLD_LAST, "\"weight_version\":", ",", {"meta_info", "weight_version"}},
             {FOLD_LAST, "\"weight_versions\":", ",", {"meta_info", "weight_versions"}},
             {FOLD_FINISH, "\"finish_reason\":", "}}", {"meta_info", "finish_reason"}}},
    .cut = "{\"type\":\"length\"}",
    .take = take_entries};
