#include "client/gateway/runs/run_doubts.h"

#include "client/gateway/runs/run_ends.h"

static void on_refused(struct run_place *place, const struct msg_refused *refused)
{
    const int status = http_call_status_of(refused->reason);
    place->is_doubtful = refused->has_retry_after_ms;
    if (!place->is_doubtful && (status == 404 || status == 410))
        place->of->lose(place);
}

static void on_answer(void *arg, const struct answer *answer)
{
    struct run_place *place = arg;
    place->is_doubtful = !answer; /* the broker is away again */
    if (!answer || place->state != PLACE_LIVE)
        return;
    if (answer->id == MSG_refused)
        on_refused(place, &answer->as.refused);
    else if (answer->id == MSG_trajectory)
        run_ends_tell(place, &answer->as.trajectory);
    else if (place->is_cancelled) /* in the ledger that was replaced */
        place->of->cancel(place);
}

/* What has ended, and was told, is nobody's any more once its caller has the answer. */
static void drop_gone(struct runs_of *of)
{
    size_t at = 0;
    for (struct run_place *place; (place = table_next(&of->places, &at));)
        if (place->is_gone && !place->wait) {
            run_place_drop(place);
            at = 0;
        }
}

void run_doubts_sweep(struct runs_of *of, void (*lose)(struct run_place *), void (*cancel)(struct run_place *))
{
    size_t at = 0, left = RUN_DOUBTS_A_SWEEP;
    of->lose = lose;
    of->cancel = cancel;
    drop_gone(of);
    for (struct run_place *place; left > 0 && (place = table_next(&of->places, &at));)
        if (place->is_doubtful && place->state == PLACE_LIVE && !place->ask.caller) {
            run_place_get(place, on_answer);
            left--;
        }
}
