/*
 * RabbitMQ, AMQP 0-9-1: a durable queue for each stage, classic or quorum; persistent messages, publisher
 * confirms, a prefetch of BATCH, acknowledged together when the next queue has confirmed all. Jobs of
 * a connection that ends are in the queue again at once.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peer_systems/peers.h"
#include "common/base/cleanup.h"

enum { FRAME_METHOD = 1, FRAME_HEADER = 2, FRAME_BODY = 3, FRAME_END = 0xCE, FRAME_MAX = 131072, CHANNEL = 1 };

#define METHOD(class, method) ((uint32_t)(class) << 16 | (method))
enum {
    CONNECTION_START = METHOD(10, 10),
    CONNECTION_START_OK = METHOD(10, 11),
    CONNECTION_TUNE = METHOD(10, 30),
    CONNECTION_TUNE_OK = METHOD(10, 31),
    CONNECTION_OPEN = METHOD(10, 40),
    CONNECTION_OPEN_OK = METHOD(10, 41),
    CHANNEL_OPEN = METHOD(20, 10),
    CHANNEL_OPEN_OK = METHOD(20, 11),
    QUEUE_DECLARE = METHOD(50, 10),
    QUEUE_DECLARE_OK = METHOD(50, 11),
    QUEUE_DELETE = METHOD(50, 40),
    QUEUE_DELETE_OK = METHOD(50, 41),
    BASIC_QOS = METHOD(60, 10),
    BASIC_QOS_OK = METHOD(60, 11),
    BASIC_CONSUME = METHOD(60, 20),
    BASIC_CONSUME_OK = METHOD(60, 21),
    BASIC_PUBLISH = METHOD(60, 40),
    BASIC_DELIVER = METHOD(60, 60),
    BASIC_ACK = METHOD(60, 80),
    CONFIRM_SELECT = METHOD(85, 10),
    CONFIRM_SELECT_OK = METHOD(85, 11),
};

/* ---- writing ------------------------------------------------------------------------------------------ */

static void put_u8(struct buffer *out, uint8_t value) { buffer_append(out, &value, 1); }

static void put_u16(struct buffer *out, uint16_t value)
{
    uint16_t big = htobe16(value);
    buffer_append(out, &big, sizeof(big));
}

static void put_u32(struct buffer *out, uint32_t value)
{
    uint32_t big = htobe32(value);
    buffer_append(out, &big, sizeof(big));
}

static void put_u64(struct buffer *out, uint64_t value)
{
    uint64_t big = htobe64(value);
    buffer_append(out, &big, sizeof(big));
}

static void put_short(struct buffer *out, const char *text)
{
    put_u8(out, (uint8_t)strlen(text));
    buffer_append_str(out, text);
}

static void put_long(struct buffer *out, struct slice text)
{
    put_u32(out, (uint32_t)text.len);
    buffer_append(out, text.data, text.len);
}

static size_t begin_frame(struct buffer *out, uint8_t type, uint16_t channel)
{
    put_u8(out, type);
    put_u16(out, channel);
    put_u32(out, 0);
    return out->len;
}

static size_t begin_method(struct buffer *out, uint32_t method)
{
    size_t start = begin_frame(out, FRAME_METHOD, method >> 16 == 10 ? 0 : CHANNEL);
    put_u32(out, method);
    return start;
}

static void end_frame(struct buffer *out, size_t start)
{
    uint32_t len = htobe32((uint32_t)(out->len - start));
    if (!out->failed)
        memcpy(out->data + start - sizeof(len), &len, sizeof(len));
    put_u8(out, FRAME_END);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

struct frame {
    uint8_t type;
    uint32_t method;      /* of FRAME_METHOD */
    struct slice payload; /* behind it */
};

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t big;
    memcpy(&big, at, sizeof(big));
    return be64toh(big);
}

static uint32_t get_u32(const uint8_t *at)
{
    uint32_t big;
    memcpy(&big, at, sizeof(big));
    return be32toh(big);
}

static struct frame read_frame(struct wire *wire)
{
    struct slice head = wire_take(wire, 7);
    struct frame frame = {.type = head.data[0]};
    frame.payload = wire_take(wire, get_u32(head.data + 3) + 1);
    if (frame.payload.data[--frame.payload.len] != FRAME_END)
        die("rabbitmq", slice_from_str("a frame without its end"));
    if (frame.type == FRAME_METHOD && frame.payload.len >= 4) {
        frame.method = get_u32(frame.payload.data);
        frame.payload = slice_of(frame.payload.data + 4, frame.payload.len - 4);
    }
    return frame;
}

static struct frame expect(struct wire *wire, uint32_t method)
{
    wire_flush(wire);
    struct frame frame = read_frame(wire);
    if (frame.method != method)
        die("rabbitmq answers otherwise than it should", frame.payload);
    return frame;
}

/* ---- a connection, its channel and the queues ---------------------------------------------------------- */

static void greet(struct wire *wire)
{
    struct buffer *out = &wire->out;
    buffer_append(out, "AMQP\0\0\x09\x01", 8);
    expect(wire, CONNECTION_START);
    size_t start = begin_method(out, CONNECTION_START_OK);
    put_u32(out, 0); /* no properties of the client */
    put_short(out, "PLAIN");
    put_long(out, slice_of("\0guest\0guest", 12));
    put_short(out, "en_US");
    end_frame(out, start);
    expect(wire, CONNECTION_TUNE);
    start = begin_method(out, CONNECTION_TUNE_OK);
    put_u16(out, 16);
    put_u32(out, FRAME_MAX);
    put_u16(out, 0); /* no heartbeats */
    end_frame(out, start);
    start = begin_method(out, CONNECTION_OPEN);
    put_short(out, "/");
    put_u16(out, 0);
    end_frame(out, start);
    expect(wire, CONNECTION_OPEN_OK);
}

static void connect_to(struct link *link, struct wire *wire)
{
    if (wire->fd != 0)
        return;
    wire_open(wire, link->port);
    greet(wire);
    size_t start = begin_method(&wire->out, CHANNEL_OPEN);
    put_short(&wire->out, "");
    end_frame(&wire->out, start);
    expect(wire, CHANNEL_OPEN_OK);
}

static void make_queue(struct wire *wire, const char *name, bool quorum)
{
    struct buffer *out = &wire->out;
    size_t start = begin_method(out, QUEUE_DELETE);
    put_u16(out, 0);
    put_short(out, name);
    put_u8(out, 0);
    end_frame(out, start);
    expect(wire, QUEUE_DELETE_OK);
    AUTO_BUFFER arguments = {0};
    put_short(&arguments, "x-queue-type");
    put_u8(&arguments, 'S');
    put_long(&arguments, slice_from_str(quorum ? "quorum" : "classic"));
    start = begin_method(out, QUEUE_DECLARE);
    put_u16(out, 0);
    put_short(out, name);
    put_u8(out, 1 << 1); /* durable */
    put_long(out, buffer_peek(&arguments));
    end_frame(out, start);
    expect(wire, QUEUE_DECLARE_OK);
}

static void prepare_classic(struct link *link)
{
    connect_to(link, &link->give);
    for (int stage = 0; stage <= DONE; stage++)
        make_queue(&link->give, stage_names[stage], false);
}

static void prepare_quorum(struct link *link)
{
    connect_to(link, &link->give);
    for (int stage = 0; stage <= DONE; stage++)
        make_queue(&link->give, stage_names[stage], true);
}

static void attend(struct link *link)
{
    struct buffer *out = &link->take.out;
    connect_to(link, &link->take);
    size_t start = begin_method(out, BASIC_QOS);
    put_u32(out, 0);
    put_u16(out, BATCH);
    put_u8(out, 0);
    end_frame(out, start);
    expect(&link->take, BASIC_QOS_OK);
    start = begin_method(out, BASIC_CONSUME);
    put_u16(out, 0);
    put_short(out, stage_names[link->stage]);
    put_short(out, "");
    put_u8(out, 0);
    put_u32(out, 0);
    end_frame(out, start);
    expect(&link->take, BASIC_CONSUME_OK);
}

/* ---- jobs --------------------------------------------------------------------------------------------- */

static struct job read_job(struct wire *wire)
{
    struct frame deliver = read_frame(wire);
    if (deliver.method != BASIC_DELIVER)
        die("rabbitmq", slice_from_str("not a delivery"));
    struct job job = {.number = get_u64(deliver.payload.data + 1 + deliver.payload.data[0])};
    uint64_t len = get_u64(read_frame(wire).payload.data + 4);
    job.body = read_frame(wire).payload;
    if (job.body.len != len)
        die("rabbitmq", slice_from_str("a job in more than one frame"));
    return job;
}

static size_t take(struct link *link, struct job jobs[BATCH])
{
    size_t count = 0;
    wire_forget(&link->take);
    while (count == 0 || (count < BATCH && wire_pending(&link->take)))
        jobs[count++] = read_job(&link->take);
    return count;
}

static void open_give(struct link *link)
{
    if (link->give.fd != 0)
        return;
    connect_to(link, &link->give);
    size_t start = begin_method(&link->give.out, CONFIRM_SELECT);
    put_u8(&link->give.out, 0);
    end_frame(&link->give.out, start);
    expect(&link->give, CONFIRM_SELECT_OK);
}

static void submit(struct link *link, int stage, struct slice body)
{
    struct buffer *out = &link->give.out;
    open_give(link);
    size_t start = begin_method(out, BASIC_PUBLISH);
    put_u16(out, 0);
    put_short(out, "");
    put_short(out, stage_names[stage]);
    put_u8(out, 0);
    end_frame(out, start);
    start = begin_frame(out, FRAME_HEADER, CHANNEL);
    put_u32(out, (uint32_t)60 << 16);
    put_u64(out, body.len);
    put_u16(out, 1 << 12); /* with a delivery mode, */
    put_u8(out, 2);        /* persistent */
    end_frame(out, start);
    start = begin_frame(out, FRAME_BODY, CHANNEL);
    buffer_append(out, body.data, body.len);
    end_frame(out, start);
}

/* One confirm, of a number or of all up to it; they come in any order. How many are new by it. */
static size_t count_confirm(struct link *link, uint64_t number, bool and_before)
{
    size_t count = 0;
    for (uint64_t i = and_before ? link->confirmed + 1 : number; i <= number; i++)
        if (!link->ahead[i % AHEAD]) {
            link->ahead[i % AHEAD] = true;
            count++;
        }
    while (link->ahead[(link->confirmed + 1) % AHEAD])
        link->ahead[++link->confirmed % AHEAD] = false;
    return count;
}

static size_t confirm(struct link *link, bool waits)
{
    size_t count = 0;
    wire_forget(&link->give);
    while ((waits && count == 0) || wire_pending(&link->give)) {
        struct frame frame = read_frame(&link->give);
        if (frame.method != BASIC_ACK)
            die("rabbitmq", slice_from_str("a job was not confirmed"));
        count += count_confirm(link, get_u64(frame.payload.data), frame.payload.data[8] & 1);
    }
    return count;
}

static void finish(struct link *link, const struct job jobs[], size_t count)
{
    struct buffer *out = &link->take.out;
    size_t start = begin_method(out, BASIC_ACK);
    put_u64(out, jobs[count - 1].number);
    put_u8(out, 1); /* and all before it */
    end_frame(out, start);
    wire_flush(&link->take);
}

const struct peer peer_rabbitmq = {.name = "rabbitmq-classic",
                                   .prepare = prepare_classic,
                                   .attend = attend,
                                   .take = take,
                                   .submit = submit,
                                   .confirm = confirm,
                                   .finish = finish};
const struct peer peer_rabbitmq_quorum = {.name = "rabbitmq-quorum",
                                          .prepare = prepare_quorum,
                                          .attend = attend,
                                          .take = take,
                                          .submit = submit,
                                          .confirm = confirm,
                                          .finish = finish};
