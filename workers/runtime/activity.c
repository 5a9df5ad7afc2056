#include "workers/runtime/activity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/loop/loop_now.h"
#include "workers/runtime/fiber.h"

enum { PAST_FIRST = 8 }; /* doubled up to ACTIVITY_PAST_MAX */

_Static_assert(ACTIVITY_PAST_MAX % PAST_FIRST == 0, "its room is doubled until it is that large");

struct activity *activity_current(void)
{
    struct fiber *fiber = fiber_current();
    return fiber ? fiber_activity(fiber) : NULL;
}

/* Text that is fit to send, and that it changed where it did. */
static void set_text(struct activity *activity, char *field, size_t max, char *text)
{
    text_sanitize(text);
    const struct slice fits = text_cut(text, max);
    if (slice_is(fits, field))
        return;
    snprintf(field, max + 1, "%.*s", SLICE_ARG(fits));
    activity->changes++;
}

void activity_turn(uint64_t turn)
{
    struct activity *activity = activity_current();
    if (!activity || activity->turn == turn)
        return;
    activity->turn = turn < UINT32_MAX ? (uint32_t)turn : UINT32_MAX;
    activity->changes++;
}

void activity_tool(const char *name)
{
    struct activity *activity = activity_current();
    char text[2 * ACTIVITY_TOOL_MAX];
    snprintf(text, sizeof(text), "%s", name);
    if (activity)
        set_text(activity, activity->tool, ACTIVITY_TOOL_MAX, text);
}

void activity_wait(const char *format, ...)
{
    struct activity *activity = activity_current();
    char text[2 * ACTIVITY_WHY_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (activity)
        set_text(activity, activity->why, ACTIVITY_WHY_MAX, text);
}

void activity_go_on(void)
{
    struct activity *activity = activity_current();
    if (!activity || !activity->why[0])
        return;
    activity->why[0] = '\0';
    activity->changes++;
}

void activity_evaluator(const char *name)
{
    struct activity *activity = activity_current();
    if (activity)
        activity->evaluator = name;
}

/* ---- phases -------------------------------------------------------------------------------- */

void activity_finish(struct activity *activity)
{
    free(take_ptr(&activity->past));
    activity->past_room = activity->past_count = 0;
}

void activity_begin(struct activity *activity, int64_t now_ms) { activity->began_ms = activity->since_ms = now_ms; }

const char *activity_phase_word(enum activity_phase phase)
{
    static const char *const words[] = {
#define X(name, word) word,
        ACTIVITY_PHASES(X)
#undef X
    };
    return words[phase];
}

const char *activity_phase_of(const struct activity *activity)
{
    switch (activity->phase) {
    case PHASE_TOOL: return activity->tool;
    case PHASE_ENGINE:
    case PHASE_WAITING: return activity->why;
    case PHASE_EVALUATING: return activity->evaluator ? activity->evaluator : "";
    default: return "";
    }
}

static enum activity_phase innermost(const struct activity *activity)
{
    enum activity_phase phase = PHASE_COUNT - 1;
    while (phase > 0 && (activity->within[phase] == 0 ||
                         (phase == PHASE_ENGINE && activity->within[PHASE_SAMPLING] > activity->within[PHASE_ENGINE])))
        phase--;
    return phase;
}

const struct activity_past *activity_past(const struct activity *activity, size_t nth)
{
    const size_t kept = activity->past_count < ACTIVITY_PAST_MAX ? activity->past_count : ACTIVITY_PAST_MAX;
    return nth < kept ? &activity->past[(activity->past_count - kept + nth) % ACTIVITY_PAST_MAX] : NULL;
}

/* False when out of memory. */
static bool past_has_room(struct activity *activity)
{
    if (activity->past_count < activity->past_room || activity->past_room == ACTIVITY_PAST_MAX)
        return true;
    const uint32_t room = activity->past_room ? 2 * activity->past_room : PAST_FIRST;
    struct activity_past *past = reallocarray(activity->past, room, sizeof(*past));
    if (!past)
        return false;
    activity->past = past;
    activity->past_room = room;
    return true;
}

/* The phase at hand is over. In the place of the oldest that is kept, whose time is only counted from then on. */
static void keep_past(struct activity *activity)
{
    if (!past_has_room(activity))
        return; /* so its time counts as that of the one before */
    struct activity_past *past = &activity->past[activity->past_count % ACTIVITY_PAST_MAX];
    if (activity->past_count >= ACTIVITY_PAST_MAX)
        activity->spent_ms[past->phase] += activity_past(activity, 1)->since_ms - past->since_ms;
    *past = (struct activity_past){
        .since_ms = activity->since_ms, .turn = activity->turn, .phase = (uint8_t)activity->phase};
    const struct slice of = text_cut(activity_phase_of(activity), ACTIVITY_OF_MAX);
    snprintf(past->of, sizeof(past->of), "%.*s", SLICE_ARG(of));
    activity->past_count++;
}

static void change_phase(struct activity *activity)
{
    const enum activity_phase phase = innermost(activity);
    if (phase == activity->phase)
        return;
    keep_past(activity);
    activity->since_ms = loop_now_ms();
    activity->phase = phase;
    if (activity->phase_changed)
        activity->phase_changed(activity->live, activity);
}

void activity_enter(enum activity_phase phase)
{
    struct activity *activity = activity_current();
    if (!activity)
        return;
    activity->within[phase]++;
    change_phase(activity);
}

void activity_leave(enum activity_phase phase)
{
    struct activity *activity = activity_current();
    if (!activity)
        return;
    activity->within[phase]--;
    change_phase(activity);
}
