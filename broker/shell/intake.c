/* From frames to core_handle: reading, decoding, and refusing what cannot be read. */
#include "broker/shell/inner.h"

#include <msgpack.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"

/* ---- reading ------------------------------------------------------------------------------ */

/* Reads frames until the message's end: what comes beyond its place is dropped as it comes. */
static bool drain_rest(void *socket, zmq_msg_t *last)
{
    bool alone = !zmq_msg_more(last);
    zmq_msg_t frame;
    for (bool more = !alone; more; zmq_msg_close(&frame)) {
        zmq_msg_init(&frame);
        more = zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&frame);
    }
    return alone;
}

/* False when nothing is there. *ret_alone: the body is one frame. */
static bool read_letter(void *socket, bool has_sender, struct letter *letter, bool *ret_alone)
{
    zmq_msg_init(&letter->from);
    zmq_msg_init(&letter->body);
    bool got = !has_sender || zmq_msg_recv(&letter->from, socket, ZMQ_DONTWAIT) >= 0;
    if (got && zmq_msg_recv(&letter->body, socket, ZMQ_DONTWAIT) >= 0) {
        *ret_alone = drain_rest(socket, &letter->body);
        return true;
    }
    zmq_msg_close(&letter->from);
    zmq_msg_close(&letter->body);
    return false;
}

static void drop_letter(struct letter *letter)
{
    zmq_msg_close(&letter->from);
    zmq_msg_close(&letter->body);
}

void shell_drop_letters(struct shell *shell)
{
    for (size_t i = 0; i < shell->letter_count; i++)
        drop_letter(&shell->letters[i]);
    shell->letter_count = shell->letter_bytes = 0;
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
    bool is_uint = start < bytes.len && (bytes.data[start] < 0x80 ||
                                         (bytes.data[start] >= 0xcc && bytes.data[start] <= 0xcf));
    if (!is_uint)
        return 0;
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return got =
        msgpack_unpack_next(&unpacked, (const char *)bytes.data, bytes.len, &start);
    uint64_t tag = got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES
                       ? unpacked.data.via.u64
                       : 0;
    msgpack_unpacked_destroy(&unpacked);
    return tag;
}

static void refuse_client(struct shell *shell, struct letter *letter, const char *request,
                          const struct refusal *no)
{
    struct msg_refused refused = {.tag = peek_tag(frame_peek(&letter->body)),
                                  .request = slice_from_str(request),
                                  .reason = slice_from_str(refusal_wire(no->reason)),
                                  .field = slice_from_str(no->field),
                                  .has_field = no->field[0] != '\0',
                                  .text = slice_from_str(no->text)};
    buffer_clear(&shell->out);
    struct refusal ours;
    if (!message_encode(MSG_refused, &refused, &shell->out, &ours)) {
        log_event(LOG_ERROR, "broker.refusal-unsendable", "reason=%s", ours.text);
        return;
    }
    zmq_msg_t body;
    if (frame_send_copy(shell->front, frame_peek(&letter->from), ZMQ_SNDMORE) &&
        frame_init(&body, &shell->out, NULL))
        frame_send(shell->front, &body, 0);
}

void shell_complain(struct complaint *complaint, const char *id, const char *text)
{
    int64_t now_ms = clock_ms();
    if (complaint->said_ms && now_ms - complaint->said_ms < 1000) {
        complaint->unsaid++;
        return;
    }
    log_event(LOG_WARN, id, "text=\"%.600s\" unsaid=%llu", text,
              (unsigned long long)complaint->unsaid);
    *complaint = (struct complaint){.said_ms = now_ms};
}

static void refuse_letter(struct shell *shell, struct letter *letter, const char *request,
                          const struct refusal *no, bool is_client)
{
    if (is_client) {
        refuse_client(shell, letter, request, no);
        return;
    }
    shell_complain(&shell->bad_worker_message, "broker.bad-worker-message", no->text);
    core_tell_unread(shell->core, clock_ms(), slice_from_str(letter->name), slice_from_str(no->text));
}

/* ---- handling --------------------------------------------------------------------------------- */

/* Whether the letter is a message that its sender may send; else says why not. */
static bool read_message(struct letter *letter, bool alone, bool is_client, enum message_id *ret_id,
                         union any_message *ret, const char **ret_request, struct refusal *no)
{
    struct slice bytes = frame_peek(&letter->body);
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
        return refuse(no, REFUSAL_UNKNOWN_MESSAGE, "", "%s is not sent to this socket",
                      message->wire);
    if (!message_decode(*ret_id, bytes, ret, no))
        return false;
    return *ret_id != MSG_group_submit || facts_read(ret->group_submit.task, &letter->facts, no);
}

/* Who sent it, if that may still come in. */
static bool find_caller(const struct shell *shell, struct letter *letter, bool is_client,
                        struct caller *ret, struct refusal *no)
{
    ret->route = frame_peek(&letter->from);
    ret->peer = slice_from_str(zmq_msg_gets(&letter->body, "Peer-Address"));
    if (gate_find_caller(&shell->gate, &letter->body, is_client ? ZAP_FRONT : ZAP_SINK, ret,
                         letter->name))
        return true;
    return refuse(no, REFUSAL_NOT_ALLOWED, "", "this key is no longer known to the broker as a %s's",
                  is_client ? "trainer's or an admin" : "worker");
}

/* Of a group that the core does not remember, what the ledger knows. False when the ledger failed. */
static bool look_back(struct shell *shell, struct slice group, struct core_task *task)
{
    if (core_remembers(shell->core, group))
        return true;
    if (!shell->is_looking_back && ledger_read_begin(shell->ledger, NULL) < 0)
        return false;
    shell->is_looking_back = true; /* all looks of a cycle share a snapshot, which is cheaper */
    int found = ledger_find_past(shell->ledger, group, &task->past_hash, NULL);
    task->is_past = found > 0;
    return found >= 0;
}

/* True when the core has handled it, and the letter must be kept. */
static bool handle_letter(struct shell *shell, struct letter *letter, bool alone, bool is_client,
                          int64_t now_ms, int64_t wall_ms)
{
    enum message_id id;
    union any_message message;
    struct refusal no;
    const char *request = "";
    struct caller caller = {0};
    if (!find_caller(shell, letter, is_client, &caller, &no) ||
        !read_message(letter, alone, is_client, &id, &message, &request, &no)) {
        refuse_letter(shell, letter, request, &no, is_client);
        return false;
    }
    struct fail why;
    if (id == MSG_worker_beat && lanes_judge(shell->lanes, message.worker_beat.lane, caller.peer, &why) != 0)
        caller.lane_refused = slice_from_str(why.text);
    if (id != MSG_group_submit) {
        core_handle(shell->core, now_ms, wall_ms, &caller, id, &message, NULL, 0);
        return true;
    }
    const struct msg_group_submit *submit = &message.group_submit;
    if (!look_back(shell, submit->group, &letter->facts.task))
        return false; /* the broker ends, and who sent it hears nothing */
    core_handle(shell->core, now_ms, wall_ms, &caller, id, &message, &letter->facts.task,
                facts_hash(submit->stream, submit->samples, submit->task));
    return true;
}

/* ---- turns --------------------------------------------------------------------------------------
 *
 * libzmq gives the messages of a socket's peers in turn, one each. A cycle ends when they have cost as much as a
 * cycle may, and begins again with whose turn it is: so nobody waits longer for its own turn than one message of
 * each other peer takes, and each message has a bound (TASK_VALUES_MAX, RANGE_BYTES_MAX).
 */

struct turn {
    size_t bytes_end, effects_seen, loads;
    int64_t end_ms;
};

/* Trajectories that were asked for since it was last looked. */
static void count_loads(const struct shell *shell, struct turn *turn)
{
    struct effects effects = core_effects(shell->core);
    for (; turn->effects_seen < effects.count; turn->effects_seen++) {
        enum effect_kind kind = effects.items[turn->effects_seen].kind;
        turn->loads += kind == SEND_RANGE ? RANGE_LOADS : kind == SEND_TRAJECTORY;
    }
}

static bool is_over(const struct shell *shell, struct turn *turn)
{
    count_loads(shell, turn);
    return shell->letter_bytes >= turn->bytes_end || turn->loads >= LOADS_MAX ||
           turn->effects_seen >= EFFECTS_MAX || clock_ms() >= turn->end_ms;
}

/* False when there may be more to read. */
static bool drain_socket(struct shell *shell, void *socket, bool is_client, int64_t now_ms, int64_t wall_ms)
{
    struct turn turn = {.bytes_end = shell->letter_bytes + LETTERS_BYTES_MAX / 2,
                        .effects_seen = core_effects(shell->core).count,
                        .end_ms = clock_ms() + TURN_MS};
    for (size_t taken = 0; taken < LETTERS_MAX / 2 && !is_over(shell, &turn); taken++) {
        struct letter *letter = &shell->letters[shell->letter_count];
        bool alone;
        if (!read_letter(socket, is_client, letter, &alone))
            return true;
        crowd_heard(shell->crowd, &letter->body);
        if (handle_letter(shell, letter, alone, is_client, now_ms, wall_ms)) {
            shell->letter_count++;
            shell->letter_bytes += zmq_msg_size(&letter->body);
        } else {
            drop_letter(letter);
        }
    }
    return false;
}

void shell_take_in(struct shell *shell, int64_t now_ms, int64_t wall_ms)
{
    shell->is_drained[PLACE_SINK] = drain_socket(shell, shell->sink, false, now_ms, wall_ms);
    shell->is_drained[PLACE_FRONT] = drain_socket(shell, shell->front, true, now_ms, wall_ms);
    if (shell->is_looking_back)
        ledger_read_end(shell->ledger, NULL);
    shell->is_looking_back = false;
}
