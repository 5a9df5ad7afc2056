#include "broker/net/lanes.h"

#include <czmq.h>
#include <errno.h>
#include <sys/epoll.h>

#include "broker/net/flush_order.h"
#include "broker/net/lane_bundle.h"
#include "broker/net/lane_options.h"
#include "broker/net/zmq_frame.h"
#include "broker/net/names.h"
#include "common/containers/list.h"

enum { PATIENCE_CHECK_MS = 500 };

struct lane {
    char worker[LANE_NAME_SIZE];
    void *push;
    struct handshakes handshakes;
    int monitor_fd, epoll_fd; /* the first is watched by the second, or -1 */
    int64_t opened_ms;
    struct lane_limits limits;
    struct lane_bundle bundle; /* that is being made */
    struct flush_turn turn;    /* while it holds something */
    bool connected, broken;
    bool is_full, is_late;              /* late: told of as not connected */
    enum handshake failed;              /* why it never connected */
    bool waits;                         /* for its host's name: there is no socket yet */
    enum name_state told;               /* of that name */
    struct lane_address given, address; /* a name, and what it means */
};

/* Lanes, by their workers' ids. `broken`: ids that lanes_take_broken tells next; `news`: what lanes_take_news does. */
struct lanes {
    void *context;
    const struct auth *auth;
    struct lane_rules rules;
    int epoll_fd;
    zhashx_t *all;
    zlistx_t *broken, *news;
    struct flush_order order;
    struct names *names; /* its descriptor is in the epoll set, as nobody's */
    size_t waiting;      /* lanes */
    int64_t patience_ms; /* when lanes that do not connect are looked for next */
};

/* ---- life ------------------------------------------------------------------------------ */

static void lane_disconnect(struct lane *lane)
{
    if (lane->monitor_fd >= 0) /* libzmq closes it later, from another thread */
        epoll_ctl(lane->epoll_fd, EPOLL_CTL_DEL, lane->monitor_fd, NULL);
    lane->monitor_fd = -1;
    handshakes_close(&lane->handshakes, lane->push);
    if (lane->push)
        zmq_close(lane->push);
    lane->push = NULL;
}

static void lane_destroy(void **item)
{
    struct lane *lane = *item;
    *item = NULL;
    if (!lane)
        return;
    flush_order_remove(&lane->turn);
    lane_bundle_finish(&lane->bundle);
    lane_disconnect(lane);
    free(lane);
}

static void name_destroy(void **item)
{
    free(*item);
    *item = NULL;
}

struct lanes *lanes_create(void *context, const struct auth *auth, struct lane_rules rules)
{
    struct lanes *lanes = calloc(1, sizeof(*lanes));
    if (!lanes)
        return NULL;
    lanes->context = context;
    lanes->auth = auth;
    flush_order_init(&lanes->order);
    lanes->rules = rules;
    lanes->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    lanes->all = zhashx_new();
    lanes->broken = zlistx_new();
    lanes->news = zlistx_new();
    lanes->names = names_create();
    struct epoll_event event = {.events = EPOLLIN};
    if (lanes->epoll_fd < 0 || !lanes->all || !lanes->broken || !lanes->news || !lanes->names ||
        epoll_ctl(lanes->epoll_fd, EPOLL_CTL_ADD, names_fd(lanes->names), &event) != 0) {
        lanes_destroy(&lanes);
        return NULL;
    }
    zhashx_set_destructor(lanes->all, lane_destroy);
    zlistx_set_destructor(lanes->broken, name_destroy);
    zlistx_set_destructor(lanes->news, name_destroy);
    return lanes;
}

void lanes_destroy(struct lanes **closing)
{
    struct lanes *lanes = *closing;
    *closing = NULL;
    if (!lanes)
        return;
    zhashx_destroy(&lanes->all);
    zlistx_destroy(&lanes->broken);
    zlistx_destroy(&lanes->news);
    names_destroy(&lanes->names);
    if (lanes->epoll_fd >= 0)
        close(lanes->epoll_fd);
    free(lanes);
}

int lanes_fd(const struct lanes *lanes) { return lanes->epoll_fd; }
size_t lanes_count(const struct lanes *lanes) { return zhashx_size(lanes->all); }

static const char *name_of(struct slice worker, char name[LANE_NAME_SIZE])
{
    size_t len = worker.len < LANE_NAME_SIZE ? worker.len : LANE_NAME_SIZE - 1;
    memcpy(name, worker.data ? worker.data : (const uint8_t *)"", len);
    name[len] = '\0';
    return name;
}

/* ---- what becomes of connections ------------------------------------------------------------ */

static void break_name(struct lanes *lanes, const char *worker)
{
    char *copy = strdup(worker);
    if (copy && !zlistx_add_end(lanes->broken, copy))
        free(copy);
}

static void lane_break(struct lanes *lanes, struct lane *lane)
{
    if (lane->broken)
        return;
    lane->broken = true;
    break_name(lanes, lane->worker);
}

/* One that only broke off is tried again by libzmq, until patience runs out. */
static void fail_handshake(struct lanes *lanes, struct lane *lane, enum handshake failed)
{
    lane->failed = failed;
    if (failed != HANDSHAKE_BROKEN)
        lane_break(lanes, lane);
}

/* What is to be told of a lane: why it is not connected, or "" as it is. */
static void add_news(struct lanes *lanes, const struct lane *lane, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add_news(struct lanes *lanes, const struct lane *lane, const char *format, ...)
{
    struct lane_news *news = calloc(1, sizeof(*news));
    if (!news)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(news->why, sizeof(news->why), format, args);
    va_end(args);
    strcpy(news->worker, lane->worker);
    if (!zlistx_add_end(lanes->news, news))
        free(news);
}

static void set_connected(struct lanes *lanes, struct lane *lane)
{
    if (!lane->connected)
        add_news(lanes, lane, "%s", "");
    lane->connected = true;
}

static void hear(struct lanes *lanes, struct lane *lane)
{
    for (enum handshake news; (news = handshakes_next(&lane->handshakes)) != HANDSHAKE_NONE;) {
        if (news == HANDSHAKE_DONE)
            set_connected(lanes, lane);
        else if (news != HANDSHAKE_LOST && !lane->connected)
            fail_handshake(lanes, lane, news);
        else if (lane->connected)
            lane_break(lanes, lane);
    }
}

/* ---- opening ---------------------------------------------------------------------------- */

/* What becomes of the connection is heard through the epoll set. */
static int watch(struct lanes *lanes, struct lane *lane)
{
    int code = handshakes_open(&lane->handshakes, lanes->context, lane->push);
    if (code)
        return code;
    int fd;
    size_t size = sizeof(fd);
    if (zmq_getsockopt(lane->handshakes.monitor, ZMQ_FD, &fd, &size) != 0)
        return -errno;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane};
    if (epoll_ctl(lanes->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        return -errno;
    lane->monitor_fd = fd;
    hear(lanes, lane); /* the descriptor tells of changes only, from the last look on */
    return 0;
}

static int lane_connect(struct lanes *lanes, struct lane *lane, int64_t now_ms)
{
    char endpoint[LANE_ENDPOINT_SIZE];
    int is_v6 = strchr(lane->address.host, ':') != NULL;
    lane_address_format(&lane->address, endpoint);
    lane->opened_ms = now_ms;
    lane->push = zmq_socket(lanes->context, ZMQ_PUSH);
    if (!lane->push)
        return -errno;
    int code = lane_options_set(lane->push, lane->limits.messages_max);
    if (code == 0)
        code = auth_arm(lanes->auth, lane->push, ZAP_LANE);
    if (code == 0)
        code = watch(lanes, lane);
    if (code == 0 && zmq_setsockopt(lane->push, ZMQ_IPV6, &is_v6, sizeof(is_v6)) != 0)
        code = -errno;
    if (code == 0 && zmq_connect(lane->push, endpoint) != 0)
        code = -errno;
    return code;
}

/* ---- names of hosts -------------------------------------------------------------------------- */

static void tell(struct lanes *lanes, const struct lane *lane, const struct name_answer *answer)
{
    if (answer->state == NAME_ASKED)
        add_news(lanes, lane, "the name %s of its lane is being looked up", lane->address.host);
    else if (answer->state == NAME_FAILED)
        add_news(lanes, lane,
                 "the name %s of its lane means nothing to the broker's machine (%s): mend the name service there, or "
                 "start the worker with --advertise and an address",
                 lane->address.host, answer->why);
}

/* Connects a lane that waits, if its host's address is known now. Negative errno: it cannot be. */
static int settle(struct lanes *lanes, struct lane *lane, bool is_new, int64_t now_ms)
{
    struct name_answer answer = names_find(lanes->names, lane->address.host, now_ms);
    bool is_found = answer.state == NAME_FOUND;
    if (is_new || lane->told != answer.state)
        tell(lanes, lane, &answer);
    lane->told = answer.state;
    lane->waits = !is_found;
    lanes->waiting += (size_t)(is_new ? lane->waits : -is_found);
    if (!is_found)
        return 0;
    lane->address.is_name = false;
    snprintf(lane->address.host, sizeof(lane->address.host), "%s", answer.address);
    return lane_connect(lanes, lane, now_ms);
}

static void settle_all(struct lanes *lanes, int64_t now_ms)
{
    if (lanes->waiting == 0)
        return;
    for (struct lane *lane = zhashx_first(lanes->all); lane; lane = zhashx_next(lanes->all))
        if (lane->waits && settle(lanes, lane, false, now_ms) != 0)
            lane_break(lanes, lane);
}

bool lanes_take_news(struct lanes *lanes, struct lane_news *ret)
{
    for (struct lane_news *news; (news = zlistx_detach(lanes->news, NULL)); free(news)) {
        const struct lane *lane = zhashx_lookup(lanes->all, news->worker);
        if (!lane || lane->connected == (news->why[0] != '\0'))
            continue; /* opened again since */
        *ret = *news;
        free(news);
        return true;
    }
    return false;
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static void drop(struct lanes *lanes, const char *name)
{
    const struct lane *lane = zhashx_lookup(lanes->all, name);
    lanes->waiting -= lane && lane->waits;
    zhashx_delete(lanes->all, name);
}

/* The core still believes in this lane, so it must hear of it. */
static int fail_open(struct lanes *lanes, const char *worker, int code, struct fail *fail, const char *why)
{
    break_name(lanes, worker);
    return fail_set(fail, code, "the lane of worker %s cannot be opened: %s", worker, why);
}

/* Where the endpoint leads, if that is where this worker's lane may lead. */
static int find_address(const struct lanes *lanes, struct slice endpoint, struct slice peer, struct lane_address *ret,
                        struct fail *fail)
{
    char from[LANE_HOST_SIZE] = "";
    if (peer.len && peer.len < sizeof(from))
        memcpy(from, peer.data, peer.len);
    int code = lane_address_parse(endpoint, ret, fail);
    return code ? code : lane_address_settle(ret, &lanes->rules, from, fail);
}

int lanes_judge(const struct lanes *lanes, struct slice endpoint, struct slice peer, struct fail *fail)
{
    struct lane_address address;
    return find_address(lanes, endpoint, peer, &address, fail);
}

int lanes_open(struct lanes *lanes, struct slice worker, struct slice endpoint, struct slice peer,
               struct lane_limits limits, int64_t now_ms, struct fail *fail)
{
    char name[LANE_NAME_SIZE];
    struct lane_address address;
    struct fail why;
    drop(lanes, name_of(worker, name));
    int code = find_address(lanes, endpoint, peer, &address, &why);
    if (code)
        return fail_open(lanes, name, code, fail, why.text);
    if (zhashx_size(lanes->all) >= LANES_MAX)
        return fail_open(lanes, name, -EMFILE, fail, "no more lanes fit");
    struct lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return fail_open(lanes, name, -ENOMEM, fail, "out of memory");
    strcpy(lane->worker, name);
    lane->epoll_fd = lanes->epoll_fd;
    lane->monitor_fd = -1;
    lane->given = lane->address = address;
    lane->limits = limits;
    code = address.is_name ? settle(lanes, lane, true, now_ms) : lane_connect(lanes, lane, now_ms);
    if (code == 0 && zhashx_insert(lanes->all, name, lane) != 0)
        code = -ENOMEM;
    if (code == 0)
        return 0;
    lanes->waiting -= lane->waits;
    lane_destroy((void **)&lane);
    return fail_open(lanes, name, code, fail, zmq_strerror(-code));
}

static int lane_send(struct lanes *lanes, struct lane *lane, zmq_msg_t *frame, struct fail *fail)
{
    if (zmq_frame_send(lane->push, frame, 0))
        return 0;
    int code = -errno;
    if (code == -EAGAIN) {
        hear(lanes, lane); /* one whose handshake failed takes nothing either, and has that for its reason */
        lane->is_full = !lane->broken;
        lane_break(lanes, lane);
    }
    return fail_set(fail, code, "cannot send to worker %s: %s", lane->worker, zmq_strerror(-code));
}

static int lane_flush(struct lanes *lanes, struct lane *lane, struct fail *fail)
{
    if (!lane->bundle.bytes.len)
        return 0;
    zmq_msg_t frame;
    const bool has_memory = lane_bundle_take(&lane->bundle, &frame);
    flush_order_remove(&lane->turn);
    return has_memory ? lane_send(lanes, lane, &frame, fail) : fail_set(fail, -ENOMEM, "out of memory");
}

void lanes_flush(struct lanes *lanes, int64_t now_ms)
{
    struct flush_turn *turn;
    while ((turn = flush_order_find(&lanes->order, now_ms)))
        lane_flush(lanes, container_of(turn, struct lane, turn), NULL); /* one that is full breaks by that */
}

int64_t lanes_due_ms(const struct lanes *lanes) { return flush_order_due_ms(&lanes->order); }

int lanes_send(struct lanes *lanes, struct slice worker, struct slice task, zmq_msg_t *frame, int64_t due_ms,
               struct fail *fail)
{
    char name[LANE_NAME_SIZE];
    struct lane *lane = zhashx_lookup(lanes->all, name_of(worker, name));
    if (!lane || lane->waits || (lane->is_late && !lane->connected) || lane->is_full) {
        zmq_msg_close(frame);
        return fail_set(fail, -ENOENT, "there is no lane to worker %s", name);
    }
    const struct slice message = zmq_frame_peek(frame);
    const bool bundles = lane->limits.bundles && (message.len <= BUNDLED_MAX || task.len);
    if (!bundles || !lane_bundle_takes(&lane->bundle, task, message))
        lane_flush(lanes, lane, NULL);
    if (!bundles)
        return lane_send(lanes, lane, frame, fail);
    const bool has_memory = lane_bundle_add(&lane->bundle, task, message);
    zmq_msg_close(frame);
    if (has_memory)
        flush_order_put(&lanes->order, &lane->turn, due_ms);
    return has_memory ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

void lanes_close(struct lanes *lanes, struct slice worker)
{
    char name[LANE_NAME_SIZE];
    drop(lanes, name_of(worker, name));
}

/* ---- telling ----------------------------------------------------------------------------- */

static void hear_all(struct lanes *lanes, int64_t now_ms)
{
    struct epoll_event events[64];
    int count = epoll_wait(lanes->epoll_fd, events, 64, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr) {
            hear(lanes, events[i].data.ptr);
            continue;
        }
        names_hear(lanes->names);
        settle_all(lanes, now_ms);
    }
}

static void tell_late(struct lanes *lanes, struct lane *lane)
{
    char endpoint[LANE_ENDPOINT_SIZE];
    lane_address_format(&lane->address, endpoint);
    lane->is_late = true;
    add_news(lanes, lane,
             "the broker cannot connect to its lane %s: let connections from the broker's machine to that port "
             "through, or start the worker with --advertise and an address that leads there",
             endpoint);
}

/* A name may mean another address by now. */
static void look_up_again(struct lanes *lanes, struct lane *lane, int64_t now_ms)
{
    lane_disconnect(lane);
    lane->address = lane->given;
    if (settle(lanes, lane, true, now_ms) != 0)
        lane_break(lanes, lane);
}

static void lose_patience_with(struct lanes *lanes, struct lane *lane, int64_t now_ms)
{
    if (!lane->is_late && now_ms - lane->opened_ms > LANE_LATE_MS)
        tell_late(lanes, lane);
    if (lane->given.is_name && now_ms - lane->opened_ms > LANE_PATIENCE_MS)
        look_up_again(lanes, lane, now_ms);
}

static void lose_patience(struct lanes *lanes, int64_t now_ms)
{
    if (now_ms < lanes->patience_ms)
        return;
    lanes->patience_ms = now_ms + PATIENCE_CHECK_MS;
    settle_all(lanes, now_ms);
    for (struct lane *lane = zhashx_first(lanes->all); lane; lane = zhashx_next(lanes->all))
        if (!lane->connected && !lane->waits && !lane->broken)
            lose_patience_with(lanes, lane, now_ms);
}

static const char *why_broken(const struct lane *lane)
{
    if (!lane)
        return "it cannot be opened";
    if (lane->is_full)
        return "so much waits in it that nobody can be reading it";
    if (lane->connected)
        return "its connection ended";
    switch (lane->failed) {
    case HANDSHAKE_REFUSED: return "its key is not a worker's that this broker knows; see DIR/trusted/worker";
    case HANDSHAKE_MISMATCH: return "one of it and this broker has keys and the other has not; see --key and --keys";
    case HANDSHAKE_BAD_KEY: return "its key file names another broker than this one";
    default: return "its endpoint does not answer; see the worker's --advertise";
    }
}

void lanes_hear(struct lanes *lanes, int64_t now_ms)
{
    hear_all(lanes, now_ms);
    lose_patience(lanes, now_ms);
}

bool lanes_have_broken(const struct lanes *lanes) { return zlistx_size(lanes->broken) > 0; }

bool lanes_take_broken(struct lanes *lanes, char ret_worker[LANE_NAME_SIZE], const char **ret_why)
{
    char *worker;
    while ((worker = zlistx_detach(lanes->broken, NULL))) {
        const struct lane *lane = zhashx_lookup(lanes->all, worker);
        bool is_stale = lane && !lane->broken; /* opened again since */
        *ret_why = why_broken(lane);
        snprintf(ret_worker, LANE_NAME_SIZE, "%s", worker);
        free(worker);
        if (!is_stale)
            return true;
    }
    return false;
}
