#include "broker/io/inner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "broker/net/multipart.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/log.h"

enum { POLL_MAX_MS = 1000, COMPANY_US = 200 /* so long a batch waits for the next message to be in it */ };

/* ---- opening -------------------------------------------------------------------------- */

/* libzmq takes some descriptors for each socket and aborts or refuses without them. */
static void raise_limits(void *context)
{
    descriptors_allow_all();
    int most = zmq_ctx_get(context, ZMQ_SOCKET_LIMIT);
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, most < 65535 ? most : 65535);
}

/* Before any thread is made, so that every thread has them blocked. */
static int open_signals(struct io *io, struct fail *fail)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) == 0)
        io->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return io->signal_fd >= 0 ? 0 : fail_set(fail, -errno, "signalfd: %s", strerror(errno));
}

static int open_ledger(struct io *io, const struct io_options *options, struct fail *fail)
{
    struct ledger_options ledger = options->ledger;
    ledger.forgotten_max = options->settings.forgotten_max;
    int code = ledger_open(&io->ledger, &ledger, fail);
    if (code || options->ledger.durability == LEDGER_NONE)
        return code;
    io->ledger_dir = options->ledger.dir;
    io->disk_reserve_bytes = options->disk_reserve_bytes;
    backups_clean(io->ledger_dir);
    return 0;
}

static int open_sockets(struct io *io, const struct io_options *options, struct fail *fail)
{
    io->context = zmq_ctx_new();
    if (!io->context)
        return fail_set(fail, -errno, "cannot start ZeroMQ: %s", zmq_strerror(errno));
    raise_limits(io->context);
    int code = auth_open(&io->auth, io->context, options->keys_dir, fail);
    if (code)
        return code;
    io->conns = conn_limit_create(io->context, options->connections_max);
    if (!io->conns)
        return fail_set(fail, -ENOMEM, "out of memory");
    multipart_follow_own();
    io->lanes = lanes_create(io->context, &io->auth, (struct lane_rules){options->lanes, options->ipc_dir});
    if (!io->lanes)
        return fail_set(fail, -errno, "cannot watch lanes: %s", strerror(errno));
    return io_bind(io, options, fail);
}

int io_open(struct io **ret, const struct io_options *options, struct fail *fail)
{
    struct io *io = calloc(1, sizeof(*io));
    if (!io)
        return fail_set(fail, -ENOMEM, "out of memory");
    io->signal_fd = -1;
    io->moment_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    io->batch_number = 1;
    io_note_start(io);
    io->ipc_lock = lock_none();
    TAILQ_INIT(&io->looks);
    STAILQ_INIT(&io->chore.jobs);
    STAILQ_INIT(&io->chore.answers);
    io->filling = batch_create();
    io->spare = batch_create();
    io->turns[PLACE_FRONT] = turns_create();
    io->turns[PLACE_SINK] = turns_create();
    io->viewers = viewers_create();
    io->promises = promises_create();
    bool has_memory = io->filling && io->spare && io->turns[PLACE_FRONT] && io->turns[PLACE_SINK] && io->viewers &&
                      io->promises;
    int code = has_memory ? 0 : fail_set(fail, -ENOMEM, "out of memory");
    if (code == 0 && io->moment_fd < 0)
        code = fail_set(fail, -errno, "timerfd: %s", strerror(errno));
    if (code == 0)
        code = open_signals(io, fail);
    if (code == 0)
        code = open_ledger(io, options, fail);
    if (code == 0)
        code = io_start_layer_gc(io, options, fail);
    if (code == 0)
        code = open_sockets(io, options, fail);
    if (code == 0)
        code = io_restore(io, options, fail);
    if (code == 0)
        code = io_start_ledger_thread(io, fail);
    if (code) {
        io_close(&io);
        return code;
    }
    *ret = io;
    return 0;
}

void io_close(struct io **closing)
{
    struct io *io = take_ptr(closing);
    if (!io)
        return;
    io_stop_ledger_thread(io);
    io_cancel_backup(io);
    layer_gc_stop(&io->layer_gc);
    lanes_destroy(&io->lanes);
    io_drop_waiting(io);
    promises_destroy(&io->promises);
    io_unbind(io);
    auth_close(&io->auth);
    conn_limit_destroy(&io->conns);
    if (io->context)
        zmq_ctx_term(io->context);
    core_destroy(&io->core);
    ledger_close(&io->ledger);
    viewers_destroy(&io->viewers);
    buffer_finish(&io->out);
    buffer_finish(&io->backup_client);
    if (io->signal_fd >= 0)
        close(io->signal_fd);
    if (io->moment_fd >= 0)
        close(io->moment_fd);
    lock_let_go(&io->ipc_lock);
    batch_destroy(&io->filling);
    batch_destroy(&io->spare);
    free(io);
}

const struct io_endpoints *io_bound(const struct io *io) { return &io->bound; }
uint64_t io_epoch(const struct io *io) { return io->epoch; }

/* ---- serving ------------------------------------------------------------------------------- */

static void take_signals(struct io *io)
{
    struct signalfd_siginfo info;
    while (read(io->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        log_event(LOG_INFO, "broker.stopping", "signal=%u", info.ssi_signo);
        io->stopping = true;
    }
}

/*
 * Lanes were heard before SINK was read: what a worker sent before its lane ended has then come, and once all of that
 * was handled it is known whether the worker had left. A SINK that is never read to its end puts that off no longer
 * than GOODBYE_MS.
 */
static bool has_heard_goodbyes(struct io *io, int64_t now_ms)
{
    if (!lanes_have_broken(io->lanes))
        io->broken_since_ms = 0;
    else if (!io->broken_since_ms)
        io->broken_since_ms = now_ms;
    return (io->is_drained[PLACE_SINK] && !turns_count(io->turns[PLACE_SINK])) ||
           now_ms - io->broken_since_ms >= GOODBYE_MS;
}

/* What is heard of a lane that is to be opened anew or closed is of the old one. */
static bool lanes_are_behind(const struct io *io) { return core_lane_changes(io->core) != io->lane_changes; }

static void take_broken_lanes(struct io *io, int64_t now_ms)
{
    char worker[LANE_NAME_SIZE];
    const char *why;
    if (lanes_are_behind(io) || !has_heard_goodbyes(io, now_ms))
        return;
    while (lanes_take_broken(io->lanes, worker, &why)) {
        if (core_lane_broke(io->core, now_ms, slice_from_str(worker)))
            log_event(LOG_WARN, "broker.lane-broke", "worker=%s why=\"%s\" action=jobs-requeued", worker, why);
        else
            log_event(LOG_INFO, "broker.worker-left", "worker=%s", worker);
    }
}

static void take_lane_news(struct io *io, int64_t now_ms)
{
    struct lane_news news;
    while (!lanes_are_behind(io) && lanes_take_news(io->lanes, &news)) {
        if (news.why[0])
            log_event(LOG_WARN, "broker.lane-waits", "worker=%s why=\"%s\" action=no-jobs", news.worker, news.why);
        else
            log_event(LOG_INFO, "broker.lane-connected", "worker=%s", news.worker);
        core_lane_waits(io->core, now_ms, slice_from_str(news.worker), slice_from_str(news.why));
    }
}

/* Has the timer say when so much time has passed; 0: it is not to say anything. */
static void arm(int timer_fd, long us)
{
    const struct itimerspec at = {.it_value = {.tv_nsec = us * 1000}};
    timerfd_settime(timer_fd, 0, &at, NULL);
}

/* Waits for something to do. False when nothing is there now. */
static bool await(struct io *io, bool *ret_backup_ended)
{
    enum { FRONT = 0, SIGNALS = 6, MOMENT = 8, ALWAYS = 9, ITEMS_MAX = 12 };
    zmq_pollitem_t items[ITEMS_MAX] = {{io->front, 0, ZMQ_POLLIN, 0},
                                       {io->sink, 0, ZMQ_POLLIN, 0},
                                       {feed_socket(io->feed), 0, ZMQ_POLLIN, 0},
                                       {conn_limit_monitor(io->conns, PLACE_FRONT), 0, ZMQ_POLLIN, 0},
                                       {conn_limit_monitor(io->conns, PLACE_SINK), 0, ZMQ_POLLIN, 0},
                                       {conn_limit_monitor(io->conns, PLACE_FEED), 0, ZMQ_POLLIN, 0},
                                       {NULL, io->signal_fd, ZMQ_POLLIN, 0},
                                       {NULL, lanes_fd(io->lanes), ZMQ_POLLIN, 0},
                                       {NULL, io->moment_fd, ZMQ_POLLIN, 0}};
    int count = ALWAYS;
    if (ledger_sync_fd(io->ledger) >= 0)
        items[count++] = (zmq_pollitem_t){NULL, ledger_sync_fd(io->ledger), ZMQ_POLLIN, 0};
    if (io->ledger_thread)
        items[count++] = (zmq_pollitem_t){NULL, ledger_thread_fd(io->ledger_thread), ZMQ_POLLIN, 0};
    const long rest_us = (long)io_rest_us(io);
    if (turns_are_held(io->turns[PLACE_FRONT]) || rest_us)
        items[FRONT].events = 0; /* what comes waits as well */
    if (io->backup)
        items[count++] = (zmq_pollitem_t){NULL, backup_fd(io->backup), ZMQ_POLLIN, 0};
    const int64_t sync_ms = promises_due_ms(io), lanes_ms = lanes_due_ms(io->lanes);
    const int64_t send_ms = sync_ms < lanes_ms ? sync_ms : lanes_ms;
    int64_t wait_ms = (send_ms < io->due_ms ? send_ms : io->due_ms) - clock_ms();
    wait_ms = wait_ms < 0 ? 0 : wait_ms > POLL_MAX_MS ? POLL_MAX_MS : wait_ms;
    bool has_waiting = io_has_waiting(io) || promises_can_be_kept(io);
    if (io_has_chores(io) || has_waiting)
        wait_ms = 0;
    const bool gathers = io_is_gathering(io) && wait_ms > 0, rests = rest_us && wait_ms > 0;
    if (gathers || rests)
        arm(io->moment_fd, gathers ? COMPANY_US : rest_us);
    int ready = zmq_poll(items, count, wait_ms);
    const bool has_waited = items[MOMENT].revents != 0;
    if (has_waited)
        arm(io->moment_fd, 0);
    ready -= has_waited && gathers;
    io->is_quiet = has_waited && gathers && ready == 0;
    if (items[SIGNALS].revents)
        take_signals(io);
    *ret_backup_ended = io->backup && items[count - 1].revents;
    return ready != 0 || has_waiting;
}

/* Stopped, swapped out: it was to be at work long ago. Or its disk held up what was to leave. */
static void notice_stall(struct io *io, int64_t now_ms)
{
    const int64_t late_ms = io->due_ms ? now_ms - io->due_ms : 0;
    if (io->held_up_ms)
        core_held_up(io->core, now_ms, io->held_up_ms);
    io->held_up_ms = 0;
    if (late_ms < STALLED_MS)
        return;
    log_event(LOG_WARN, "broker.stalled", "ms=%lld action=deadlines-moved", (long long)late_ms);
    core_stalled(io->core, now_ms, late_ms);
}

static int cycle(struct io *io, struct fail *fail)
{
    int64_t now_ms = clock_ms(), wall_ms = clock_wall_ms();
    notice_stall(io, now_ms);
    lanes_hear(io->lanes, now_ms);
    take_lane_news(io, now_ms);
    io_take_in(io, now_ms, wall_ms);
    take_broken_lanes(io, now_ms);
    io->is_drained[PLACE_FEED] = feed_take(io->feed, io->core, io->conns, now_ms);
    if (atomic_load(&io->held.feed) > FEED_HELD_MAX)
        conn_limit_want_room(io->conns, PLACE_FEED);
    conn_limit_take(io->conns, io->is_drained, now_ms);
    io->due_ms = core_tick(io->core, now_ms, wall_ms);
    core_dispatch(io->core, now_ms);
    io_watch_disk(io, now_ms);
    int code = io_carry_out(io, fail);
    if (code == 0)
        code = promises_bound(io, fail);
    promises_sync(io, clock_ms());
    lanes_flush(io->lanes, now_ms);
    io_watch_layer_gc(io, now_ms);
    return code;
}

int io_serve(struct io *io, struct fail *fail)
{
    int code = 0;
    while (code == 0 && !io->stopping) {
        bool backup_ended, idle = !await(io, &backup_ended);
        code = promises_keep(io, fail);
        if (code == 0)
            code = cycle(io, fail);
        if (code == 0 && backup_ended)
            code = io_end_backup(io, fail);
        idle |= io->disk_is_low; /* submits are refused: to make room comes first */
        if (code == 0 && idle && io_has_chores(io))
            code = io_do_chores(io, fail);
    }
    if (code == 0)
        code = io_carry_out_all(io, fail);
    if (code == 0) {
        io_cancel_backup(io);
        code = promises_keep_all(io, fail);
    }
    lanes_flush(io->lanes, INT64_MAX);
    return code;
}
