#include "client/trace/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/trace/tool_calls.h"
#include "common/cmdline/cmdline.h"
#include "common/digest/digest.h"

enum { ROUNDED_US = 1000 }; /* stages are recorded in whole milliseconds */

const char *span_kind_word(enum span_kind kind)
{
    static const char *const words[] = {"rollout", "queue", "init", "run", "eval", "turn", "engine", "tool"};
    return words[kind];
}

void span_list_finish(struct span_list *list)
{
    free(list->items);
    *list = (struct span_list){0};
}

/* Its place, or -1 when out of memory. */
static int add(struct span_list *list, const struct span *span)
{
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 32;
        struct span *items = realloc(list->items, capacity * sizeof(*items));
        if (!items)
            return -1;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count] = *span;
    return (int)list->count++;
}

static int64_t us_of(double seconds) { return seconds > 0 ? (int64_t)(seconds * 1e6 + 0.5) : 0; }

/* ---- stages ---------------------------------------------------------------------------------- */

struct stage {
    enum span_kind kind;
    uint64_t ms;
    bool is_there;
};

/* Whether the stage came to anything: what never began has no span. */
static bool add_stages(struct span_list *list, const struct sluice_trajectory *t, int *ret_run)
{
    const struct stage stages[] = {{SPAN_QUEUE, t->wait_ms, t->wait_ms > 0},
                                   {SPAN_INIT, t->init_ms, t->init_ms > 0},
                                   {SPAN_RUN, t->run_ms, t->run_ms > 0 || t->trace_count > 0},
                                   {SPAN_EVAL, t->eval_ms, t->eval_ms > 0}};
    const int64_t whole_us = (int64_t)(t->wait_ms + t->init_ms + t->run_ms + t->eval_ms) * 1000;
    int64_t at_us = (int64_t)t->ended_ms * 1000 - whole_us;
    struct span rollout = {SPAN_ROLLOUT, SPAN_NO_PARENT, "rollout", at_us, whole_us, .is_timed = true};
    *ret_run = -1;
    if (add(list, &rollout) < 0)
        return false;
    for (size_t i = 0; i < ROWS(stages); i++) {
        struct span span = {stages[i].kind, 0, "", at_us, (int64_t)stages[i].ms * 1000, .is_timed = true};
        snprintf(span.name, sizeof(span.name), "%s", span_kind_word(span.kind));
        at_us += span.duration_us;
        const int place = stages[i].is_there ? add(list, &span) : 0;
        if (place < 0)
            return false;
        if (place && span.kind == SPAN_RUN)
            *ret_run = place;
    }
    return true;
}

/* ---- turns -------------------------------------------------------------------------------------- */

static bool is_assistant(const struct sluice_turn *turn) { return strcmp(turn->role, "assistant") == 0; }

static int64_t seconds_of_trace(const struct sluice_trace *trace)
{
    int64_t sum = 0;
    for (size_t i = 0; i < trace->turn_count; i++)
        sum += us_of(trace->turns[i].seconds);
    return sum;
}

/* Where the next call begins, and in which turn. */
struct walk {
    struct span_list *list;
    struct tool_calls calls;
    int run, turn; /* places of spans; turn -1: none has begun */
    int64_t at_us;
    unsigned lane, trace, turns;
};

/* A span inside the turn, which becomes longer by it. */
static bool add_inside(struct walk *walk, struct span *span)
{
    span->parent = walk->turn >= 0 ? walk->turn : walk->run;
    span->start_us = walk->at_us;
    span->lane = walk->lane;
    span->trace = walk->trace;
    span->turn = walk->turns;
    walk->at_us += span->duration_us;
    if (walk->turn >= 0)
        walk->list->items[walk->turn].duration_us += span->duration_us;
    return add(walk->list, span) >= 0;
}

static bool add_reply(struct walk *walk, const struct sluice_turn *turn)
{
    struct span whole = {SPAN_TURN,     walk->run,       "", walk->at_us, 0, walk->lane, walk->trace,
                         ++walk->turns, .is_timed = true};
    struct span call = {
        .kind = SPAN_ENGINE, .name = "chat", .call = turn, .is_timed = true, .duration_us = us_of(turn->seconds)};
    snprintf(whole.name, sizeof(whole.name), "turn %u", walk->turns);
    walk->turn = add(walk->list, &whole);
    tool_calls_pass_reply(&walk->calls);
    return walk->turn >= 0 && add_inside(walk, &call);
}

/* "bash" of "bash: ls -l"; of several, "bash, python"; what does not fit is left out. */
static void add_name(struct span *span, const struct sluice_message *message)
{
    const size_t len = strlen(span->name);
    const int own = (int)strcspn(message->tool, ":");
    snprintf(span->name + len, sizeof(span->name) - len, "%s%.*s", len ? ", " : "", own, message->tool);
}

/* What was called between two replies: one span where its time is recorded, else one each. */
static bool add_tools(struct walk *walk, double seconds, bool is_timed)
{
    struct span all = {.kind = SPAN_TOOL, .is_timed = is_timed, .duration_us = us_of(seconds)};
    const struct sluice_message *message;
    while ((message = tool_calls_next(&walk->calls))) {
        add_name(&all, message);
        all.exit_status = message->exit_status;
        all.calls++;
        if (is_timed)
            continue;
        if (!add_inside(walk, &all))
            return false;
        all = (struct span){.kind = SPAN_TOOL};
    }
    if (!is_timed || (!all.calls && !all.duration_us))
        return true;
    if (!all.calls)
        snprintf(all.name, sizeof(all.name), "tool");
    all.calls += !all.calls;
    return add_inside(walk, &all);
}

static bool add_trace(struct walk *walk, const struct sluice_trace *trace)
{
    tool_calls_enter(&walk->calls, trace);
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct sluice_turn *turn = &trace->turns[i];
        const bool is_timed = turn->seconds > 0 || !trace->stretch_count;
        if (!is_assistant(turn) && !walk->turns)
            continue; /* what the task brought along */
        if (is_assistant(turn) ? !add_reply(walk, turn) : !add_tools(walk, turn->seconds, is_timed))
            return false;
    }
    return true;
}

/* The calls of its last reply, whose results nobody was told: the record has no time for them. */
static bool add_last(struct walk *walk) { return add_tools(walk, 0, false); }

static bool add_traces(struct walk *walk, const struct sluice_trajectory *t)
{
    struct span *run = &walk->list->items[walk->run];
    const int64_t begin_us = run->start_us;
    int64_t whole_us = 0;
    for (size_t i = 0; i < t->trace_count; i++)
        whole_us += seconds_of_trace(&t->traces[i]);
    walk->list->has_lanes = t->trace_count > 1 && whole_us > run->duration_us + ROUNDED_US;
    if (!walk->list->has_lanes && whole_us > run->duration_us)
        run->duration_us = whole_us;
    walk->at_us = begin_us;
    for (size_t i = 0; i < t->trace_count; i++) {
        walk->trace = (unsigned)i;
        if (walk->list->has_lanes) {
            walk->lane = (unsigned)i + 1;
            walk->at_us = begin_us;
            walk->turn = -1;
        }
        if (!add_trace(walk, &t->traces[i]) || (t->traces[i].stretch_count && !add_last(walk)))
            return false;
    }
    return !t->trace_count || add_last(walk);
}

static bool make_ids(struct span_list *list)
{
    uint8_t raw[DIGEST_RAW_SIZE];
    if (!digest_raw(slice_from_str(list->of->rollout), raw))
        return false;
    memcpy(list->id, raw, sizeof(list->id));
    if (!digest_raw(slice_from_str(list->of->group), raw))
        return false;
    memcpy(&list->group_id, raw, sizeof(list->group_id));
    return true;
}

bool span_list_make(struct span_list *list, const struct sluice_trajectory *trajectory)
{
    struct walk walk = {.list = list, .turn = -1};
    *list = (struct span_list){.of = trajectory};
    bool is_made = tool_calls_init(&walk.calls, trajectory) && make_ids(list) &&
                   add_stages(list, trajectory, &walk.run);
    if (is_made && walk.run >= 0)
        is_made = add_traces(&walk, trajectory);
    tool_calls_finish(&walk.calls);
    if (!is_made)
        span_list_finish(list);
    return is_made;
}
