#include "workers/live/ear.h"

#include "workers/live/live.h"
#include "workers/runtime/activity.h"

static void on_heard(void *arg, struct slice text)
{
    struct live_ear *ear = arg;
    if (ear->other)
        ear->other->heard(ear->other->arg, text);
    if (ear->said.len + text.len <= LIVE_HEARD_MAX)
        buffer_append(&ear->said, text.data, text.len);
}

static void on_taken_back(void *arg)
{
    struct live_ear *ear = arg;
    if (ear->is_told_of)
        live_note_heard(ear->activity->live, ear->sampling, false);
    buffer_clear(&ear->said);
    ear->told = 0;
    ear->is_told_of = false;
}

const struct engine_listener *live_ear_open(struct live_ear *ear, const struct engine_listener *other)
{
    struct activity *activity = activity_current();
    if (!activity || !activity->live)
        return other;
    *ear = (struct live_ear){.next = activity->ears,
                             .activity = activity,
                             .listener = {.heard = on_heard, .taken_back = other ? NULL : on_taken_back, .arg = ear},
                             .other = other,
                             .sampling = ++activity->samplings};
    activity->ears = ear;
    return &ear->listener;
}

void live_ear_close(struct live_ear *ear, bool stands)
{
    if (!ear->activity)
        return;
    struct live_ear **at = &ear->activity->ears;
    while (*at != ear)
        at = &(*at)->next;
    *at = ear->next;
    if (ear->is_told_of)
        live_note_heard(ear->activity->live, ear->sampling, stands);
    buffer_finish(&ear->said);
}
