#include "broker/shell/inner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "broker/net/multipart.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { POLL_MAX_MS = 1000 };

/* ---- opening -------------------------------------------------------------------------- */

/* libzmq takes some descriptors for each socket and aborts or refuses without them. */
static void raise_limits(void *context)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    int most = zmq_ctx_get(context, ZMQ_SOCKET_LIMIT);
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, most < 65535 ? most : 65535);
}

/* Before any thread is made, so that every thread has them blocked. */
static int open_signals(struct shell *shell, struct fail *fail)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &ours, NULL) == 0)
        shell->signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return shell->signal_fd >= 0 ? 0 : fail_set(fail, -errno, "signalfd: %s", strerror(errno));
}

static int open_ledger(struct shell *shell, const struct shell_options *options, struct fail *fail)
{
    struct ledger_options ledger = options->ledger;
    ledger.forgotten_max = options->settings.forgotten_max;
    int code = ledger_open(&shell->ledger, &ledger, fail);
    if (code || options->ledger.durability == LEDGER_NONE)
        return code;
    shell->ledger_dir = options->ledger.dir;
    shell->disk_reserve_bytes = options->disk_reserve_bytes;
    backups_clean(shell->ledger_dir);
    return 0;
}

static int open_sockets(struct shell *shell, const struct shell_options *options, struct fail *fail)
{
    shell->context = zmq_ctx_new();
    if (!shell->context)
        return fail_set(fail, -errno, "cannot start ZeroMQ: %s", zmq_strerror(errno));
    raise_limits(shell->context);
    int code = auth_open(&shell->auth, shell->context, options->keys_dir, fail);
    if (code)
        return code;
    shell->conns = conn_limit_create(shell->context, options->connections_max);
    if (!shell->conns)
        return fail_set(fail, -ENOMEM, "out of memory");
    multipart_follow_own();
    shell->lanes = lanes_create(shell->context, &shell->auth, (struct lane_rules){options->lanes, options->ipc_dir});
    if (!shell->lanes)
        return fail_set(fail, -errno, "cannot watch lanes: %s", strerror(errno));
    return shell_bind(shell, options, fail);
}

int shell_open(struct shell **ret, const struct shell_options *options, struct fail *fail)
{
    struct shell *shell = calloc(1, sizeof(*shell));
    if (!shell)
        return fail_set(fail, -ENOMEM, "out of memory");
    shell->signal_fd = -1;
    shell->ipc_lock = lock_none();
    shell->inbound = calloc(INBOUND_MAX, sizeof(*shell->inbound));
    shell->turns[PLACE_FRONT] = turns_create();
    shell->turns[PLACE_SINK] = turns_create();
    bool has_memory = shell->inbound && shell->turns[PLACE_FRONT] && shell->turns[PLACE_SINK];
    int code = has_memory ? 0 : fail_set(fail, -ENOMEM, "out of memory");
    if (code == 0)
        code = open_signals(shell, fail);
    if (code == 0)
        code = open_ledger(shell, options, fail);
    if (code == 0)
        code = shell_start_layer_gc(shell, options, fail);
    if (code == 0)
        code = open_sockets(shell, options, fail);
    if (code == 0)
        code = shell_restore(shell, options, fail);
    if (code) {
        shell_close(&shell);
        return code;
    }
    *ret = shell;
    return 0;
}

void shell_close(struct shell **closing)
{
    struct shell *shell = take_ptr(closing);
    if (!shell)
        return;
    shell_cancel_backup(shell);
    layer_gc_stop(&shell->layer_gc);
    lanes_destroy(&shell->lanes);
    shell_drop_waiting(shell);
    shell_unbind(shell);
    auth_close(&shell->auth);
    conn_limit_destroy(&shell->conns);
    if (shell->context)
        zmq_ctx_term(shell->context);
    core_destroy(&shell->core);
    ledger_close(&shell->ledger);
    buffer_finish(&shell->out);
    buffer_finish(&shell->backup_client);
    if (shell->signal_fd >= 0)
        close(shell->signal_fd);
    lock_let_go(&shell->ipc_lock);
    free(shell->inbound);
    free(shell);
}

const struct shell_endpoints *shell_bound(const struct shell *shell) { return &shell->bound; }
uint64_t shell_epoch(const struct shell *shell) { return shell->epoch; }

/* ---- serving ------------------------------------------------------------------------------- */

static void take_signals(struct shell *shell)
{
    struct signalfd_siginfo info;
    while (read(shell->signal_fd, &info, sizeof(info)) == sizeof(info)) {
        log_event(LOG_INFO, "broker.stopping", "signal=%u", info.ssi_signo);
        shell->stopping = true;
    }
}

static void take_broken_lanes(struct shell *shell, int64_t now_ms)
{
    char worker[LANE_NAME_SIZE];
    const char *why;
    while (lanes_take_broken(shell->lanes, now_ms, worker, &why)) {
        if (core_lane_broke(shell->core, now_ms, slice_from_str(worker)))
            log_event(LOG_WARN, "broker.lane-broke", "worker=%s why=\"%s\" action=jobs-requeued", worker, why);
        else
            log_event(LOG_INFO, "broker.worker-left", "worker=%s", worker);
    }
}

static void take_lane_news(struct shell *shell, int64_t now_ms)
{
    struct lane_news news;
    while (lanes_take_news(shell->lanes, &news)) {
        if (news.why[0])
            log_event(LOG_WARN, "broker.lane-waits", "worker=%s why=\"%s\" action=no-jobs", news.worker, news.why);
        else
            log_event(LOG_INFO, "broker.lane-connected", "worker=%s", news.worker);
        core_lane_waits(shell->core, now_ms, slice_from_str(news.worker), slice_from_str(news.why));
    }
}

/* Waits for something to do. False when nothing is there now. */
static bool await(struct shell *shell, bool *ret_backup_ended)
{
    enum { SIGNALS = 6, BACKUP = 8 };
    zmq_pollitem_t items[] = {{shell->front, 0, ZMQ_POLLIN, 0},
                              {shell->sink, 0, ZMQ_POLLIN, 0},
                              {feed_socket(shell->feed), 0, ZMQ_POLLIN, 0},
                              {conn_limit_monitor(shell->conns, PLACE_FRONT), 0, ZMQ_POLLIN, 0},
                              {conn_limit_monitor(shell->conns, PLACE_SINK), 0, ZMQ_POLLIN, 0},
                              {conn_limit_monitor(shell->conns, PLACE_FEED), 0, ZMQ_POLLIN, 0},
                              {NULL, shell->signal_fd, ZMQ_POLLIN, 0},
                              {NULL, lanes_fd(shell->lanes), ZMQ_POLLIN, 0},
                              {NULL, shell->backup ? backup_fd(shell->backup) : -1, ZMQ_POLLIN, 0}};
    int64_t wait_ms = shell->due_ms - clock_ms();
    wait_ms = wait_ms < 0 ? 0 : wait_ms > POLL_MAX_MS ? POLL_MAX_MS : wait_ms;
    bool has_waiting = shell_has_waiting(shell);
    if (ledger_has_chores(shell->ledger) || has_waiting)
        wait_ms = 0;
    int ready = zmq_poll(items, shell->backup ? BACKUP + 1 : BACKUP, wait_ms);
    if (items[SIGNALS].revents)
        take_signals(shell);
    *ret_backup_ended = shell->backup && items[BACKUP].revents;
    return ready != 0 || has_waiting;
}

/* Stopped, swapped out, held up by its disk: it was to be at work long ago. */
static void notice_stall(struct shell *shell, int64_t now_ms)
{
    int64_t stalled_ms = shell->due_ms ? now_ms - shell->due_ms : 0;
    if (stalled_ms < STALLED_MS)
        return;
    log_event(LOG_WARN, "broker.stalled", "ms=%lld action=deadlines-moved", (long long)stalled_ms);
    core_stalled(shell->core, now_ms, stalled_ms);
}

static int cycle(struct shell *shell, struct fail *fail)
{
    int64_t now_ms = clock_ms(), wall_ms = clock_wall_ms();
    notice_stall(shell, now_ms);
    take_broken_lanes(shell, now_ms);
    take_lane_news(shell, now_ms);
    shell_take_in(shell, now_ms, wall_ms);
    shell->is_drained[PLACE_FEED] = feed_take(shell->feed, shell->core, shell->conns, now_ms);
    conn_limit_take(shell->conns, shell->is_drained, now_ms);
    shell->due_ms = core_tick(shell->core, now_ms, wall_ms);
    core_dispatch(shell->core, now_ms);
    int code = ledger_standing(shell->ledger, fail); /* a look into it may have failed */
    if (code == 0)
        code = shell_carry_out(shell, fail);
    shell_drop_inbound(shell);
    shell_watch_layer_gc(shell, now_ms);
    return code ? code : shell_watch_disk(shell, now_ms, fail);
}

int shell_serve(struct shell *shell, struct fail *fail)
{
    int code = 0;
    while (code == 0 && !shell->stopping) {
        bool backup_ended, idle = !await(shell, &backup_ended);
        code = cycle(shell, fail);
        if (code == 0 && backup_ended)
            code = shell_end_backup(shell, fail);
        idle |= shell->disk_is_low; /* submits are refused: to make room comes first */
        if (code == 0 && idle && ledger_has_chores(shell->ledger))
            code = ledger_do_chores(shell->ledger, fail);
    }
    return code;
}
