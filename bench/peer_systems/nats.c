/*
 * NATS JetStream: one work-queue stream on disk, a subject and a pull consumer for each stage. A job is acknowledged
 * when the next stage's subject has confirmed it, and handed out again WAIT_S after a worker took it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/peer_systems/peers.h"

enum { WAIT_S = 5, EXPIRES_MS = 1000 };

struct delivery {
    struct slice reply, body;
};

static void connect_to(struct link *link, struct wire *wire)
{
    if (wire->fd != 0)
        return;
    wire_open(wire, link->port);
    buffer_printf(&wire->out, "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":false}\r\nSUB %s.%s 1\r\n",
                  link->name, wire == &link->take ? "take" : "give");
    wire_flush(wire);
}

static void publish(struct wire *wire, const char *subject, const char *reply, struct slice body)
{
    buffer_printf(&wire->out, "PUB %s %s %zu\r\n", subject, reply, body.len);
    buffer_append(&wire->out, body.data, body.len);
    buffer_append_str(&wire->out, "\r\n");
}

/* The next message, if the next line is one; else answers a ping. */
static bool read_message(struct wire *wire, struct delivery *ret)
{
    struct slice line = wire_line(wire);
    if (slice_is(line, "PING")) {
        buffer_append_str(&wire->out, "PONG\r\n");
        wire_flush(wire);
    }
    if (line.len > 4 && memcmp(line.data, "-ERR", 4) == 0)
        die("nats", line);
    if (line.len < 4 || memcmp(line.data, "MSG ", 4) != 0)
        return false;
    /* MSG subject sid [reply] length */
    const uint8_t *last = memrchr(line.data, ' ', line.len);
    const uint8_t *before = memrchr(line.data, ' ', (size_t)(last - line.data));
    size_t len = strtoul((const char *)last + 1, NULL, 10);
    ret->reply = slice_of(before + 1, (size_t)(last - before - 1));
    ret->body = wire_take(wire, len + 2);
    ret->body.len = len;
    return true;
}

static void ask_server(struct link *link, const char *subject, const char *body, bool must)
{
    char reply[96];
    struct delivery answer;
    snprintf(reply, sizeof(reply), "%s.give", link->name);
    wire_forget(&link->give);
    publish(&link->give, subject, reply, slice_from_str(body));
    wire_flush(&link->give);
    while (!read_message(&link->give, &answer))
        ;
    if (must && memmem(answer.body.data, answer.body.len, "\"error\"", 7))
        die(subject, answer.body);
}

static void prepare(struct link *link)
{
    char subject[128], body[512];
    connect_to(link, &link->give);
    ask_server(link, "$JS.API.STREAM.DELETE.JOBS", "", false);
    ask_server(link, "$JS.API.STREAM.CREATE.JOBS",
               "{\"name\":\"JOBS\",\"subjects\":[\"jobs.*\"],\"retention\":\"workqueue\","
               "\"storage\":\"file\"}",
               true);
    for (int stage = 0; stage <= DONE; stage++) {
        snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.%s", stage_names[stage]);
        snprintf(body, sizeof(body),
                 "{\"stream_name\":\"JOBS\",\"config\":{\"durable_name\":\"%s\",\"ack_policy\":"
                 "\"explicit\","
                 "\"ack_wait\":%" PRId64 ",\"max_ack_pending\":65536,\"filter_subject\":\"jobs.%s\"}}",
                 stage_names[stage], (int64_t)WAIT_S * 1000000000, stage_names[stage]);
        ask_server(link, subject, body, true);
    }
}

static void attend(struct link *link) { connect_to(link, &link->take); }

/* So that at least half a batch is always asked for. */
static void ask_for_more(struct link *link)
{
    char subject[128], reply[96], body[64];
    if (link->asked > BATCH / 2)
        return;
    snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.MSG.NEXT.JOBS.%s", stage_names[link->stage]);
    snprintf(reply, sizeof(reply), "%s.take", link->name);
    snprintf(body, sizeof(body), "{\"batch\":%zu,\"expires\":%d}", BATCH - link->asked, EXPIRES_MS * 1000000);
    publish(&link->take, subject, reply, slice_from_str(body));
    wire_flush(&link->take);
    link->asked = BATCH;
}

/* A job has a subject to which it is acknowledged; what a server says of a request has none. */
static bool is_job(const struct delivery *delivery)
{
    static const char prefix[] = "$JS.ACK.";
    size_t len = sizeof(prefix) - 1;
    return delivery->reply.len > len && memcmp(delivery->reply.data, prefix, len) == 0;
}

static size_t take(struct link *link, struct job jobs[BATCH])
{
    size_t count = 0;
    struct delivery delivery;
    wire_forget(&link->take);
    for (;;) {
        ask_for_more(link);
        if (count > 0 && (count == BATCH || !wire_pending(&link->take)))
            return count;
        if (!wire_await(&link->take, 2 * EXPIRES_MS)) {
            link->asked = 0; /* what was asked for has expired */
        } else if (!read_message(&link->take, &delivery)) {
            continue;
        } else if (!is_job(&delivery)) {
            link->asked = 0; /* the server says so */
        } else {
            jobs[count++] = (struct job){.body = delivery.body, .handle = delivery.reply};
            link->asked -= link->asked > 0;
        }
    }
}

static void submit(struct link *link, int stage, struct slice body)
{
    char subject[64], reply[96];
    connect_to(link, &link->give);
    snprintf(subject, sizeof(subject), "jobs.%s", stage_names[stage]);
    snprintf(reply, sizeof(reply), "%s.give", link->name);
    publish(&link->give, subject, reply, body);
}

static size_t confirm(struct link *link, bool waits)
{
    size_t count = 0;
    struct delivery answer;
    wire_forget(&link->give);
    while ((waits && count == 0) || wire_pending(&link->give)) {
        if (!read_message(&link->give, &answer))
            continue;
        if (memmem(answer.body.data, answer.body.len, "\"error\"", 7))
            die("publish", answer.body);
        count++;
    }
    return count;
}

static void finish(struct link *link, const struct job jobs[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_printf(&link->take.out, "PUB %.*s 4\r\n+ACK\r\n", SLICE_ARG(jobs[i].handle));
    wire_flush(&link->take);
}

const struct peer peer_nats = {.name = "nats",
                               .prepare = prepare,
                               .attend = attend,
                               .take = take,
                               .submit = submit,
                               .confirm = confirm,
                               .finish = finish};
