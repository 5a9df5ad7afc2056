#include "client/trace/otlp.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/trace/values.h"

enum { SPAN_ID_BYTES = 8, KIND_INTERNAL = 1, KIND_CLIENT = 3, STATUS_OK = 1, STATUS_ERROR = 2 };

/* ---- attributes -------------------------------------------------------------------------------- */

/* {"key": ..., "value": {"stringValue": ...}}; takes the value. */
static void add(json_t *attributes, const char *key, const char *type, json_t *value)
{
    if (value)
        json_array_append_new(attributes, json_pack("{s:s, s:{s:o}}", "key", key, "value", type, value));
}

static void add_text(json_t *attributes, const char *key, const char *text)
{
    if (text && *text)
        add(attributes, key, "stringValue", value_text(text));
}

/* 64 bits are text in OTLP's JSON. */
static void add_number(json_t *attributes, const char *key, uint64_t number)
{
    add(attributes, key, "intValue", json_sprintf("%" PRIu64, number));
}

static void add_real(json_t *attributes, const char *key, double number)
{
    add(attributes, key, "doubleValue", json_real(number));
}

/* Only what the engine told. */
static void add_told(json_t *attributes, const char *key, double seconds)
{
    if (seconds >= 0)
        add_real(attributes, key, seconds);
}

static void add_flag(json_t *attributes, const char *key, bool flag)
{
    add(attributes, key, "boolValue", json_boolean(flag));
}

static void describe_rollout(json_t *a, const struct sluice_trajectory *t)
{
    add_text(a, "gen_ai.operation.name", "invoke_agent");
    add_text(a, "gen_ai.agent.name", t->agent);
    add_text(a, "sluice.rollout", t->rollout);
    add_text(a, "sluice.group", t->group);
    add_text(a, "sluice.stream", t->stream);
    add_text(a, "sluice.task", t->task);
    add_number(a, "sluice.seq", t->seq);
    add_number(a, "sluice.sample", t->sample);
    add_number(a, "sluice.attempt", t->attempt);
    add_text(a, "sluice.outcome", t->outcome);
    add_text(a, "sluice.end", t->end);
    add_flag(a, "sluice.trainable", t->trainable);
    add_flag(a, "sluice.truncated", t->truncated);
    if (t->has_reward)
        add_real(a, "sluice.reward", t->reward);
}

static void describe_sampling(json_t *a, const struct sluice_sampling *sampling)
{
    if (!sampling)
        return;
    add_real(a, "gen_ai.request.temperature", sampling->temperature);
    add_real(a, "gen_ai.request.top_p", sampling->top_p);
    add_number(a, "gen_ai.request.max_tokens", sampling->max_tokens);
    if (sampling->top_k)
        add_number(a, "gen_ai.request.top_k", sampling->top_k);
    if (sampling->seed >= 0)
        add_number(a, "gen_ai.request.seed", (uint64_t)sampling->seed);
}

static void describe_call(json_t *a, const struct sluice_turn *turn)
{
    add_text(a, "gen_ai.operation.name", "chat");
    add_number(a, "gen_ai.usage.input_tokens", turn->prompt_tokens);
    add_number(a, "gen_ai.usage.output_tokens", turn->length);
    add_number(a, "sluice.cached_tokens", turn->cached_tokens);
    add_text(a, "server.address", turn->engine);
    add_text(a, "sluice.policy.version", turn->version);
    if (*turn->finish)
        add(a, "gen_ai.response.finish_reasons", "arrayValue",
            json_pack("{s:[{s:o}]}", "values", "stringValue", value_text(turn->finish)));
    add_told(a, "sluice.engine.queue_seconds", turn->queue_seconds);
    add_told(a, "sluice.engine.prefill_seconds", turn->prefill_seconds);
    add_told(a, "sluice.engine.decode_seconds", turn->decode_seconds);
    describe_sampling(a, turn->sampling);
}

static void describe_tool(json_t *a, const struct span *span)
{
    add_text(a, "gen_ai.operation.name", "execute_tool");
    add_text(a, "gen_ai.tool.name", span->name);
    add_number(a, "sluice.tool.calls", span->calls);
    if (span->calls == 1)
        add(a, "sluice.tool.exit_status", "intValue", json_sprintf("%d", span->exit_status));
}

static json_t *attributes_of(const struct span_list *spans, const struct span *span)
{
    json_t *a = json_array();
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
    return a;
}

/* ---- spans ---------------------------------------------------------------------------------------- */

static json_t *name_of(const struct span_list *spans, const struct span *span)
{
    const char *agent = spans->of->agent;
    if (span->kind == SPAN_ROLLOUT)
        return *agent ? json_sprintf("invoke_agent %s", agent) : json_string("invoke_agent");
    return span->kind == SPAN_TOOL ? json_sprintf("execute_tool %s", span->name) : value_text(span->name);
}

static json_t *status_of(const struct span_list *spans, const struct span *span)
{
    const struct sluice_trajectory *t = spans->of;
    if (span->kind != SPAN_ROLLOUT)
        return json_object();
    const bool is_ok = strcmp(t->outcome, "ok") == 0;
    json_t *status = json_pack("{s:i}", "code", is_ok ? STATUS_OK : STATUS_ERROR);
    if (!is_ok)
        value_set_text(status, "message", t->outcome);
    return status;
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

bool otlp_append_span(const struct span_list *spans, size_t at, struct buffer *out)
{
    const struct span *span = &spans->items[at];
    char trace_id[2 * SPAN_LIST_ID + 1], id[2 * SPAN_ID_BYTES + 1], parent[2 * SPAN_ID_BYTES + 1] = "";
    const int64_t end_us = span->start_us + span->duration_us;
    value_hex(spans->id, SPAN_LIST_ID, trace_id);
    make_span_id(spans, at, id);
    if (span->parent >= 0)
        make_span_id(spans, (size_t)span->parent, parent);
    json_t *object = json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:o}", "traceId", trace_id, "spanId", id, "name",
                               name_of(spans, span), "kind", span->kind == SPAN_ENGINE ? KIND_CLIENT : KIND_INTERNAL,
                               "startTimeUnixNano", json_sprintf("%" PRId64 "000", span->start_us), "endTimeUnixNano",
                               json_sprintf("%" PRId64 "000", end_us), "attributes", attributes_of(spans, span),
                               "status", status_of(spans, span));
    if (object)
        value_set_text(object, "parentSpanId", parent);
    return value_append(out, object);
}

bool otlp_append_head(struct buffer *out)
{
    char host[256] = "";
    json_t *resource = json_array(), *scope = json_object();
    gethostname(host, sizeof(host) - 1);
    add_text(resource, "service.name", "sluice");
    add_text(resource, "service.version", SLUICE_VERSION);
    add_text(resource, "host.name", host);
    value_set_text(scope, "name", "sluice");
    value_set_text(scope, "version", SLUICE_VERSION);
    buffer_append_str(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":");
    const bool has_resource = value_append(out, resource);
    buffer_append_str(out, "},\"scopeSpans\":[{\"schemaUrl\":\"" OTLP_SCHEMA "\",\"scope\":");
    const bool has_scope = value_append(out, scope);
    return buffer_append_str(out, ",\"spans\":[") && has_resource && has_scope;
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
