#include "workers/engines/dialects/reply_check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "common/base/utf8.h"

static const double LOGPROB_EPSILON = 1e-4; /* above 0: rounding of the server's softmax */
static const double LOGPROB_NONE = -9999;

int reply_count(uint64_t count, uint64_t max_tokens, struct fail *fail)
{
    return count <= max_tokens
               ? 0
               : fail_set(fail, -EPROTO, "the engine sampled %llu tokens where at most %llu were asked for",
                          (unsigned long long)count, (unsigned long long)max_tokens);
}

int reply_id(const struct json_doc_node *node, size_t i, uint32_t *ret, struct fail *fail)
{
    return json_doc_id(node, ret) ? 0 : fail_set(fail, -EPROTO, "token %zu of the engine's answer is not an id", i);
}

int reply_more_ids(const struct json_doc *doc, const struct json_doc_node *ids, uint64_t max_tokens, struct tokens *ret,
                   struct fail *fail)
{
    const uint32_t count = json_doc_count(ids);
    int error = reply_count(ret->count + count, max_tokens, fail);
    const struct json_doc_node *node = json_doc_first(ids);
    for (uint32_t i = 0; error == 0 && i < count; i++, node = json_doc_behind(doc, node)) {
        uint32_t id;
        error = reply_id(node, ret->count, &id, fail);
        if (error == 0 && !tokens_append(ret, &id, 1))
            error = fail_memory(fail);
    }
    return error;
}

int reply_ids(const struct json_doc *doc, const struct json_doc_node *ids, uint64_t max_tokens, struct tokens *ret,
              struct fail *fail)
{
    return json_doc_count(ids) > 0 ? reply_more_ids(doc, ids, max_tokens, ret, fail)
                                   : fail_set(fail, -EPROTO, "the engine's answer has no token ids");
}

int reply_logprob(const struct json_doc_node *node, size_t i, float *ret, struct fail *fail)
{
    double value = 0;
    if (!json_doc_number(node, &value))
        return fail_set(fail, -EPROTO, "the engine gave no log-probability for token %zu", i);
    if (value > LOGPROB_EPSILON || value <= LOGPROB_NONE || !isfinite((float)value))
        return fail_set(fail, -EPROTO, "%g for token %zu is not a log-probability", value, i);
    *ret = value > 0 ? 0 : (float)value;
    return 0;
}

int reply_scored(const struct json_doc_node *list, const struct tokens *prompt, struct fail *fail)
{
    return json_doc_count(list) == prompt->count
               ? 0
               : fail_set(fail, -EPROTO, "the engine scored %u tokens of a prompt of %zu", json_doc_count(list),
                          prompt->count);
}

struct reply_tops reply_tops_of(const struct token_scores *scores, size_t row)
{
    const struct token_scores at = token_scores_from(scores, row);
    return (struct reply_tops){.ids = at.top_ids, .logprobs = at.top_logprobs, .wanted = at.top_k};
}

int reply_tops_add(struct reply_tops *tops, const struct json_doc_node *logprob, uint32_t id, size_t i,
                   struct fail *fail)
{
    float value = 0;
    int error = reply_logprob(logprob, i, &value, fail);
    if (error < 0)
        return error;
    uint32_t at = tops->count;
    while (at > 0 && tops->logprobs[at - 1] < value)
        at--;
    if (at == tops->wanted)
        return 0;
    tops->count += tops->count < tops->wanted;
    for (uint32_t k = tops->count - 1; k > at; k--) {
        tops->ids[k] = tops->ids[k - 1];
        tops->logprobs[k] = tops->logprobs[k - 1];
    }
    tops->ids[at] = id;
    tops->logprobs[at] = value;
    return 0;
}

int reply_tops_put(struct reply_tops *tops, uint32_t rank, const struct json_doc_node *logprob, uint32_t id, size_t i,
                   struct fail *fail)
{
    const uint64_t bit = rank > 0 && rank <= tops->wanted ? UINT64_C(1) << (rank - 1) : 0;
    if (!bit || (tops->ranks & bit))
        return fail_set(fail, -EPROTO, "the engine told token %u as one %s of rank %u in place %zu", id,
                        bit ? "more" : "that is not wanted,", rank, i);
    tops->ranks |= bit;
    tops->count++;
    tops->ids[rank - 1] = id;
    return reply_logprob(logprob, i, &tops->logprobs[rank - 1], fail);
}

static bool is_told_before(const struct reply_tops *tops, uint32_t k)
{
    for (uint32_t i = 0; i < k; i++)
        if (tops->ids[i] == tops->ids[k])
            return true;
    return false;
}

int reply_tops_check(const struct reply_tops *tops, size_t i, struct fail *fail)
{
    if (tops->count != tops->wanted)
        return fail_set(fail, -EPROTO, "the engine told %u of the %u likeliest tokens in place %zu", tops->count,
                        tops->wanted, i);
    for (uint32_t k = 1; k < tops->count; k++) {
        if (tops->logprobs[k] > tops->logprobs[k - 1])
            return fail_set(fail, -EPROTO, "the engine told token %u before %u in place %zu, which is likelier",
                            tops->ids[k - 1], tops->ids[k], i);
        if (is_told_before(tops, k))
            return fail_set(fail, -EPROTO, "the engine told token %u twice among the likeliest in place %zu",
                            tops->ids[k], i);
    }
    return 0;
}

int reply_room(struct generation *ret, struct fail *fail)
{
    ret->logprobs = calloc(ret->sampled.count, sizeof(*ret->logprobs));
    return ret->logprobs ? 0 : fail_memory(fail);
}

static const struct {
    const char *reason, *finish;
    int error;
    const char *words;
} finishes[] = {
    {"stop", "stop", 0, ""},
    {"length", "length", 0, ""},
    {"abort", "", -EAGAIN, "the engine aborted the call"},
    {"error", "", -EIO, "the engine failed in the middle of the call"},
};

int reply_finish(const struct json_doc *doc, const struct json_doc_node *reason, struct generation *ret,
                 struct fail *fail)
{
    for (size_t i = 0; i < sizeof(finishes) / sizeof(*finishes); i++)
        if (json_doc_is(doc, reason, finishes[i].reason)) {
            snprintf(ret->finish, sizeof(ret->finish), "%s", finishes[i].finish);
            return finishes[i].error < 0 ? fail_set(fail, finishes[i].error, "%s", finishes[i].words) : 0;
        }
    return fail_set(fail, -EPROTO, "the engine stopped for another reason than an end of turn or the limit");
}

int reply_prompt(const struct json_doc_node *count, size_t prompt_count, struct generation *ret, struct fail *fail)
{
    ret->prompt_tokens = (uint32_t)prompt_count;
    if (!count || (json_doc_id(count, &ret->prompt_tokens) && ret->prompt_tokens == prompt_count))
        return 0;
    return fail_set(fail, -EPROTO, "the engine read a prompt of %u tokens where %zu were sent", ret->prompt_tokens,
                    prompt_count);
}

int reply_text(const struct json_doc *doc, const struct json_doc_node *text, struct generation *ret, struct fail *fail)
{
    AUTO_BUFFER said = {0}, repaired = {0};
    if (!json_doc_string(doc, text, &said))
        return said.failed ? fail_memory(fail) : fail_set(fail, -EPROTO, "the engine's answer has no text");
    utf8_append_repaired(&repaired, buffer_peek(&said));
    ret->text = buffer_take_str(&repaired);
    return ret->text ? 0 : fail_memory(fail);
}

/* ---- text and ids ------------------------------------------------------------------------ */

static const struct slice replacement = {(const uint8_t *)"\xef\xbf\xbd", 3};

static bool skip_one(struct slice *text, struct slice what)
{
    if (text->len < what.len || memcmp(text->data, what.data, what.len) != 0)
        return false;
    *text = slice_of(text->data + what.len, text->len - what.len);
    return true;
}

static bool skip_replacements(struct slice *text)
{
    bool any = false;
    while (skip_one(text, replacement))
        any = true;
    return any;
}

static void skip_blanks(struct slice *text, enum reply_blanks blanks)
{
    while (blanks == BLANKS_IGNORED && skip_one(text, slice_from_str(" ")))
        ;
}

/* Bytes that both begin with and that nothing else is to be said about. */
static size_t common_bytes(struct slice a, struct slice b, enum reply_blanks blanks)
{
    size_t len = 0, most = a.len < b.len ? a.len : b.len;
    while (len < most && a.data[len] == b.data[len] && a.data[len] != replacement.data[0] &&
           (a.data[len] != ' ' || blanks == BLANKS_COUNT))
        len++;
    return len;
}

bool reply_says(struct slice text, struct slice ids_say, enum reply_blanks blanks)
{
    for (;;) {
        size_t same = common_bytes(text, ids_say, blanks);
        text = slice_of(text.data + same, text.len - same);
        ids_say = slice_of(ids_say.data + same, ids_say.len - same);
        skip_blanks(&text, blanks);
        skip_blanks(&ids_say, blanks);
        const bool here = skip_replacements(&text), there = skip_replacements(&ids_say);
        if (text.len == 0 || ids_say.len == 0)
            return text.len == ids_say.len;
        if (here != there)
            return false;
        if (here)
            continue;
        if (*text.data != *ids_say.data)
            return false;
        text = slice_of(text.data + 1, text.len - 1); /* another character that begins with 0xef */
        ids_say = slice_of(ids_say.data + 1, ids_say.len - 1);
    }
}

int reply_other_text(struct fail *fail) { return fail_set(fail, -EPROTO, "the answer's text is not what its ids say"); }

/* ---- versions ---------------------------------------------------------------------------- */

static void add_version(struct slice version, struct generation *ret)
{
    size_t len = strlen(ret->version);
    if (version.len == 0 || slice_is(version, "default"))
        return;
    if (len + 1 + version.len >= sizeof(ret->version) || !utf8_is_valid(version) ||
        memchr(version.data, 0, version.len))
        snprintf(ret->version, sizeof(ret->version), "unspeakable");
    else
        snprintf(ret->version + len, sizeof(ret->version) - len, "%s%.*s", len ? "+" : "", SLICE_ARG(version));
}

/* One that continues the one before; false: it does not, or its version is none that can be told. */
static bool take_span(const struct json_doc *doc, const struct json_doc_node *node, uint32_t from,
                      struct record_span *ret)
{
    AUTO_BUFFER version = {0};
    uint32_t start, end;
    if (!json_doc_id(json_doc_get(doc, node, "start"), &start) || !json_doc_id(json_doc_get(doc, node, "end"), &end) ||
        !json_doc_string(doc, json_doc_get(doc, node, "version"), &version))
        return false;
    const struct slice text = buffer_peek(&version);
    if (start != from || end <= start || text.len == 0 || text.len >= sizeof(ret->version) || !utf8_is_valid(text))
        return false;
    *ret = (struct record_span){.offset = start, .length = end - start};
    memcpy(ret->version, text.data, text.len);
    return true;
}

/* Several spans that cover all that was sampled, or none. */
static void take_spans(const struct json_doc *doc, const struct json_doc_node *list, struct generation *ret)
{
    const uint32_t count = json_doc_count(list);
    const struct json_doc_node *node = json_doc_first(list);
    if (count < 2 || count > RECORD_SPANS_MAX || !(ret->spans = calloc(count, sizeof(*ret->spans))))
        return;
    uint32_t covered = 0, i = 0;
    for (; i < count && take_span(doc, node, covered, &ret->spans[i]); node = json_doc_behind(doc, node))
        covered += ret->spans[i++].length;
    ret->span_count = i == count && covered == ret->sampled.count ? count : 0;
}

void reply_versions(const struct json_doc *doc, const struct json_doc_node *versions, struct generation *ret)
{
    AUTO_BUFFER one = {0};
    if (json_doc_string(doc, versions, &one))
        add_version(buffer_peek(&one), ret);
    const struct json_doc_node *span = json_doc_first(versions);
    for (uint32_t i = 0; i < json_doc_count(versions); i++, span = json_doc_behind(doc, span)) {
        buffer_clear(&one);
        if (json_doc_string(doc, json_doc_get(doc, span, "version"), &one))
            add_version(buffer_peek(&one), ret);
    }
    take_spans(doc, versions, ret);
}

const char *logprobs_mode_of(double at_1, double at_2)
{
    if (fabs(at_1 - at_2) > 1e-3)
        return "processed";
    return at_1 < -1e-2 ? "raw" : "unknown";
}
