/*
 * beanstalkd: a tube for each stage. Reserved jobs of a connection that ends are ready again at once.
 * As many reserves are sent at once as the last batch was long, one more if there may be more, and all but the
 * first do not wait.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peer_systems/peers.h"

enum { RUN_S = 30 }; /* until a job that is neither done with nor touched is ready again */

static void open_tube(struct wire *wire, int port, const char *command, const char *tube)
{
    if (wire->fd == 0)
        wire_open(wire, port);
    buffer_printf(&wire->out, "%s %s\r\n", command, tube);
    wire_flush(wire);
    struct slice said = wire_line(wire);
    if (memcmp(said.data, "USING", 5) != 0 && memcmp(said.data, "WATCHING", 8) != 0)
        die(command, said);
}

static void prepare(struct link *link) { (void)link; }

static void attend(struct link *link)
{
    open_tube(&link->take, link->port, "watch", stage_names[link->stage]);
    open_tube(&link->take, link->port, "ignore", "default");
    link->asked = 1;
}

static bool read_job(struct link *link, struct job *ret)
{
    struct slice line = wire_line(&link->take);
    unsigned long len;
    if (slice_is(line, "TIMED_OUT"))
        return false;
    if (sscanf((const char *)line.data, "RESERVED %" SCNu64 " %lu", &ret->number, &len) != 2)
        die("reserve", line);
    ret->body = wire_take(&link->take, len + 2);
    ret->body.len = len;
    return true;
}

static size_t take(struct link *link, struct job jobs[BATCH])
{
    size_t asked = link->asked, count = 0;
    wire_forget(&link->take);
    buffer_append_str(&link->take.out, "reserve\r\n");
    for (size_t i = 1; i < asked; i++)
        buffer_append_str(&link->take.out, "reserve-with-timeout 0\r\n");
    wire_flush(&link->take);
    for (size_t i = 0; i < asked; i++)
        count += read_job(link, &jobs[count]);
    link->asked = count < asked ? count : asked * 2 < BATCH ? asked * 2 : BATCH;
    return count;
}

static void submit(struct link *link, int stage, struct slice body)
{
    if (link->give.fd == 0)
        open_tube(&link->give, link->port, "use", stage_names[stage]);
    buffer_printf(&link->give.out, "put 0 0 %d %zu\r\n", RUN_S, body.len);
    buffer_append(&link->give.out, body.data, body.len);
    buffer_append_str(&link->give.out, "\r\n");
}

static size_t confirm(struct link *link, bool waits)
{
    size_t count = 0;
    wire_forget(&link->give);
    while ((waits && count == 0) || wire_pending(&link->give)) {
        struct slice said = wire_line(&link->give);
        if (said.len < 8 || memcmp(said.data, "INSERTED", 8) != 0)
            die("put", said);
        count++;
    }
    return count;
}

static void finish(struct link *link, const struct job jobs[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_printf(&link->take.out, "delete %" PRIu64 "\r\n", jobs[i].number);
    wire_flush(&link->take);
    for (size_t i = 0; i < count; i++) {
        struct slice said = wire_line(&link->take);
        if (!slice_is(said, "DELETED"))
            die("delete", said);
    }
}

const struct peer peer_beanstalkd = {.name = "beanstalkd",
                                     .prepare = prepare,
                                     .attend = attend,
                                     .take = take,
                                     .submit = submit,
                                     .confirm = confirm,
                                     .finish = finish};
