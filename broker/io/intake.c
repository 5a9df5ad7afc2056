/* From frames to core_handle: reading, decoding, and refusing what cannot be read. */
#include "broker/io/inner.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"

enum { ROOM_RETRY_MS = 1000 };

/* ---- what is let go -------------------------------------------------------------------------- */

static void drop_waiting(struct io *io, struct waiting *waiting)
{
    look_end(&waiting->look, &io->looks);
    waiting_drop(waiting);
}

void io_drop_waiting(struct io *io)
{
    looks_release(&io->looks);
    for (int place = 0; place < PLACE_FEED; place++) {
        struct turn_inbound *turn;
        while (io->turns[place] && (turn = turns_take(io->turns[place], INT64_MAX)))
            if (turn->count == 0)
                drop_waiting(io, container_of(turn, struct waiting, turn));
        turns_destroy(&io->turns[place]);
    }
}

/* ---- refusing ------------------------------------------------------------------------------ */

/*
 * The tag of a message that could not be decoded, so that its sender knows which one is
 * meant: it is found where the first field is `tag`, as in every message of the table.
 */
static uint64_t peek_tag(struct slice bytes)
{
    static const char key[] = "\xa3tag";
    const uint8_t *at = memmem(bytes.data, bytes.len < 80 ? bytes.len : 80, key, sizeof(key) - 1);
    if (!at)
        return 0;
    size_t start = (size_t)(at - bytes.data) + sizeof(key) - 1;
    bool is_uint = start < bytes.len &&
                   (bytes.data[start] < 0x80 || (bytes.data[start] >= 0xcc && bytes.data[start] <= 0xcf));
    if (!is_uint)
        return 0;
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return got = msgpack_unpack_next(&unpacked, (const char *)bytes.data, bytes.len, &start);
    uint64_t tag = got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES ? unpacked.data.via.u64 : 0;
    msgpack_unpacked_destroy(&unpacked);
    return tag;
}

static void refuse_client(struct io *io, zmq_msg_t *from, struct slice bytes, const char *request,
                          const struct refusal *no)
{
    struct msg_refused refused = {.tag = peek_tag(bytes),
                                  .request = slice_from_str(request),
                                  .reason = slice_from_str(refusal_wire(no->reason)),
                                  .field = slice_from_str(no->field),
                                  .has_field = no->field[0] != '\0',
                                  .text = slice_from_str(no->text),
                                  .has_retry_after_ms = no->reason == REFUSAL_QUEUE_FULL,
                                  .retry_after_ms = ROOM_RETRY_MS};
    buffer_clear(&io->out);
    struct refusal ours;
    if (!message_encode(MSG_refused, &refused, &io->out, &ours)) {
        log_event(LOG_ERROR, "broker.refusal-unsendable", "reason=%s", ours.text);
        return;
    }
    zmq_msg_t answer;
    if (zmq_frame_send_copy(io->front, zmq_frame_peek(from), ZMQ_SNDMORE) && zmq_frame_init(&answer, &io->out, NULL))
        zmq_frame_send(io->front, &answer, 0);
}

static void refuse_inbound(struct io *io, struct inbound *inbound, struct slice bytes, const char *request,
                           const struct refusal *no, bool is_client)
{
    if (is_client) {
        refuse_client(io, &inbound->from, bytes, request, no);
        return;
    }
    io_complain(&io->bad_worker_message, "broker.bad-worker-message", no->text);
    core_tell_unread(io->core, clock_ms(), slice_from_str(inbound->name), slice_from_str(no->text));
}

/* ---- handling --------------------------------------------------------------------------------- */

/* What people look at makes room for all else. */
static bool live_has_no_room(const struct io *io) { return turns_count(io->turns[PLACE_SINK]) >= LIVE_WAITING_MAX; }

/* Whether it is a message that its sender may send; else says why not. */
static bool read_message(struct io *io, struct slice bytes, bool alone, bool is_client, enum message_id *ret_id,
                         union any_message *ret, const char **ret_request, struct refusal *no)
{
    *ret_request = "";
    if (!alone)
        return refuse(no, REFUSAL_MALFORMED, "",
                      "a message is one frame: use a DEALER or PUSH socket, with no empty delimiter");
    if (!message_peek(bytes, ret_id, no))
        return false;
    const struct message *message = message_get(*ret_id);
    *ret_request = message->wire;
    bool is_clients = message->sender == SENDER_CLIENT || message->sender == SENDER_ADMIN;
    if (is_client ? !is_clients : message->sender != SENDER_WORKER)
        return refuse(no, REFUSAL_UNKNOWN_MESSAGE, "", "%s is not sent to this socket", message->wire);
    if (!message_decode(*ret_id, bytes, ret, no))
        return false;
    return *ret_id != MSG_group_submit || task_summary_read(ret->group_submit.task, &io->summary, no);
}

/* Who sent it. */
static void find_caller(const struct io *io, struct inbound *inbound, bool is_client)
{
    struct caller *caller = &inbound->caller;
    *caller = (struct caller){.route = zmq_frame_peek(&inbound->from),
                              .peer = slice_from_str(zmq_msg_gets(&inbound->body, "Peer-Address")),
                              .lane_connects = true};
    inbound->may_come_in = auth_find_caller(&io->auth, &inbound->body, is_client ? ZAP_FRONT : ZAP_SINK, caller,
                                            inbound->name);
}

static bool may_come_in(const struct inbound *inbound, bool is_client, struct refusal *no)
{
    if (inbound->may_come_in)
        return true;
    return refuse(no, REFUSAL_NOT_ALLOWED, "", "this key is no longer known to the broker as a %s's",
                  is_client ? "trainer's or an admin" : "worker");
}

/* Of a group that the core does not remember, what the ledger knows. False when the ledger failed. */
static bool look_back(struct io *io, const struct look *look, struct slice group, struct core_task *task)
{
    if (core_remembers(io->core, group))
        return true;
    int found = look->was_found;
    task->past_hash = look->hash;
    if (io_has_ledger(io)) {
        if (!io->is_looking_back && ledger_read_begin(io->ledger, NULL) < 0)
            return false;
        io->is_looking_back = true; /* all looks of a cycle share a snapshot, which is cheaper */
        found = ledger_find_past(io->ledger, group, &task->past_hash, NULL);
    }
    task->is_past = found > 0;
    task->is_new = found == 0;
    return found >= 0;
}

static struct slice rollout_of(enum message_id id, const union any_message *message)
{
    return id == MSG_rollout_get ? message->rollout_get.rollout : message->rollout_watch.rollout;
}

/* True when the core has handled it, and its bytes must be kept. */
static bool handle_inbound(struct io *io, struct inbound *inbound, struct waiting *waiting, bool is_client,
                           int64_t now_ms, int64_t wall_ms)
{
    enum message_id id;
    union any_message message;
    struct refusal no;
    const char *request = "";
    struct slice bytes;
    const bool is_whole = waiting_next(waiting, zmq_frame_peek(&inbound->body), &bytes, &no);
    if (!may_come_in(inbound, is_client, &no) || !is_whole ||
        !read_message(io, bytes, waiting->alone, is_client, &id, &message, &request, &no)) {
        refuse_inbound(io, inbound, bytes, request, &no, is_client);
        return false;
    }
    if (id == MSG_rollout_live && waiting->is_bundle && live_has_no_room(io)) { /* its bundle was kept for others */
        core_tell_live_dropped(io->core, 1);
        return false;
    }
    struct caller caller = inbound->caller;
    struct fail why;
    if (id == MSG_worker_beat && lanes_judge(io->lanes, message.worker_beat.lane, caller.peer, &why) != 0)
        caller.lane_refused = slice_from_str(why.text);
    if (id == MSG_metrics_get)
        io_tell_process(io, now_ms);
    if (id == MSG_job_result)
        io->result_ms = now_ms;
    struct core_task past = {0};
    const bool is_of_past = id == MSG_rollout_get || id == MSG_rollout_watch;
    if (is_of_past && !look_back(io, &waiting->look, group_of_rollout(rollout_of(id, &message)), &past))
        return false;
    if (id != MSG_group_submit) {
        core_handle(io->core, now_ms, wall_ms, &caller, id, &message, is_of_past ? &past : NULL, 0);
        return true;
    }
    const struct msg_group_submit *submit = &message.group_submit;
    if (!look_back(io, &waiting->look, submit->group, &io->summary.task))
        return false; /* the broker ends, and who sent it hears nothing */
    core_handle(io->core, now_ms, wall_ms, &caller, id, &message, &io->summary.task,
                task_summary_hash(submit->stream, submit->samples, submit->task));
    return true;
}

/* ---- a round of reading ----------------------------------------------------------------------- */

/* Who is one to us, whatever connections it has: a key; without keys an address, and on ipc a process. */
static struct slice peer_of(const struct io *io, zmq_msg_t *body)
{
    const char *name = zmq_msg_gets(body, io->auth.certs ? "User-Id" : "Peer-Address");
    return slice_from_str(name ? name : "");
}

static void drop_live(struct io *io, struct waiting *waiting)
{
    core_tell_live_dropped(io->core, waiting->turn.count);
    drop_waiting(io, waiting);
}

/* As much of its peer waits as may. A client is told; a worker's next beat says all that this one does. */
static void turn_away(struct io *io, struct waiting *waiting, bool is_client)
{
    enum message_id id;
    struct refusal no;
    const struct slice body = zmq_frame_peek(&waiting->body);
    bool is_named = message_peek(body, &id, &no);
    refuse(&no, REFUSAL_QUEUE_FULL, "", "%d messages of yours, or %d MiB, wait to be read", PEER_WAITING_MAX,
           PEER_WAITING_BYTES >> 20);
    if (is_client)
        refuse_client(io, &waiting->from, body, is_named ? message_get(id)->wire : "", &no);
    char text[160];
    snprintf(text, sizeof(text), "%.*s sends more than is read: %s", SLICE_ARG(peer_of(io, &waiting->body)),
             is_client ? "refused, queue-full" : "beat dropped");
    io_complain(&io->turned_away, "broker.peer-floods", text);
    drop_waiting(io, waiting);
}

/* False when there may be more to read. */
static bool read_round(struct io *io, struct turns *turns, void *socket, bool is_client)
{
    if (!turns_begin(turns, clock_us()))
        return false;
    while (turns_want(turns)) {
        struct waiting *waiting = waiting_read(socket, is_client);
        if (!waiting)
            return true;
        if (is_client)
            look_begin(&waiting->look, &io->looks, &waiting->body, &waiting->turn, io_has_ledger(io));
        conn_limit_heard(io->conns, &waiting->body);
        struct slice peer = peer_of(io, &waiting->body);
        int fd = zmq_msg_get(&waiting->body, ZMQ_SRCFD);
        const bool is_live = !is_client && waiting_is(waiting, MSG_rollout_live);
        const bool may_be_dropped = is_client || is_live || waiting_is(waiting, MSG_worker_beat);
        const bool has_room = !is_live || !live_has_no_room(io);
        if (has_room && turns_add(turns, peer, fd, &waiting->turn, !may_be_dropped))
            continue;
        if (is_live)
            drop_live(io, waiting);
        else
            turn_away(io, waiting, is_client);
    }
    return false;
}

/* ---- a cycle's part ---------------------------------------------------------------------------
 *
 * A cycle ends when its messages have cost as much as a cycle may, or before a message of somebody whose last one took
 * longer than that, so that answers are sent first; the next one begins with whose turn it is (turns.h). So nobody
 * waits for more than a few messages of each other peer, and each message has a bound (TASK_VALUES_MAX,
 * RANGE_BYTES_MAX).
 */

struct part {
    size_t bytes_end, effects_seen, loads;
    int64_t end_us;
};

/* Trajectories that were asked for since it was last looked. */
static size_t count_loads(const struct io *io, struct part *part)
{
    struct effects effects = core_effects(io->core);
    size_t before = part->loads;
    for (; part->effects_seen < effects.count; part->effects_seen++) {
        enum effect_kind kind = effects.items[part->effects_seen].kind;
        part->loads += kind == SEND_RANGE || kind == SEND_LIST ? RANGE_LOADS : kind == SEND_TRAJECTORY;
    }
    return part->loads - before;
}

static bool is_over(const struct io *io, const struct part *part)
{
    return io->filling->inbound_bytes >= part->bytes_end || part->loads >= LOADS_MAX ||
           part->effects_seen >= EFFECTS_MAX || clock_us() >= part->end_us;
}

/*
 * Where the bytes of the message are whose turn it is. Those of a bundle are kept once for a batch, and wait on with
 * what is left in it.
 */
static struct inbound *keep_inbound(struct io *io, struct waiting *waiting, bool is_client)
{
    struct batch *batch = io->filling;
    if (waiting->batch == io->batch_number)
        return &batch->inbound[waiting->kept_at];
    struct inbound *inbound = &batch->inbound[batch->inbound_count];
    waiting->batch = io->batch_number;
    waiting->kept_at = batch->inbound_count++;
    zmq_msg_init(&inbound->from);
    zmq_msg_init(&inbound->body);
    zmq_msg_move(&inbound->from, &waiting->from);
    if (waiting->turn.count == 0)
        zmq_msg_move(&inbound->body, &waiting->body);
    else
        zmq_msg_copy(&inbound->body, &waiting->body); /* which copies no bytes */
    find_caller(io, inbound, is_client);
    return inbound;
}

/* What it cost in time; what will be stored or loaded for it counts as its part of what a cycle may. */
static int64_t take_one(struct io *io, struct waiting *waiting, bool is_client, struct part *part, int64_t now_ms,
                        int64_t wall_ms)
{
    int64_t begun_us = clock_us();
    struct inbound *inbound = keep_inbound(io, waiting, is_client);
    size_t before = waiting->at, bytes = waiting->turn.bytes;
    bool is_kept = handle_inbound(io, inbound, waiting, is_client, now_ms, wall_ms);
    if (waiting->is_bundle)
        bytes = waiting->at - before;
    io->disk_unseen_bytes += bytes;
    if (is_kept) {
        io->filling->inbound_bytes += bytes;
    } else if (!waiting->is_bundle) {
        inbound_drop(inbound);
        io->filling->inbound_count--;
    }
    if (waiting->turn.count == 0)
        drop_waiting(io, waiting);
    size_t loads = count_loads(io, part);
    io->filling->loads += loads;
    return clock_us() - begun_us + (int64_t)(loads * TURN_US / LOADS_MAX + bytes * TURN_US / INBOUND_BYTES_MAX);
}

/* False when there may be more to read. */
static bool take_part(struct io *io, int place, int64_t most_us, int64_t now_ms, int64_t wall_ms)
{
    bool is_client = place == PLACE_FRONT;
    void *socket = is_client ? io->front : io->sink;
    struct turns *turns = io->turns[place];
    struct part part = {.bytes_end = io->filling->inbound_bytes + INBOUND_BYTES_MAX / 2,
                        .effects_seen = core_effects(io->core).count,
                        .end_us = clock_us() + most_us};
    bool is_drained = read_round(io, turns, socket, is_client);
    for (size_t taken = 0; !taken || (taken < INBOUND_MAX / 2 && !is_over(io, &part));) {
        struct turn_inbound *turn = turns_take(turns, taken ? TURN_US : INT64_MAX);
        if (turn) {
            struct waiting *waiting = container_of(turn, struct waiting, turn);
            turns_charge(turns, take_one(io, waiting, is_client, &part, now_ms, wall_ms));
            taken++;
        } else if (is_drained || turns_count(turns)) {
            break;
        } else {
            is_drained = read_round(io, turns, socket, is_client);
        }
    }
    return is_drained;
}

/*
 * While jobs come back, clients have as much of the time as workers have, and SHARE_US at least: a rollout waits
 * for the ends of some ten cycles, each of which a client that floods would otherwise fill.
 */
static int64_t share_of_clients(const struct io *io, int64_t now_ms)
{
    const int64_t share_us = io->workers_us > SHARE_US ? io->workers_us : SHARE_US;
    return now_ms - io->result_ms > LATELY_MS || share_us > TURN_US ? TURN_US : share_us;
}

int64_t io_rest_us(const struct io *io)
{
    const int64_t us = io->rest_until_us - clock_us();
    return us > 0 ? us : 0;
}

/*
 * Who has more than its part is left to wait in the network for a moment. Otherwise this thread and who floods it would
 * be at work all the time, and workers, with whom they share the cores, would wait for one.
 */
static void take_clients(struct io *io, int64_t now_ms, int64_t wall_ms)
{
    const int64_t share_us = share_of_clients(io, now_ms), begun_us = clock_us();
    io->workers_us = 0;
    io->is_drained[PLACE_FRONT] = take_part(io, PLACE_FRONT, share_us, now_ms, wall_ms);
    const int64_t ended_us = clock_us();
    if (!io->is_drained[PLACE_FRONT] && share_us < TURN_US && ended_us - begun_us >= share_us)
        io->rest_until_us = ended_us + REST_US;
}

void io_take_in(struct io *io, int64_t now_ms, int64_t wall_ms)
{
    const int64_t begun_us = clock_us();
    io->is_drained[PLACE_SINK] = take_part(io, PLACE_SINK, TURN_US, now_ms, wall_ms);
    io->workers_us += clock_us() - begun_us;
    if (!io_rest_us(io))
        take_clients(io, now_ms, wall_ms);
    if (io->is_looking_back)
        ledger_read_end(io->ledger, NULL);
    io->is_looking_back = false;
}

bool io_has_waiting(const struct io *io)
{
    const bool takes_clients = !turns_are_held(io->turns[PLACE_FRONT]) && !io_rest_us(io);
    return (turns_count(io->turns[PLACE_FRONT]) && takes_clients) || turns_count(io->turns[PLACE_SINK]);
}
