#include "workers/engines/dialects/llama/llama_reply.h"

#include <errno.h>
#include <math.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "common/base/utf8.h"

enum { TAIL = 4 }; /* bytes that decide whether a text ends in a whole character */

static const double LOGPROB_EPSILON = 1e-4; /* above 0: rounding of the server's softmax */

/* ---- single values ----------------------------------------------------------------------- */

static bool read_bytes(const struct json_doc *doc, const struct json_doc_node *bytes, struct llama_score *ret)
{
    ret->byte_count = json_doc_count(bytes);
    if (!bytes || bytes->kind != JSON_DOC_ARRAY || ret->byte_count > TOKEN_BYTES_MAX)
        return false;
    const struct json_doc_node *byte = json_doc_first(bytes);
    for (size_t i = 0; i < ret->byte_count; i++, byte = json_doc_behind(doc, byte)) {
        uint32_t value;
        if (!json_doc_id(byte, &value) || value > 255)
            return false;
        ret->bytes[i] = (uint8_t)value;
    }
    return true;
}

/* One entry: {"id", "logprob", "bytes", ...}. */
static bool read_entry(const struct json_doc *doc, const struct json_doc_node *entry, uint32_t *id,
                       struct llama_score *ret)
{
    double value = 0;
    if (!json_doc_id(json_doc_get(doc, entry, "id"), id) ||
        !json_doc_number(json_doc_get(doc, entry, "logprob"), &value) || !isfinite((float)value) ||
        value > LOGPROB_EPSILON || !read_bytes(doc, json_doc_get(doc, entry, "bytes"), ret))
        return false;
    ret->logprob = value > 0 ? 0 : (float)value;
    return true;
}

static const struct json_doc_node *entries_of(const struct json_doc *reply)
{
    const struct json_doc_node *entries = json_doc_get(reply, json_doc_root(reply), "completion_probabilities");
    /* its name in older servers */
    return entries ? entries : json_doc_get(reply, json_doc_root(reply), "probs");
}

int llama_reply_find(const struct json_doc *reply, uint32_t id, struct llama_score *ret)
{
    const struct json_doc_node *entry = json_doc_first(entries_of(reply));
    const struct json_doc_node *tops = json_doc_get(reply, entry, "top_logprobs");
    uint32_t found;
    if (read_entry(reply, entry, &found, ret) && found == id)
        return 0;
    const struct json_doc_node *top = json_doc_first(tops);
    for (uint32_t i = 0; i < json_doc_count(tops); i++, top = json_doc_behind(reply, top))
        if (read_entry(reply, top, &found, ret) && found == id)
            return 0;
    return -ENOENT;
}

int llama_reply_tops(const struct json_doc *reply, size_t i, struct reply_tops *tops, struct fail *fail)
{
    const struct json_doc_node *told = json_doc_get(reply, json_doc_first(entries_of(reply)), "top_logprobs");
    const struct json_doc_node *top = json_doc_first(told);
    int error = 0;
    tops->count = 0;
    for (uint32_t k = 0; error == 0 && tops->count < tops->wanted && k < json_doc_count(told); k++) {
        uint32_t id = 0;
        if (!json_doc_id(json_doc_get(reply, top, "id"), &id))
            return fail_set(fail, -EPROTO, "a likeliest token in place %zu has no id", i);
        error = reply_tops_add(tops, json_doc_get(reply, top, "logprob"), id, i, fail);
        top = json_doc_behind(reply, top);
    }
    return error < 0 ? error : reply_tops_check(tops, i, fail);
}

/* ---- ids and their log-probabilities ----------------------------------------------------- */

/* The way through an answer's tokens, entry by entry. */
struct walk {
    const struct json_doc *doc;
    const struct json_doc_node *next; /* entry, while any is left */
    uint32_t left;
    struct buffer said; /* by the tokens so far */
    size_t open_bytes;  /* of it, by the tokens since the last entry */
};

static int walk_say(struct walk *walk, const struct llama_score *token, struct fail *fail)
{
    walk->open_bytes += token->byte_count;
    return buffer_append(&walk->said, token->bytes, token->byte_count) ? 0 : fail_memory(fail);
}

/* An entry says what was said since the one before, which is known of all tokens but its own. */
static int walk_say_entry(struct walk *walk, const struct llama_score *entry, struct fail *fail)
{
    const size_t open = walk->open_bytes;
    const struct slice said = buffer_peek(&walk->said);
    if (entry->byte_count < open || (open > 0 && memcmp(said.data + said.len - open, entry->bytes, open) != 0))
        return reply_other_text(fail);
    walk->open_bytes = 0;
    return buffer_append(&walk->said, entry->bytes + open, entry->byte_count - open) ? 0 : fail_memory(fail);
}

/* Whether the last character lacks bytes, by the server's own rule (its validate_utf8). */
static bool walk_is_cut(const struct walk *walk)
{
    for (size_t back = 1; back <= TAIL && back <= walk->said.len; back++) {
        uint8_t byte = walk->said.data[walk->said.len - back];
        size_t needed = (byte & 0xe0) == 0xc0 ? 2 : (byte & 0xf0) == 0xe0 ? 3 : (byte & 0xf8) == 0xf0 ? 4 : 0;
        if (needed > back)
            return true;
    }
    return false;
}

/*
 * Whether the next entry, which is of a token like this, may be of a later one, whose character this
 * one is only a part of. Its bytes are all since the last entry, so they say how many may follow.
 */
static bool walk_is_unsure(const struct walk *walk, const struct tokens *ids, size_t at,
                           const struct llama_score *entry)
{
    size_t left = entry->byte_count > walk->open_bytes ? entry->byte_count - walk->open_bytes : 0;
    if (walk->left == ids->count - at || left < 2 || entry->bytes[entry->byte_count - 1] < 0x80)
        return false;
    for (size_t i = at + 1; i < ids->count && i < at + (left < TAIL ? left : TAIL); i++)
        if (ids->ids[i] == ids->ids[at])
            return true;
    return false;
}

/* As `score`, which is of a token inside a character if no entry is of it. */
static int walk_ask(struct walk *walk, const struct tokens *ids, size_t at, const struct llama_scorer *scorer,
                    struct llama_score *ret, struct fail *fail)
{
    int error = scorer->score(scorer->arg, ids, at, ret, fail);
    return error < 0 ? error : walk_say(walk, ret, fail);
}

/* The log-probability of ids[at], by its entry or, if it has none, by asking. */
static int walk_step(struct walk *walk, const struct tokens *ids, size_t at, const struct llama_scorer *scorer,
                     struct llama_score *ret, struct fail *fail)
{
    const uint32_t id = ids->ids[at];
    uint32_t found = 0;
    const size_t said = walk->said.len, open = walk->open_bytes;
    if (walk->left && !read_entry(walk->doc, walk->next, &found, ret))
        return fail_set(fail, -EPROTO, "an entry for token %u is not a log-probability", id);
    bool has_entry = walk->left && found == id;
    if (!has_entry && walk->left >= ids->count - at)
        return fail_set(fail, -EPROTO, "the engine's log-probabilities are of other tokens: %u, not %u", found, id);
    if (!has_entry || walk_is_unsure(walk, ids, at, ret)) {
        int error = walk_ask(walk, ids, at, scorer, ret, fail);
        if (error < 0 || walk_is_cut(walk))
            return error;
        if (!has_entry)
            return fail_set(fail, -EPROTO, "the engine gave no log-probability for token %u at %zu", id, at);
        walk->said.len = said;
        walk->open_bytes = open;
        (void)read_entry(walk->doc, walk->next, &found, ret);
    }
    walk->next = json_doc_behind(walk->doc, walk->next);
    walk->left--;
    return walk_say_entry(walk, ret, fail);
}

/* The text is the tokens' own bytes, without those of the token that ended the turn. */
static int take_text(const struct json_doc *reply, const struct walk *walk, size_t end_bytes, struct generation *ret,
                     struct fail *fail)
{
    AUTO_BUFFER content = {0}, whole = {0}, said = {0};
    if (!json_doc_string(reply, json_doc_get(reply, json_doc_root(reply), "content"), &content))
        return content.failed ? fail_memory(fail) : fail_set(fail, -EPROTO, "the engine's answer has no text");
    struct slice bytes = buffer_peek(&walk->said);
    utf8_append_repaired(&whole, bytes);
    bytes.len -= end_bytes;
    utf8_append_repaired(&said, bytes);
    AUTO_BUFFER shown = {0};
    utf8_append_repaired(&shown, buffer_peek(&content));
    if (whole.failed || shown.failed || !(ret->text = buffer_take_str(&said)))
        return fail_memory(fail);
    return reply_says(buffer_peek(&shown), slice_from_str(ret->text), BLANKS_COUNT) ||
                   reply_says(buffer_peek(&shown), buffer_peek(&whole), BLANKS_COUNT)
               ? 0
               : reply_other_text(fail);
}

static int walk_all(struct walk *walk, const struct json_doc *reply, const struct llama_scorer *scorer,
                    struct generation *ret, struct fail *fail)
{
    const struct tokens *ids = &ret->sampled;
    const uint32_t count = walk->left;
    size_t end_bytes = 0;
    for (size_t i = 0; i < ids->count; i++) {
        struct llama_score token = {.byte_count = 0};
        const size_t before = walk->said.len;
        int error = walk_step(walk, ids, i, scorer, &token, fail);
        if (error < 0)
            return error;
        ret->logprobs[i] = token.logprob;
        end_bytes = walk->said.len - before;
    }
    if (walk->left > 0)
        return fail_set(fail, -EPROTO, "the engine gave %u log-probabilities, of which %u fit its %zu tokens", count,
                        count - walk->left, ids->count);
    const bool ended = strcmp(ret->finish, "stop") == 0;
    return take_text(reply, walk, ended ? end_bytes : 0, ret, fail);
}

/* Log-probabilities, and the text. */
static int read_entries(const struct json_doc *reply, const struct llama_scorer *scorer, struct generation *ret,
                        struct fail *fail)
{
    const struct json_doc_node *entries = entries_of(reply);
    if (entries && entries->kind != JSON_DOC_ARRAY)
        return fail_set(fail, -EPROTO, "the engine's log-probabilities are not a list");
    struct walk walk = {.doc = reply, .next = json_doc_first(entries), .left = json_doc_count(entries)};
    int error = walk_all(&walk, reply, scorer, ret, fail);
    buffer_finish(&walk.said);
    return error;
}

/* ---- the rest of the answer -------------------------------------------------------------- */

static const struct {
    const char *stop_type, *finish;
} finishes[] = {{"eos", "stop"}, {"limit", "length"}};

static int read_finish(const struct json_doc *reply, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *stop_type = json_doc_get(reply, json_doc_root(reply), "stop_type");
    for (size_t i = 0; i < sizeof(finishes) / sizeof(*finishes); i++)
        if (json_doc_is(reply, stop_type, finishes[i].stop_type)) {
            snprintf(ret->finish, sizeof(ret->finish), "%s", finishes[i].finish);
            return 0;
        }
    AUTO_BUFFER said = {0};
    const bool is_said = json_doc_string(reply, stop_type, &said);
    return fail_set(fail, -EPROTO, "the engine stopped for another reason than an end of turn or the limit: %.*s",
                    is_said ? (int)(said.len < 40 ? said.len : 40) : 10,
                    is_said ? (const char *)said.data : "none given");
}

/* A member of `timings`, flat where response_fields asked for it. */
static const struct json_doc_node *timing_of(const struct json_doc *reply, const char *name)
{
    char flat[32];
    snprintf(flat, sizeof(flat), "timings/%s", name);
    const struct json_doc_node *root = json_doc_root(reply), *found = json_doc_get(reply, root, flat);
    return found ? found : json_doc_get(reply, json_doc_get(reply, root, "timings"), name);
}

static int read_counts(const struct json_doc *reply, size_t prompt_count, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *said = json_doc_get(reply, json_doc_root(reply), "tokens_evaluated");
    if (!json_doc_id(said, &ret->prompt_tokens) || ret->prompt_tokens != prompt_count)
        return fail_set(fail, -EPROTO, "the engine read a prompt of %u tokens where %zu were sent", ret->prompt_tokens,
                        prompt_count);
    (void)json_doc_id(timing_of(reply, "cache_n"), &ret->cached_tokens);
    return 0;
}

/* Milliseconds; what is no time is not known. It does not tell how long the request was queued. */
static struct record_seconds read_time(const struct json_doc *reply, const char *name)
{
    double ms = 0;
    if (!json_doc_number(timing_of(reply, name), &ms) || !isfinite(ms) || ms < 0)
        return (struct record_seconds){0};
    return (struct record_seconds){true, ms / 1000};
}

int llama_reply_read(const struct json_doc *reply, size_t prompt_count, uint64_t max_tokens,
                     const struct llama_scorer *scorer, struct generation *ret, struct fail *fail)
{
    const struct json_doc_node *root = json_doc_root(reply);
    int error = reply_ids(reply, json_doc_get(reply, root, "tokens"), max_tokens, &ret->sampled, fail);
    if (error == 0)
        error = read_finish(reply, ret, fail);
    if (error == 0)
        error = read_counts(reply, prompt_count, ret, fail);
    if (error == 0)
        error = reply_room(ret, fail);
    ret->prefill_seconds = read_time(reply, "prompt_ms");
    ret->decode_seconds = read_time(reply, "predicted_ms");
    return error == 0 ? read_entries(reply, scorer, ret, fail) : error;
}
