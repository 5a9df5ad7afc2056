#include "workers/live/events.h"

#include <math.h>

#include "common/base/text.h"
#include "common/base/utf8.h"

enum { HEAD_PARTS = 2, PARTS = 3, LABEL_BYTES = 2048, DELTA_BYTES = 8 << 10, SHORT_CONTENT_BYTES = 4 << 10 };

/* ---- JSON ---------------------------------------------------------------------------------- */

static void begin(struct live_list *list, const char *event)
{
    buffer_printf(&list->json, "%s{\"event\":\"%s\"", list->count > 0 ? "," : "", event);
    list->count++;
}

static void end(struct live_list *list) { buffer_append_str(&list->json, "}"); }

static void put_number(struct live_list *list, const char *name, uint64_t number)
{
    buffer_printf(&list->json, ",\"%s\":%llu", name, (unsigned long long)number);
}

static void put_seconds(struct live_list *list, const char *name, double seconds)
{
    if (isfinite(seconds))
        buffer_printf(&list->json, ",\"%s\":%.6g", name, seconds);
}

/* What a string holds, escaped. */
static void put_bytes(struct buffer *json, struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        const uint8_t byte = text.data[at];
        const size_t len = utf8_sequence(slice_of(text.data + at, text.len - at));
        if (len == 0)
            buffer_append_str(json, "\\ufffd");
        else if (byte < 0x20 || byte == 0x7f)
            buffer_printf(json, "\\u%04x", byte);
        else {
            buffer_append(json, "\\", byte == '"' || byte == '\\');
            buffer_append(json, text.data + at, len);
        }
        at += len ? len : 1;
    }
}

static void put_text(struct live_list *list, const char *name, struct slice text)
{
    buffer_printf(&list->json, ",\"%s\":\"", name);
    put_bytes(&list->json, text);
    buffer_append_str(&list->json, "\"");
}

static void put_str(struct live_list *list, const char *name, const char *text)
{
    put_text(list, name, slice_from_str(text));
}

/* ---- how it is ----------------------------------------------------------------------------- */

void live_put_left_out(struct live_list *list, size_t messages, size_t turns)
{
    begin(list, "left-out");
    put_number(list, "messages", messages);
    put_number(list, "turns", turns);
    end(list);
}

static void put_ms(struct live_list *list, const struct activity *activity, int64_t now_ms)
{
    put_number(list, "ms", now_ms > activity->began_ms ? (uint64_t)(now_ms - activity->began_ms) : 0);
}

void live_put_times(struct live_list *list, const struct activity *activity)
{
    const struct activity_past *first = activity_past(activity, 0);
    const char *between = "";
    begin(list, "times");
    put_ms(list, activity, first ? first->since_ms : activity->since_ms);
    buffer_append_str(&list->json, ",\"seconds\":{");
    for (enum activity_phase phase = 0; phase < PHASE_COUNT; phase++) {
        if (activity->spent_ms[phase] == 0)
            continue;
        buffer_printf(&list->json, "%s\"%s\":%.3f", between, activity_phase_word(phase),
                      (double)activity->spent_ms[phase] / 1000);
        between = ",";
    }
    buffer_append_str(&list->json, "}");
    end(list);
}

static void put_phase(struct live_list *list, const struct activity *activity, const struct activity_past *phase,
                      const char *of)
{
    begin(list, "phase");
    put_ms(list, activity, phase->since_ms);
    put_str(list, "phase", activity_phase_word(phase->phase));
    if (*of)
        put_str(list, "of", of);
    if (phase->turn > 0)
        put_number(list, "turn", phase->turn);
    end(list);
}

void live_put_phase(struct live_list *list, const struct activity *activity)
{
    const struct activity_past now = {
        .since_ms = activity->since_ms, .turn = activity->turn, .phase = (uint8_t)activity->phase};
    put_phase(list, activity, &now, activity_phase_of(activity));
}

void live_put_past(struct live_list *list, const struct activity *activity)
{
    const struct activity_past *past;
    for (size_t i = 0; (past = activity_past(activity, i)); i++)
        put_phase(list, activity, past, past->of);
}

void live_put_end(struct live_list *list, const struct activity *activity, int64_t now_ms, const char *outcome,
                  const char *detail)
{
    begin(list, "end");
    put_ms(list, activity, now_ms);
    put_str(list, "outcome", outcome);
    put_str(list, "detail", detail);
    end(list);
}

/* ---- what is said --------------------------------------------------------------------------- */

/* Its beginning and its end, where it is longer than `most`. */
static void put_content(struct live_list *list, const char *content, size_t most)
{
    const struct slice whole = slice_from_str(content);
    if (whole.len <= most) {
        put_text(list, "content", whole);
        return;
    }
    const struct slice head = text_cut_slice(whole, most * HEAD_PARTS / PARTS);
    const struct slice tail = text_tail_slice(whole, most - most * HEAD_PARTS / PARTS);
    const size_t left_out = whole.len - head.len - tail.len;
    buffer_append_str(&list->json, ",\"content\":\"");
    put_bytes(&list->json, head);
    buffer_printf(&list->json, "\\n[... %zu bytes are not told ...]\\n", left_out);
    put_bytes(&list->json, tail);
    buffer_append_str(&list->json, "\"");
    put_number(list, "left_out", left_out);
}

static void put_message(struct live_list *list, size_t index, const struct record_message *message, size_t most)
{
    begin(list, "message");
    put_number(list, "index", index);
    put_str(list, "role", message->role);
    if (message->tool) {
        put_text(list, "tool", text_cut(message->tool, LABEL_BYTES));
        buffer_printf(&list->json, ",\"exit_status\":%d", message->exit_status);
    }
    buffer_printf(&list->json, ",\"sampled\":%s", message->sampled ? "true" : "false");
    put_content(list, message->content, most);
    end(list);
}

void live_put_message(struct live_list *list, size_t index, const struct record_message *message)
{
    const size_t before = list->json.len, count = list->count;
    put_message(list, index, message, LIVE_CONTENT_BYTES);
    if (list->json.len - before <= LIVE_EVENT_BYTES)
        return;
    list->json.len = before; /* most of it is escaped */
    list->count = count;
    put_message(list, index, message, SHORT_CONTENT_BYTES);
}

size_t live_put_delta(struct live_list *list, uint32_t sampling, struct slice text)
{
    const struct slice fits = text_cut_slice(text, DELTA_BYTES);
    begin(list, "delta");
    put_number(list, "sampling", sampling);
    put_text(list, "text", fits);
    end(list);
    return fits.len;
}

void live_put_heard(struct live_list *list, uint32_t sampling, bool stands)
{
    begin(list, stands ? "sampled" : "taken-back");
    put_number(list, "sampling", sampling);
    end(list);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

void live_put_trace(struct live_list *list, const struct live_turn *turn)
{
    begin(list, "trace");
    put_number(list, "trace", turn->trace);
    put_str(list, "reason", turn->reason ? turn->reason : "");
    end(list);
}

static void put_known(struct live_list *list, const char *name, const struct record_seconds *seconds)
{
    if (seconds->is_known)
        put_seconds(list, name, seconds->value);
}

static void put_sampled(struct live_list *list, const struct record_turn *turn)
{
    put_str(list, "finish", turn->finish);
    put_str(list, "engine", turn->engine);
    put_str(list, "version", turn->version);
    put_number(list, "prompt_tokens", turn->prompt_tokens);
    put_number(list, "cached_tokens", turn->cached_tokens);
    put_seconds(list, "seconds", turn->seconds);
    put_known(list, "queue_seconds", &turn->queue_seconds);
    put_known(list, "prefill_seconds", &turn->prefill_seconds);
    put_known(list, "decode_seconds", &turn->decode_seconds);
}

void live_put_turn(struct live_list *list, size_t number, const struct live_turn *turn)
{
    begin(list, "turn");
    put_number(list, "turn", number);
    put_number(list, "trace", turn->trace);
    if (turn->after == LIVE_NO_TURN)
        buffer_append_str(&list->json, ",\"after\":null");
    else
        put_number(list, "after", turn->after);
    put_str(list, "role", turn->role);
    put_number(list, "tokens", turn->count);
    if (turn->turn)
        put_sampled(list, turn->turn);
    end(list);
}

size_t live_put_tokens(struct live_list *list, size_t number, const struct live_turn *turn, size_t offset)
{
    const size_t left = turn->count - offset, count = left < LIVE_TOKENS ? left : LIVE_TOKENS;
    begin(list, "tokens");
    put_number(list, "turn", number);
    put_number(list, "offset", offset);
    buffer_printf(&list->json, ",\"mask\":%d,\"ids\":[", turn->logprobs != NULL);
    for (size_t i = offset; i < offset + count; i++)
        buffer_printf(&list->json, "%s%u", i == offset ? "" : ",", turn->ids[i]);
    buffer_append_str(&list->json, "]");
    if (turn->logprobs) {
        buffer_append_str(&list->json, ",\"logprobs\":[");
        for (size_t i = offset; i < offset + count; i++)
            buffer_printf(&list->json, "%s%.9g", i == offset ? "" : ",", (double)turn->logprobs[i]);
        buffer_append_str(&list->json, "]");
    }
    end(list);
    return count;
}
