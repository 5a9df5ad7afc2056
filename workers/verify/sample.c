/* sample.c - trajectories as `sluice` writes them: a JSON object a line. */
#include "workers/verify/sample.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/call.h"
#include "common/base/text.h"

enum { LINE_BYTES_MAX = 256 << 20 };

/* ---- values --------------------------------------------------------------------------------- */

static bool read_u32(const json_t *json, uint32_t *ret)
{
    json_int_t value = json_integer_value(json);
    *ret = (uint32_t)value;
    return json_is_integer(json) && value >= 0 && value <= UINT32_MAX;
}

/* Absent is empty: older files have no digests. False when it is too long or no text. */
static bool read_text(const json_t *object, const char *key, size_t room, char *ret)
{
    const json_t *text = json_object_get(object, key);
    size_t len = json_string_length(text);
    if (text && (!json_is_string(text) || len >= room))
        return false;
    memcpy(ret, text ? json_string_value(text) : "", len);
    ret[len] = '\0';
    return true;
}

static int refuse_line(struct fail *fail, const char *what) { return fail_set(fail, -EINVAL, "%s", what); }

/* ---- a trace ---------------------------------------------------------------------------------- */

static bool read_ids(const json_t *list, uint32_t *ret)
{
    size_t i;
    const json_t *value;
    json_array_foreach(list, i, value) if (!read_u32(value, &ret[i])) return false;
    return true;
}

static bool read_mask(const json_t *list, uint8_t *ret)
{
    size_t i;
    const json_t *value;
    json_array_foreach(list, i, value)
    {
        uint32_t bit;
        if (!read_u32(value, &bit) || bit > 1)
            return false;
        ret[i] = (uint8_t)bit;
    }
    return true;
}

static bool read_logprobs(const json_t *list, float *ret)
{
    size_t i;
    const json_t *value;
    json_array_foreach(list, i, value)
    {
        ret[i] = (float)json_number_value(value);
        if (!json_is_number(value) || !isfinite(ret[i]))
            return false;
    }
    return true;
}

static int read_arrays(const json_t *json, struct record_trace *ret, struct fail *fail)
{
    const json_t *ids = json_object_get(json, "token_ids"), *mask = json_object_get(json, "mask"),
                 *logprobs = json_object_get(json, "logprobs");
    size_t count = json_array_size(ids);
    if (!json_is_array(ids) || json_array_size(mask) != count || json_array_size(logprobs) != count)
        return refuse_line(fail, "token_ids, mask and logprobs are not arrays of one length");
    if (count > RECORD_TOKENS_MAX)
        return refuse_line(fail, "a trace holds more tokens than a record may");
    ret->token_ids = calloc(count + 1, sizeof(*ret->token_ids));
    ret->mask = calloc(count + 1, sizeof(*ret->mask));
    ret->logprobs = calloc(count + 1, sizeof(*ret->logprobs));
    if (!ret->token_ids || !ret->mask || !ret->logprobs)
        return refuse_line(fail, "out of memory");
    ret->token_count = ret->token_capacity = count;
    if (!read_ids(ids, ret->token_ids) || !read_mask(mask, ret->mask) || !read_logprobs(logprobs, ret->logprobs))
        return refuse_line(fail, "token_ids, mask or logprobs hold something other than ids, bits and numbers");
    return 0;
}

static bool read_turn(const json_t *json, struct record_turn *ret)
{
    return read_u32(json_object_get(json, "offset"), &ret->offset) &&
           read_u32(json_object_get(json, "length"), &ret->length) &&
           read_u32(json_object_get(json, "prompt_tokens"), &ret->prompt_tokens) &&
           read_u32(json_object_get(json, "cached_tokens"), &ret->cached_tokens) &&
           read_text(json, "role", sizeof(ret->role), ret->role) &&
           read_text(json, "masked", sizeof(ret->masked), ret->masked) &&
           read_text(json, "finish", sizeof(ret->finish), ret->finish);
}

static int read_turns(const json_t *list, struct record_trace *ret, struct fail *fail)
{
    size_t count = json_array_size(list);
    if (!json_is_array(list) || count > RECORD_TURNS_MAX)
        return refuse_line(fail, "turns is not a list, or is longer than a record's");
    ret->turns = calloc(count + 1, sizeof(*ret->turns));
    if (!ret->turns)
        return refuse_line(fail, "out of memory");
    ret->turn_count = ret->turn_capacity = count;
    for (size_t i = 0; i < count; i++)
        if (!read_turn(json_array_get(list, i), &ret->turns[i]))
            return refuse_line(fail, "a turn lacks a member, or has one that is not what it should be");
    return 0;
}

/* Runs of the messages that were read, each behind the one before; absent where the file does not say. */
static int read_stretches(const json_t *list, size_t message_count, struct record_stretches *ret, struct fail *fail)
{
    size_t i, end = 0;
    const json_t *run;
    if (list && !json_is_array(list))
        return refuse_line(fail, "a trace's messages is not a list");
    json_array_foreach(list, i, run)
    {
        uint32_t offset, length;
        if (!read_u32(json_object_get(run, "offset"), &offset) || !read_u32(json_object_get(run, "length"), &length) ||
            offset < end || offset > message_count || length > message_count - offset ||
            !record_stretches_add(ret, offset, length))
            return refuse_line(fail, "a trace's messages are not runs of the trajectory's, one behind the other");
        end = (size_t)offset + length;
    }
    return 0;
}

static int read_trace(const json_t *json, struct record *record, struct fail *fail)
{
    if (!record_start_trace(record, ""))
        return refuse_line(fail, "more traces than a record may have");
    struct record_trace *trace = &record->traces[record->trace_count - 1];
    if (!read_text(json, "reason", sizeof(trace->reason), trace->reason) ||
        !read_text(json, "label", sizeof(trace->label), trace->label) ||
        !read_text(json, "template_digest", sizeof(trace->template_digest), trace->template_digest) ||
        !read_text(json, "tokenizer_digest", sizeof(trace->tokenizer_digest), trace->tokenizer_digest))
        return refuse_line(fail, "a trace's reason, label or digest is not a text, or is too long");
    int error = read_stretches(json_object_get(json, "messages"), record->message_count, &trace->messages, fail);
    if (error == 0)
        error = read_arrays(json, trace, fail);
    return error < 0 ? error : read_turns(json_object_get(json, "turns"), trace, fail);
}

/* Absent in files that hold only ids. */
static int read_messages(const json_t *list, struct record *record, struct fail *fail)
{
    size_t i;
    const json_t *message;
    if (list && !json_is_array(list))
        return refuse_line(fail, "messages is not a list");
    json_array_foreach(list, i, message)
    {
        const json_t *role = json_object_get(message, "role"), *content = json_object_get(message, "content");
        const char *tool = json_string_value(json_object_get(message, "tool"));
        if (!json_is_string(role) || !json_is_string(content) ||
            !record_say(record, json_string_value(role),
                        slice_of(json_string_value(content), json_string_length(content)), tool, 0))
            return refuse_line(fail, "a message lacks its role or content, or there are too many");
    }
    return 0;
}

/* ---- a line ------------------------------------------------------------------------------------- */

static int read_trajectory(const json_t *json, struct sample *ret, struct fail *fail)
{
    struct record *record = &ret->record;
    const json_t *traces = json_object_get(json, "traces"), *trace;
    if (!json_is_array(traces) || !json_object_get(json, "rollout") ||
        !read_text(json, "rollout", sizeof(ret->rollout), ret->rollout) ||
        !read_text(json, "logprobs_mode", sizeof(record->logprobs_mode), record->logprobs_mode))
        return refuse_line(fail, "it is not as `sluice watch --json` writes it");
    size_t i;
    int error = read_messages(json_object_get(json, "messages"), record, fail);
    json_array_foreach(traces, i, trace)
    {
        if (error == 0)
            error = read_trace(trace, record, fail);
    }
    return error;
}

/* False at the file's end. One that is too long is read to its end, but not kept. */
static bool read_line(FILE *file, struct buffer *ret)
{
    int c;
    size_t len = 0;
    while ((c = getc(file)) != EOF && c != '\n')
        if (len++ < LINE_BYTES_MAX)
            buffer_append(ret, &(char){(char)c}, 1);
    if (len > LINE_BYTES_MAX)
        ret->failed = true;
    return c != EOF || len > 0;
}

int sample_next(FILE *file, uint64_t *line, struct sample *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    *ret = (struct sample){0};
    record_init(&ret->record);
    if (!read_line(file, &text))
        return ferror(file) ? fail_set(fail, -EIO, "the file cannot be read to its end") : 0;
    ++*line;
    snprintf(ret->rollout, sizeof(ret->rollout), "line %llu", (unsigned long long)*line);
    if (text.failed)
        return fail_set(fail, -EINVAL, "it is longer than %d bytes", LINE_BYTES_MAX);
    AUTO_JSON json_t *json = text_is_shallow(buffer_peek(&text), TEXT_LEVELS_MAX)
                                 ? json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL)
                                 : NULL;
    int error = json ? read_trajectory(json, ret, fail) : refuse_line(fail, "it is not JSON");
    return error < 0 ? error : 1;
}

void sample_finish(struct sample *given) { record_finish(&given->record); }
