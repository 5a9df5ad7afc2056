#include "client/gateway/runs/run_place.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"

struct run_place *run_place_add(struct runs_of *of, const char *name)
{
    struct run_place *place = calloc(1, sizeof(*place));
    if (!place)
        return NULL;
    place->of = of;
    place->alone_ms = clock_ms();
    list_init(&place->ended);
    snprintf(place->name, sizeof(place->name), "%s", name);
    if (table_put(&of->places, slice_from_str(place->name), place))
        return place;
    free(place);
    return NULL;
}

void run_place_drop(struct run_place *place)
{
    table_take(&place->of->places, slice_from_str(place->name));
    list_remove(&place->ended);
    caller_forget(&place->ask);
    buffer_finish(&place->id);
    buffer_finish(&place->task);
    free(place);
}

void run_place_get(struct run_place *place, void (*answered)(void *arg, const struct answer *answer))
{
    char rollout[HAD_NAME_SIZE + 2];
    struct caller *caller = place->of->identity->caller;
    struct refusal no;
    snprintf(rollout, sizeof(rollout), "%s/0", place->name);
    const struct msg_rollout_get in = {.tag = caller_next_tag(caller), .rollout = slice_from_str(rollout)};
    caller_forget(&place->ask);
    place->ask.answered = answered;
    place->ask.arg = place;
    caller_ask(caller, &place->ask, MSG_rollout_get, &in, in.tag, HTTP_CALL_WAIT_MS, &no);
}
