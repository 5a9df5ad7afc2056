#include "client/trace/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/values.h"
#include "common/cmdline/cmdline.h"

/* Which process a span stands in; what is inside a run stands where the run does, or in the last. */
enum process { WHOLE, QUEUED, INIT, RUN, EVAL, BESIDE };

static const struct {
    const char *name;
    enum process process;
} places[] = {
    [SPAN_ROLLOUT] = {"rollouts", WHOLE}, [SPAN_QUEUE] = {"queues", QUEUED},
    [SPAN_INIT] = {"init", INIT},         [SPAN_RUN] = {"run", RUN},
    [SPAN_EVAL] = {"eval", EVAL},         [SPAN_TURN] = {"conversations side by side", BESIDE},
};

/* Colours are names that the viewers know, by what the time went to. */
static const char *const colours[] = {
    [SPAN_ROLLOUT] = "grey",
    [SPAN_QUEUE] = "thread_state_runnable",
    [SPAN_INIT] = "rail_load",
    [SPAN_RUN] = "rail_response",
    [SPAN_EVAL] = "good",
    [SPAN_TURN] = "rail_idle",
    [SPAN_ENGINE] = "thread_state_running",
    [SPAN_TOOL] = "rail_animation",
};

static bool put(struct perfetto *perfetto, struct buffer *out, json_t *event)
{
    if (perfetto->events++)
        buffer_append_str(out, ",\n");
    return value_append(out, event) && !out->failed;
}

/* ---- lanes ---------------------------------------------------------------------------------------- */

static bool put_name(struct perfetto *perfetto, struct buffer *out, enum process process, size_t lane, const char *what,
                     json_t *name)
{
    return put(perfetto, out,
               json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "name", what, "ph", "M", "pid", (int)process + 1, "tid",
                         (int)lane, "args", "name", name));
}

static bool grow(struct perfetto_lanes *lanes)
{
    if (lanes->count < lanes->capacity)
        return true;
    const size_t capacity = lanes->capacity ? 2 * lanes->capacity : 16;
    int64_t *ends_us = realloc(lanes->ends_us, capacity * sizeof(*ends_us));
    if (!ends_us)
        return false;
    lanes->ends_us = ends_us;
    lanes->capacity = capacity;
    return true;
}

/* The free lane whose last span ended latest, so that gaps stay large; else a new one. From 1; 0: no memory. */
static size_t take_lane(struct perfetto *perfetto, struct buffer *out, enum process process, int64_t start_us,
                        int64_t end_us)
{
    struct perfetto_lanes *lanes = &perfetto->lanes[process];
    size_t best = lanes->count;
    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->ends_us[i] <= start_us && (best == lanes->count || lanes->ends_us[i] > lanes->ends_us[best]))
            best = i;
    if (best == lanes->count && lanes->count == PERFETTO_LANES_MAX)
        best = 0;
    if (best == lanes->count) {
        if (!grow(lanes))
            return 0;
        lanes->count++;
        if (!put_name(perfetto, out, process, best + 1, "thread_name", json_sprintf("slot %zu", best + 1)))
            return 0;
    }
    lanes->ends_us[best] = end_us;
    return best + 1;
}

/* ---- events ------------------------------------------------------------------------------------------ */

static void describe_rollout(json_t *args, const struct sluice_trajectory *t)
{
    value_set_text(args, "rollout", t->rollout);
    value_set_text(args, "stream", t->stream);
    value_set_text(args, "task", t->task);
    value_set_text(args, "outcome", t->outcome);
    value_set_text(args, "end", t->end);
    value_set_text(args, "agent", t->agent);
    value_set_text(args, "engine", t->engine);
    value_set(args, "seq", json_integer((json_int_t)t->seq));
    value_set(args, "attempt", json_integer(t->attempt));
    if (t->has_reward)
        value_set(args, "reward", json_real(t->reward));
}

static void describe_call(json_t *args, const struct sluice_turn *turn)
{
    const struct {
        const char *name;
        double seconds;
    } parts[] = {
        {"queue_ms", turn->queue_seconds}, {"prefill_ms", turn->prefill_seconds}, {"decode_ms", turn->decode_seconds}};
    value_set_text(args, "engine", turn->engine);
    value_set_text(args, "version", turn->version);
    value_set_text(args, "finish", turn->finish);
    value_set(args, "prompt_tokens", json_integer(turn->prompt_tokens));
    value_set(args, "cached_tokens", json_integer(turn->cached_tokens));
    value_set(args, "sampled_tokens", json_integer(turn->length));
    for (size_t i = 0; i < ROWS(parts); i++)
        if (parts[i].seconds >= 0)
            value_set(args, parts[i].name, json_real(parts[i].seconds * 1000));
}

static json_t *args_of(const struct span_list *spans, const struct span *span)
{
    json_t *args = json_object();
    const struct sluice_trace *traces = spans->of->traces;
    if (span->kind == SPAN_ROLLOUT)
        describe_rollout(args, spans->of);
    else
        value_set_text(args, "rollout", spans->of->rollout);
    if (span->kind == SPAN_ENGINE)
        describe_call(args, span->call);
    if (span->kind == SPAN_TURN)
        value_set(args, "trace", json_integer(span->trace));
    if (span->kind == SPAN_TURN)
        value_set_text(args, "label", traces[span->trace].label);
    if (span->kind == SPAN_TOOL)
        value_set(args, "calls", json_integer(span->calls));
    if (span->kind == SPAN_TOOL && span->calls == 1)
        value_set(args, "exit_status", json_integer(span->exit_status));
    if (!span->is_timed)
        value_set(args, "time", json_string("not recorded"));
    return args;
}

static bool put_span(struct perfetto *perfetto, struct buffer *out, const struct span_list *spans,
                     const struct span *span, enum process process, size_t lane)
{
    json_t *name = span->kind == SPAN_ROLLOUT || span->parent == 0 ? value_text(spans->of->rollout)
                                                                   : value_text(span->name);
    return put(perfetto, out,
               json_pack("{s:o, s:s, s:s, s:I, s:I, s:i, s:i, s:s, s:o}", "name", name, "cat",
                         span_kind_word(span->kind), "ph", "X", "ts", (json_int_t)span->start_us, "dur",
                         (json_int_t)span->duration_us, "pid", (int)process + 1, "tid", (int)lane, "cname",
                         colours[span->kind], "args", args_of(spans, span)));
}

/* An arrow's end: of the first stage, between, or of the last. */
static bool put_flow(struct perfetto *perfetto, struct buffer *out, const struct span *span, enum process process,
                     size_t lane, const char *phase)
{
    json_t *event = json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:i}", "name", "next stage", "cat", "flow", "ph", phase,
                              "id", (json_int_t)perfetto->flows, "ts", (json_int_t)span->start_us, "pid",
                              (int)process + 1, "tid", (int)lane);
    if (event && *phase == 'f')
        json_object_set_new(event, "bp", json_string("e"));
    return put(perfetto, out, event);
}

/* ---- rollouts --------------------------------------------------------------------------------------- */

/* Whether this one is the first of its group, of those that are remembered. */
static bool is_first_of_group(struct perfetto *perfetto, uint64_t group)
{
    for (size_t i = 0; i < PERFETTO_GROUPS_MAX && i < perfetto->group_count; i++)
        if (perfetto->groups[i] == group)
            return false;
    perfetto->groups[perfetto->group_count++ % PERFETTO_GROUPS_MAX] = group;
    return true;
}

static const struct span *next_stage(const struct span_list *spans, size_t after)
{
    for (size_t i = after + 1; i < spans->count; i++)
        if (spans->items[i].parent == 0)
            return &spans->items[i];
    return NULL;
}

struct tracks { /* of one rollout: its run's lane, and those of conversations beside each other */
    size_t run, beside, trace;
    bool has_flow; /* its arrow has begun */
};

/* A turn or call in its run's lane, or in one of its trace's own. */
static bool add_inner(struct perfetto *perfetto, struct buffer *out, const struct span_list *spans, size_t at,
                      struct tracks *tracks)
{
    const struct span *span = &spans->items[at];
    if (!span->lane)
        return put_span(perfetto, out, spans, span, RUN, tracks->run);
    if (span->lane != tracks->trace) {
        int64_t end_us = span->start_us;
        for (size_t i = at; i < spans->count && spans->items[i].lane == span->lane; i++)
            if (spans->items[i].kind == SPAN_TURN)
                end_us = spans->items[i].start_us + spans->items[i].duration_us;
        tracks->trace = span->lane;
        tracks->beside = take_lane(perfetto, out, BESIDE, span->start_us, end_us);
    }
    return tracks->beside && put_span(perfetto, out, spans, span, BESIDE, tracks->beside);
}

static bool add_stage(struct perfetto *perfetto, struct buffer *out, const struct span_list *spans, size_t at,
                      struct tracks *tracks)
{
    const struct span *span = &spans->items[at];
    const enum process process = places[span->kind].process;
    const size_t lane = take_lane(perfetto, out, process, span->start_us, span->start_us + span->duration_us);
    if (span->kind == SPAN_RUN)
        tracks->run = lane;
    if (!lane || !put_span(perfetto, out, spans, span, process, lane))
        return false;
    const bool is_last = !next_stage(spans, at), has_flow = tracks->has_flow;
    if (at == 0 || (is_last && !has_flow))
        return true;
    tracks->has_flow = true;
    return put_flow(perfetto, out, span, process, lane, !has_flow ? "s" : is_last ? "f" : "t");
}

bool perfetto_add(struct perfetto *perfetto, const struct span_list *spans, struct buffer *out)
{
    const bool has_init = is_first_of_group(perfetto, spans->group_id);
    struct tracks tracks = {0};
    perfetto->flows++;
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->kind == SPAN_INIT && !has_init)
            continue;
        if (span->kind < SPAN_TURN ? !add_stage(perfetto, out, spans, i, &tracks)
                                   : !add_inner(perfetto, out, spans, i, &tracks))
            return false;
    }
    return true;
}

bool perfetto_begin(struct perfetto *perfetto, struct buffer *out)
{
    *perfetto = (struct perfetto){.groups = calloc(PERFETTO_GROUPS_MAX, sizeof(*perfetto->groups))};
    buffer_append_str(out, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    bool is_put = perfetto->groups != NULL;
    for (size_t i = 0; i < ROWS(places) && is_put; i++)
        is_put = put_name(perfetto, out, places[i].process, 0, "process_name", json_string(places[i].name)) &&
                 put(perfetto, out,
                     json_pack("{s:s, s:s, s:i, s:{s:i}}", "name", "process_sort_index", "ph", "M", "pid",
                               (int)places[i].process + 1, "args", "sort_index", (int)places[i].process));
    return is_put;
}

bool perfetto_end(struct perfetto *perfetto, struct buffer *out)
{
    (void)perfetto;
    return buffer_append_str(out, "\n]}\n");
}

void perfetto_finish(struct perfetto *perfetto)
{
    for (size_t i = 0; i < PERFETTO_PROCESSES; i++)
        free(perfetto->lanes[i].ends_us);
    free(perfetto->groups);
    *perfetto = (struct perfetto){0};
}
