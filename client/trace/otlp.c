#include "client/trace/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/trace/values.h"
#include "common/cmdline/cmdline.h"

enum { SPAN_ID_BYTES = 8, KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_OK = 1, STATUS_ERROR = 2 };

/* ---- attributes -------------------------------------------------------------------------------- */

/* A list of them, as text. */
struct attributes {
    struct buffer *out;
    bool has_any;
};

/* {"key":...,"value":{"stringValue": up to the value, which `end` follows. */
static void begin(struct attributes *attributes, const char *key, const char *type)
{
    struct buffer *out = attributes->out;
    buffer_append_str(out, attributes->has_any ? ",{\"key\":\"" : "{\"key\":\"");
    buffer_append_str(out, key);
    buffer_append_str(out, "\",\"value\":{\"");
    buffer_append_str(out, type);
    buffer_append_str(out, "\":");
    attributes->has_any = true;
}

static void end(const struct attributes *attributes) { buffer_append_str(attributes->out, "}}"); }

static void add_text(struct attributes *attributes, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    begin(attributes, key, "stringValue");
    value_put_text(attributes->out, text);
    end(attributes);
}

/* 64 bits are text in OTLP's JSON. */
static void add_number(struct attributes *attributes, const char *key, int64_t number)
{
    begin(attributes, key, "intValue");
    buffer_printf(attributes->out, "\"%" PRId64 "\"", number);
    end(attributes);
}

static void add_real(struct attributes *attributes, const char *key, double number)
{
    begin(attributes, key, "doubleValue");
    value_put_real(attributes->out, number);
    end(attributes);
}

/* Only what the engine told. */
static void add_told(struct attributes *attributes, const char *key, double seconds)
{
    if (seconds >= 0)
        add_real(attributes, key, seconds);
}

static void add_flag(struct attributes *attributes, const char *key, bool flag)
{
    begin(attributes, key, "boolValue");
    buffer_append_str(attributes->out, flag ? "true" : "false");
    end(attributes);
}

/* A list of one text. */
static void add_one(struct attributes *attributes, const char *key, const char *text)
{
    begin(attributes, key, "arrayValue");
    buffer_append_str(attributes->out, "{\"values\":[{\"stringValue\":");
    value_put_text(attributes->out, text);
    buffer_append_str(attributes->out, "}]}");
    end(attributes);
}

static void describe_rollout(struct attributes *a, const struct sluice_trajectory *t)
{
    add_text(a, "gen_ai.operation.name", "invoke_agent");
    add_text(a, "gen_ai.agent.name", t->agent);
    add_text(a, "sluice.rollout", t->rollout);
    add_text(a, "sluice.group", t->group);
    add_text(a, "sluice.stream", t->stream);
    add_text(a, "sluice.task", t->task);
    add_number(a, "sluice.seq", (int64_t)t->seq);
    add_number(a, "sluice.sample", t->sample);
    add_number(a, "sluice.attempt", t->attempt);
    add_text(a, "sluice.outcome", t->outcome);
    add_text(a, "sluice.end", t->end);
    add_flag(a, "sluice.trainable", t->trainable);
    add_flag(a, "sluice.truncated", t->truncated);
    if (t->has_reward)
        add_real(a, "sluice.reward", t->reward);
}

static void describe_sampling(struct attributes *a, const struct sluice_sampling *sampling)
{
    if (!sampling)
        return;
    add_real(a, "gen_ai.request.temperature", sampling->temperature);
    add_real(a, "gen_ai.request.top_p", sampling->top_p);
    add_number(a, "gen_ai.request.max_tokens", sampling->max_tokens);
    if (sampling->top_k)
        add_number(a, "gen_ai.request.top_k", sampling->top_k);
    if (sampling->seed >= 0)
        add_number(a, "gen_ai.request.seed", sampling->seed);
}

static void describe_call(struct attributes *a, const struct sluice_turn *turn)
{
    add_text(a, "gen_ai.operation.name", "chat");
    add_number(a, "gen_ai.usage.input_tokens", turn->prompt_tokens);
    add_number(a, "gen_ai.usage.output_tokens", turn->length);
    add_number(a, "sluice.cached_tokens", turn->cached_tokens);
    add_text(a, "server.address", turn->engine);
    add_text(a, "sluice.policy.version", turn->version);
    if (*turn->finish)
        add_one(a, "gen_ai.response.finish_reasons", turn->finish);
    add_told(a, "sluice.engine.queue_seconds", turn->queue_seconds);
    add_told(a, "sluice.engine.prefill_seconds", turn->prefill_seconds);
    add_told(a, "sluice.engine.decode_seconds", turn->decode_seconds);
    describe_sampling(a, turn->sampling);
}

static void describe_tool(struct attributes *a, const struct span *span)
{
    add_text(a, "gen_ai.operation.name", "execute_tool");
    add_text(a, "gen_ai.tool.name", span->name);
    add_number(a, "sluice.tool.calls", span->calls);
    if (span->calls == 1)
        add_number(a, "sluice.tool.exit_status", span->exit_status);
}

static void describe(struct attributes *a, const struct span_list *spans, const struct span *span)
{
    switch (span->kind) {
    case SPAN_ROLLOUT: describe_rollout(a, spans->of); break;
    case SPAN_ENGINE: describe_call(a, span->call); break;
    case SPAN_TOOL: describe_tool(a, span); break;
    case SPAN_TURN:
        add_number(a, "sluice.trace", span->trace);
        add_text(a, "sluice.label", spans->of->traces[span->trace].label);
        break;
    case SPAN_RUN: add_number(a, "sluice.attempt", spans->of->run_attempt); break;
    default: break;
    }
    if (!span->is_timed)
        add_flag(a, "sluice.time_not_recorded", true);
}

/* ---- spans ---------------------------------------------------------------------------------------- */

static void put_name(struct buffer *out, const struct span_list *spans, const struct span *span)
{
    char name[128];
    const char *agent = spans->of->agent;
    if (span->kind == SPAN_ROLLOUT)
        snprintf(name, sizeof(name), "invoke_agent%s%.64s", *agent ? " " : "", agent);
    else
        snprintf(name, sizeof(name), "%s%s", span->kind == SPAN_TOOL ? "execute_tool " : "", span->name);
    value_put_text(out, name);
}

/* Of a rollout alone: what else is wrong, it says. */
static void put_status(struct buffer *out, const struct span_list *spans, const struct span *span)
{
    const struct sluice_trajectory *t = spans->of;
    if (span->kind != SPAN_ROLLOUT) {
        buffer_append_str(out, "{}");
    } else if (strcmp(t->outcome, "ok") == 0) {
        buffer_printf(out, "{\"code\":%d}", STATUS_OK);
    } else {
        buffer_printf(out, "{\"code\":%d,\"message\":", STATUS_ERROR);
        value_put_text(out, t->outcome);
        buffer_append_str(out, "}");
    }
}

/* Of the trace's id and the span's place, so that each program gives the same; never zero, which stands for none. */
static void make_span_id(const struct span_list *spans, size_t at, char ret[2 * SPAN_ID_BYTES + 1])
{
    uint64_t mixed;
    memcpy(&mixed, spans->id, sizeof(mixed));
    mixed += (at + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    mixed ^= mixed >> 31;
    snprintf(ret, 2 * SPAN_ID_BYTES + 1, "%016" PRIx64, mixed ? mixed : 1);
}

enum { VERSION_DIGITS = 2, TRACE_DIGITS = 32, SPAN_DIGITS = 16, FLAG_DIGITS = 2 };

/* "00-TRACE-SPAN-FLAGS", as W3C's Trace Context has it: whether it is one of these digits at these places. */
static bool is_traceparent(const char *text)
{
    static const struct {
        size_t at, digits;
    } parts[] = {{0, VERSION_DIGITS}, {3, TRACE_DIGITS}, {36, SPAN_DIGITS}, {53, FLAG_DIGITS}};
    for (size_t i = 0; i < ROWS(parts); i++)
        if (strlen(text) != 55 || strspn(text + parts[i].at, "0123456789abcdef") < parts[i].digits ||
            (i > 0 && text[parts[i].at - 1] != '-'))
            return false;
    return true;
}

/* The span of whoever submitted the task, where its metadata names one. */
static void put_link(struct buffer *out, const struct sluice_trajectory *t)
{
    if (!t->metadata || !strstr(t->metadata, "\"traceparent\""))
        return;
    json_t *metadata = json_loads(t->metadata, 0, NULL);
    const char *parent = json_string_value(json_object_get(metadata, "traceparent"));
    if (parent && is_traceparent(parent))
        buffer_printf(out, "\"links\":[{\"traceId\":\"%.*s\",\"spanId\":\"%.*s\"}],", TRACE_DIGITS, parent + 3,
                      SPAN_DIGITS, parent + 36);
    json_decref(metadata);
}

bool otlp_append_span(const struct span_list *spans, size_t at, struct buffer *out)
{
    const struct span *span = &spans->items[at];
    struct attributes attributes = {.out = out};
    char trace_id[2 * SPAN_LIST_ID + 1], id[2 * SPAN_ID_BYTES + 1];
    value_hex(spans->id, SPAN_LIST_ID, trace_id);
    make_span_id(spans, at, id);
    buffer_printf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\",", trace_id, id);
    if (span->parent >= 0) {
        make_span_id(spans, (size_t)span->parent, id);
        buffer_printf(out, "\"parentSpanId\":\"%s\",", id);
    }
    if (span->kind == SPAN_ROLLOUT)
        put_link(out, spans->of);
    buffer_append_str(out, "\"name\":");
    put_name(out, spans, span);
    buffer_printf(out, ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRId64 "000\",\"endTimeUnixNano\":\"%" PRId64 "000\",",
                  span->kind == SPAN_ENGINE ? KIND_CLIENT : KIND_INTERNAL, span->start_us,
                  span->start_us + span->duration_us);
    buffer_append_str(out, "\"attributes\":[");
    describe(&attributes, spans, span);
    buffer_append_str(out, "],\"status\":");
    put_status(out, spans, span);
    return buffer_append_str(out, "}");
}

bool otlp_append_head(struct buffer *out)
{
    char host[256] = "";
    struct attributes resource = {.out = out};
    gethostname(host, sizeof(host) - 1);
    buffer_append_str(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    add_text(&resource, "service.name", "sluice");
    add_text(&resource, "service.version", SLUICE_VERSION);
    add_text(&resource, "host.name", host);
    return buffer_append_str(out, "]},\"scopeSpans\":[{\"schemaUrl\":\"" OTLP_SCHEMA
                                  "\",\"scope\":{\"name\":\"sluice\",\"version\":\"" SLUICE_VERSION "\"},\"spans\":[");
}

bool otlp_append_tail(struct buffer *out) { return buffer_append_str(out, "]}]}]}"); }

bool otlp_append_request(const struct span_list *spans, struct buffer *out)
{
    bool is_whole = otlp_append_head(out);
    for (size_t i = 0; i < spans->count && is_whole; i++) {
        if (i)
            buffer_append_str(out, ",");
        is_whole = otlp_append_span(spans, i, out);
    }
    return is_whole && otlp_append_tail(out) && !out->failed;
}
