#include "workers/live/turns.h"

#include "workers/runtime/activity.h"

static size_t count_recorded(const struct record *record)
{
    size_t count = 0;
    for (size_t i = 0; record && i < record->trace_count; i++)
        count += record->traces[i].turn_count;
    return count;
}

size_t live_turns_count(const struct activity *activity)
{
    const struct live_turns *more = activity->turns;
    return count_recorded(activity->record) + (more ? more->count(more->arg) : 0);
}

static void get_recorded(const struct record *record, size_t at, struct live_turn *ret)
{
    size_t trace = 0, first = 0;
    while (at - first >= record->traces[trace].turn_count)
        first += record->traces[trace++].turn_count;
    const struct record_trace *of = &record->traces[trace];
    const struct record_turn *turn = &of->turns[at - first];
    const bool is_sampled = turn->length > 0 && of->mask[turn->offset];
    *ret = (struct live_turn){.turn = strcmp(turn->role, "assistant") == 0 ? turn : NULL,
                              .role = turn->role,
                              .ids = of->token_ids + turn->offset,
                              .logprobs = is_sampled ? of->logprobs + turn->offset : NULL,
                              .count = turn->length,
                              .after = at == first ? LIVE_NO_TURN : at - 1,
                              .reason = of->reason,
                              .trace = trace};
}

void live_turns_get(const struct activity *activity, size_t at, struct live_turn *ret)
{
    const struct live_turns *more = activity->turns;
    const size_t recorded = count_recorded(activity->record);
    if (at < recorded) {
        get_recorded(activity->record, at, ret);
        return;
    }
    more->get(more->arg, at - recorded, ret);
    ret->trace += activity->record ? activity->record->trace_count : 0;
    if (ret->after != LIVE_NO_TURN)
        ret->after += recorded;
}
