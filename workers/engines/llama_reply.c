#include "workers/engines/llama_reply.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/utf8.h"

enum { TAIL = 4 }; /* bytes that decide whether a text ends in a whole character */

static const double LOGPROB_EPSILON = 1e-4; /* above 0: rounding of the server's softmax */

/* ---- single values ----------------------------------------------------------------------- */

static bool read_id(const json_t *json, uint32_t *ret)
{
    json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || value > INT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

static bool read_count(const json_t *json, uint32_t *ret)
{
    return read_id(json, ret);
}

static bool read_bytes(const json_t *json, struct llama_score *ret)
{
    ret->byte_count = json_array_size(json);
    if (!json_is_array(json) || ret->byte_count > TOKEN_BYTES_MAX)
        return false;
    for (size_t i = 0; i < ret->byte_count; i++) {
        const json_t *byte = json_array_get(json, i);
        if (!json_is_integer(byte) || json_integer_value(byte) < 0 ||
            json_integer_value(byte) > 255)
            return false;
        ret->bytes[i] = (uint8_t)json_integer_value(byte);
    }
    return true;
}

/* One entry: {"id", "logprob", "bytes", ...}. */
static bool read_entry(const json_t *entry, uint32_t *id, struct llama_score *ret)
{
    const json_t *logprob = json_object_get(entry, "logprob");
    double value = json_number_value(logprob);
    if (!read_id(json_object_get(entry, "id"), id) || !json_is_number(logprob) ||
        !isfinite((float)value) || value > LOGPROB_EPSILON ||
        !read_bytes(json_object_get(entry, "bytes"), ret))
        return false;
    ret->logprob = value > 0 ? 0 : (float)value;
    return true;
}

static const json_t *entries_of(const json_t *reply)
{
    const json_t *entries = json_object_get(reply, "completion_probabilities");
    return entries ? entries : json_object_get(reply, "probs"); /* its name in older servers */
}

int llama_reply_find(const json_t *reply, uint32_t id, struct llama_score *ret)
{
    const json_t *entry = json_array_get(entries_of(reply), 0), *top;
    uint32_t found;
    if (read_entry(entry, &found, ret) && found == id)
        return 0;
    size_t i;
    json_array_foreach(json_object_get(entry, "top_logprobs"), i,
                       top) if (read_entry(top, &found, ret) && found == id) return 0;
    return -ENOENT;
}

/* ---- ids and their log-probabilities ----------------------------------------------------- */

static int read_ids(const json_t *reply, uint64_t max_tokens, struct tokens *ret, struct fail *fail)
{
    const json_t *ids = json_object_get(reply, "tokens");
    size_t count = json_array_size(ids);
    if (count == 0)
        return fail_set(fail, -EPROTO, "the engine's answer has no tokens");
    if (count > max_tokens)
        return fail_set(fail, -EPROTO,
                        "the engine sampled %zu tokens where at most %llu were asked for", count,
                        (unsigned long long)max_tokens);
    for (size_t i = 0; i < count; i++) {
        uint32_t id;
        if (!read_id(json_array_get(ids, i), &id))
            return fail_set(fail, -EPROTO, "token %zu of the engine's answer is no id", i);
        if (!tokens_append(ret, &id, 1))
            return fail_set(fail, -ENOMEM, "out of memory");
    }
    return 0;
}

/* The way through an answer's tokens, entry by entry. */
struct walk {
    const json_t *entries;
    size_t next;        /* entry */
    uint8_t tail[TAIL]; /* of the text so far */
    size_t tail_len;
};

static void walk_say(struct walk *walk, const struct llama_score *token)
{
    uint8_t joined[TAIL + TOKEN_BYTES_MAX];
    memcpy(joined, walk->tail, walk->tail_len);
    memcpy(joined + walk->tail_len, token->bytes, token->byte_count);
    size_t len = walk->tail_len + token->byte_count;
    walk->tail_len = len < TAIL ? len : TAIL;
    memcpy(walk->tail, joined + len - walk->tail_len, walk->tail_len);
}

/* Whether the last character lacks bytes, by the server's own rule (its validate_utf8). */
static bool walk_is_cut(const struct walk *walk)
{
    for (size_t back = 1; back <= walk->tail_len; back++) {
        uint8_t byte = walk->tail[walk->tail_len - back];
        size_t needed = (byte & 0xe0) == 0xc0   ? 2
                        : (byte & 0xf0) == 0xe0 ? 3
                        : (byte & 0xf8) == 0xf0 ? 4
                                                : 0;
        if (needed > back)
            return true;
    }
    return false;
}

/* An entry from here on that tells what `id` says; NULL: none, so this occurrence has none. */
static const json_t *walk_find(const struct walk *walk, uint32_t id)
{
    for (size_t i = walk->next; i < json_array_size(walk->entries); i++) {
        const json_t *entry = json_array_get(walk->entries, i);
        uint32_t found;
        if (read_id(json_object_get(entry, "id"), &found) && found == id)
            return entry;
    }
    return NULL;
}

/* Sets *ret when the next entry is this token's; else leaves ret->logprob NaN. */
static int walk_step(struct walk *walk, uint32_t id, struct llama_score *ret, struct fail *fail)
{
    uint32_t found = 0;
    const json_t *known = walk_find(walk, id);
    ret->logprob = NAN;
    if (!known)
        return 0;
    if (!read_entry(known, &found, ret))
        return fail_set(fail, -EPROTO, "an entry for token %u is not a log-probability", id);
    struct walk after = *walk;
    walk_say(&after, ret);
    ret->logprob = NAN;
    if (walk_is_cut(&after))
        return 0;
    const json_t *entry = json_array_get(walk->entries, walk->next);
    if (!read_entry(entry, &found, ret) || found != id)
        return fail_set(fail, -EPROTO,
                        "the engine's log-probabilities are of other tokens: %u, not %u", found,
                        id);
    walk->next++;
    return 0;
}

static int read_logprobs(const json_t *reply, const struct tokens *ids,
                         const struct llama_scorer *scorer, float *ret, struct fail *fail)
{
    struct walk walk = {.entries = entries_of(reply)};
    if (!json_is_array(walk.entries) && walk.entries)
        return fail_set(fail, -EPROTO, "the engine's log-probabilities are no list");
    for (size_t i = 0; i < ids->count; i++) {
        struct llama_score token = {0};
        int error = walk_step(&walk, ids->ids[i], &token, fail);
        float reported = token.logprob;
        if (error == 0 && isnan(reported))
            error = scorer->score(scorer->arg, ids, i, &token, fail);
        if (error < 0)
            return error;
        bool scored = isnan(reported);
        walk_say(&walk, &token);
        if (scored && !walk_is_cut(&walk))
            return fail_set(fail, -EPROTO, "the engine gave no log-probability for token %u at %zu",
                            ids->ids[i], i);
        ret[i] = token.logprob;
    }
    if (walk.next != json_array_size(walk.entries))
        return fail_set(fail, -EPROTO,
                        "the engine gave %zu log-probabilities, of which %zu fit its %zu tokens",
                        json_array_size(walk.entries), walk.next, ids->count);
    return 0;
}

/* ---- the rest of the answer -------------------------------------------------------------- */

static const struct {
    const char *stop_type, *finish;
} finishes[] = {{"eos", "stop"}, {"limit", "length"}};

static int read_finish(const json_t *reply, struct generation *ret, struct fail *fail)
{
    const char *stop_type = json_string_value(json_object_get(reply, "stop_type"));
    for (size_t i = 0; i < sizeof(finishes) / sizeof(*finishes); i++)
        if (stop_type && strcmp(stop_type, finishes[i].stop_type) == 0) {
            snprintf(ret->finish, sizeof(ret->finish), "%s", finishes[i].finish);
            return 0;
        }
    return fail_set(fail, -EPROTO,
                    "the engine stopped for another reason than an end of turn or the limit: %.40s",
                    stop_type ? stop_type : "none given");
}

/* A member of `timings`, flat where response_fields asked for it. */
static const json_t *timing_of(const json_t *reply, const char *name)
{
    char flat[32];
    snprintf(flat, sizeof(flat), "timings/%s", name);
    const json_t *found = json_object_get(reply, flat);
    return found ? found : json_object_get(json_object_get(reply, "timings"), name);
}

static int read_counts(const json_t *reply, size_t prompt_count, struct generation *ret,
                       struct fail *fail)
{
    if (!read_count(json_object_get(reply, "tokens_evaluated"), &ret->prompt_tokens) ||
        ret->prompt_tokens != prompt_count)
        return fail_set(fail, -EPROTO, "the engine read a prompt of %u tokens where %zu were sent",
                        ret->prompt_tokens, prompt_count);
    if (!read_count(timing_of(reply, "cache_n"), &ret->cached_tokens))
        ret->cached_tokens = 0;
    return 0;
}

/* Milliseconds; what is no time is not known. It does not tell how long the request was queued. */
static struct record_seconds read_time(const json_t *reply, const char *name)
{
    const json_t *time = timing_of(reply, name);
    double ms = json_number_value(time);
    if (!json_is_number(time) || !isfinite(ms) || ms < 0)
        return (struct record_seconds){0};
    return (struct record_seconds){true, ms / 1000};
}

static int read_text(const json_t *reply, struct generation *ret, struct fail *fail)
{
    const json_t *content = json_object_get(reply, "content");
    if (!json_is_string(content))
        return fail_set(fail, -EPROTO, "the engine's answer has no text");
    AUTO_BUFFER text = {0};
    utf8_append_repaired(&text, slice_of(json_string_value(content), json_string_length(content)));
    ret->text = buffer_take_str(&text);
    return ret->text ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

int llama_reply_read(const json_t *reply, size_t prompt_count, uint64_t max_tokens,
                     const struct llama_scorer *scorer, struct generation *ret, struct fail *fail)
{
    int error = read_ids(reply, max_tokens, &ret->sampled, fail);
    if (error == 0)
        error = read_finish(reply, ret, fail);
    if (error == 0)
        error = read_counts(reply, prompt_count, ret, fail);
    if (error == 0)
        error = read_text(reply, ret, fail);
    if (error < 0)
        return error;
    ret->prefill_seconds = read_time(reply, "prompt_ms");
    ret->decode_seconds = read_time(reply, "predicted_ms");
    ret->logprobs = calloc(ret->sampled.count, sizeof(*ret->logprobs));
    if (!ret->logprobs)
        return fail_set(fail, -ENOMEM, "out of memory");
    return read_logprobs(reply, &ret->sampled, scorer, ret->logprobs, fail);
}
