#include "workers/runtime/activity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "workers/runtime/fiber.h"

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
