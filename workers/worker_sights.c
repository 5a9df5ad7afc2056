/* worker_sights.c - what the worker tells the broker of engines, before a beat (engine.sight). */
#include "common/cleanup.h"
#include "workers/engines/using.h"
#include "workers/worker_inside.h"

static bool send_sight(struct worker *worker, const char *url, const struct engine_use *use)
{
    AUTO_BUFFER bytes = {0};
    zmq_msg_t message;
    struct refusal no;
    struct msg_engine_sight sight = {.worker = slice_from_str(worker->id),
                                     .url = slice_from_str(url),
                                     .runs = use->runs,
                                     .tokens = use->tokens,
                                     .calls = use->calls};
    if (!message_encode(MSG_engine_sight, &sight, &bytes, &no) ||
        zmq_msg_init_size(&message, bytes.len) < 0)
        return false;
    memcpy(zmq_msg_data(&message), bytes.data, bytes.len);
    return lane_send(&worker->lane, &message);
}

/* One that cannot be told now is told before the next beat. */
void worker_send_sights(struct worker *worker)
{
    struct engine *engine;
    struct engine_use use;
    const char *url;
    while (engines_tell_next(worker->context.engines, &engine, &url, &use)) {
        if (!lane_can_send(&worker->lane) || !send_sight(worker, url, &use))
            return;
        engines_tell_done(engine);
    }
}
