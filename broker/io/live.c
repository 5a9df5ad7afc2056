/*
 * Events of rollouts, to those who watch them: for people, and so what is dropped first. What a viewer has not read is
 * counted, and beyond VIEWER_BYTES or VIEWER_COUNT the viewer gets no more before it has read; so one that stands still
 * takes no more than that, and no other viewer is the worse for it. A viewer is a connection, which may look at many
 * rollouts, as a gateway does.
 */
#include "broker/io/inner.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/cleanup.h"
#include "common/containers/table.h"

enum {
    VIEWER_BYTES = 8 << 20,
    VIEWER_COUNT = 512, /* below FRONT's send mark, so that answers have room behind them */
    ALL_BYTES = 64 << 20,
    IDLE_MS = 60000,
    SWEEP_MS = 10000
};

/* Owned by the table and, while it holds one of its frames, by libzmq: on any thread. */
struct viewer {
    atomic_int owners;
    atomic_size_t bytes;
    int64_t used_ms;
    uint32_t len;
    uint8_t client[];
};

struct viewers {
    struct table table;
    atomic_size_t bytes; /* of all */
    int64_t sweep_ms;
};

struct viewers *viewers_create(void) { return calloc(1, sizeof(struct viewers)); }

static void viewer_release(struct viewer *viewer)
{
    if (atomic_fetch_sub(&viewer->owners, 1) == 1)
        free(viewer);
}

void viewers_destroy(struct viewers **destroying)
{
    struct viewers *viewers = take_ptr(destroying);
    if (!viewers)
        return;
    size_t at = 0;
    for (struct viewer *viewer; (viewer = table_next(&viewers->table, &at));)
        viewer_release(viewer);
    table_finish(&viewers->table);
    free(viewers);
}

static struct slice name_of(const struct viewer *viewer) { return slice_of(viewer->client, viewer->len); }

static struct viewer *next_idle(const struct viewers *viewers, int64_t now_ms)
{
    size_t at = 0;
    struct viewer *viewer;
    while ((viewer = table_next(&viewers->table, &at)) &&
           (now_ms - viewer->used_ms < IDLE_MS || atomic_load(&viewer->owners) > 1))
        ;
    return viewer;
}

static void sweep(struct viewers *viewers, int64_t now_ms)
{
    if (now_ms < viewers->sweep_ms)
        return;
    viewers->sweep_ms = now_ms + SWEEP_MS;
    for (struct viewer *viewer; (viewer = next_idle(viewers, now_ms));)
        viewer_release(table_take(&viewers->table, name_of(viewer)));
}

/* NULL when out of memory. */
static struct viewer *find_viewer(struct viewers *viewers, struct slice client)
{
    const int64_t now_ms = clock_ms();
    sweep(viewers, now_ms);
    struct viewer *viewer = table_find(&viewers->table, client);
    if (!viewer) {
        viewer = calloc(1, sizeof(*viewer) + client.len);
        if (!viewer)
            return NULL;
        atomic_init(&viewer->owners, 1);
        viewer->len = (uint32_t)client.len;
        memcpy(viewer->client, client.data, client.len);
        if (!table_put(&viewers->table, name_of(viewer), viewer)) {
            free(viewer);
            return NULL;
        }
    }
    viewer->used_ms = now_ms;
    return viewer;
}

/* ---- frames that are counted until libzmq lets go of them ----------------------------- */

struct counted {
    struct viewers *viewers;
    struct viewer *viewer;
    size_t len;
    uint8_t bytes[];
};

static void counted_let_go(void *data, void *hint)
{
    struct counted *counted = hint;
    (void)data;
    atomic_fetch_sub(&counted->viewer->bytes, counted->len);
    atomic_fetch_sub(&counted->viewers->bytes, counted->len);
    viewer_release(counted->viewer);
    free(counted);
}

static bool counted_init(zmq_msg_t *frame, struct viewers *viewers, struct viewer *viewer, struct slice bytes)
{
    struct counted *counted = malloc(sizeof(*counted) + bytes.len);
    if (!counted)
        return false;
    counted->viewers = viewers;
    counted->viewer = viewer;
    counted->len = bytes.len;
    memcpy(counted->bytes, bytes.data, bytes.len);
    if (zmq_msg_init_data(frame, counted->bytes, bytes.len, counted_let_go, counted) != 0) {
        free(counted);
        return false;
    }
    atomic_fetch_add(&viewer->owners, 1);
    atomic_fetch_add(&viewer->bytes, bytes.len);
    atomic_fetch_add(&viewers->bytes, bytes.len);
    return true;
}

int io_send_events(struct io *io, const struct effect *effect, struct fail *fail)
{
    struct viewer *viewer = effect->bytes.len ? find_viewer(io->viewers, effect->client) : NULL;
    zmq_msg_t body;
    const bool has_room = viewer && atomic_load(&viewer->bytes) < VIEWER_BYTES &&
                          atomic_load(&io->viewers->bytes) < ALL_BYTES && atomic_load(&viewer->owners) <= VIEWER_COUNT;
    if (!has_room || !counted_init(&body, io->viewers, viewer, effect->bytes)) {
        core_tell_live_dropped(io->core, 1);
        return 0;
    }
    return promise_send(io, PROMISE_EVENTS, effect->client, &body, fail); /* behind the answer that it follows */
}
