#include "workers/sandbox/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"

struct channel_call {
    struct channel_call *next;
    uint32_t id;
    struct fiber *fiber;
    bool done;
    struct channel_answer answer;
    struct fail *fail;
};

static struct channel_call **find_call(struct channel *channel, uint32_t id)
{
    struct channel_call **at = &channel->calls;
    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static void end_call(struct channel_call *call, int code, const char *sentence)
{
    call->done = true;
    call->answer.code = code;
    if (code < 0)
        fail_set(call->fail, code, "%s", sentence);
    fiber_wake(call->fiber);
}

static void hear_answer(struct channel *channel, struct wire_message *message)
{
    struct channel_call **at = find_call(channel, message->head.id), *call = *at;
    if (!call)
        return;
    *at = call->next;
    if (message->is_short) {
        end_call(call, -EMFILE, "this process has too many open files");
        return;
    }
    call->answer.result = message->head.number[1];
    for (size_t i = 0; i < CHANNEL_FDS_MAX && i < message->fd_count; i++)
        call->answer.fds[i] = take_fd(&message->fds[i]);
    end_call(call, (int)message->head.number[0], message->text);
}

void channel_drain(struct channel *channel)
{
    static __thread struct wire_message message; /* large; never re-entered while in use */
    while (channel->socket >= 0) {
        int got = wire_receive(channel->socket, &message);
        if (got == -EAGAIN)
            return;
        if (got <= 0) {
            channel_close(channel);
            channel->lost(channel->arg);
            return;
        }
        if (message.head.verb == WIRE_DONE)
            hear_answer(channel, &message);
        else
            channel->heard(channel->arg, &message);
        wire_close_fds(&message);
    }
}

static void on_ready(void *arg, uint32_t events)
{
    (void)events;
    channel_drain(arg);
}

bool channel_open(struct channel *channel, struct loop *loop, int socket)
{
    fcntl(socket, F_SETFL, O_NONBLOCK);
    channel->socket = socket;
    channel->loop = loop;
    channel->last_id = WIRE_READY_ID;
    channel->watch = loop_watch(loop, socket, EPOLLIN, on_ready, channel);
    if (!channel->watch)
        channel_close(channel);
    return channel->watch != NULL;
}

void channel_close(struct channel *channel)
{
    if (channel->watch)
        loop_unwatch(channel->loop, &channel->watch);
    if (channel->socket >= 0)
        close(take_fd(&channel->socket));
    while (channel->calls) {
        struct channel_call *call = channel->calls;
        channel->calls = call->next;
        end_call(call, -ECONNRESET, "the other end is gone");
    }
}

static int await_answer(struct channel *channel, struct channel_call *call)
{
    while (!call->done) {
        int late = await_wake(-1);
        if (late == 0 || call->done)
            continue;
        *find_call(channel, call->id) = call->next;
        return fail_set(call->fail, late, "%s", late == -ECANCELED ? "cancelled" : "out of time");
    }
    return call->answer.code;
}

/* A full queue means that the other end is busy: try again a little later. */
static int send_when_room(struct channel *channel, const struct wire_head *head, struct slice text, const int *fds,
                          size_t fd_count)
{
    for (;;) {
        if (channel->socket < 0)
            return -ECONNRESET;
        int sent = wire_send(channel->socket, head, text, fds, fd_count);
        if (sent != -EAGAIN)
            return sent == -EPIPE ? -ECONNRESET : sent;
        int late = await_sleep(1);
        if (late < 0)
            return late;
    }
}

static uint32_t next_id(struct channel *channel)
{
    if (++channel->last_id <= WIRE_READY_ID)
        channel->last_id = WIRE_READY_ID + 1;
    return channel->last_id;
}

static void begin_call(struct channel *channel, struct channel_call *call, uint32_t id, struct fail *fail)
{
    *call = (struct channel_call){.next = channel->calls, .id = id, .fiber = fiber_current(), .fail = fail};
    for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
        call->answer.fds[i] = -1;
    channel->calls = call;
}

int channel_call(struct channel *channel, struct wire_head *head, struct slice text, const int *fds, size_t fd_count,
                 struct channel_answer *ret, struct fail *fail)
{
    head->id = next_id(channel);
    int sent = send_when_room(channel, head, text, fds, fd_count);
    if (sent < 0)
        return fail_set(fail, sent, "cannot send: %s", strerror(-sent));
    struct channel_call call;
    begin_call(channel, &call, head->id, fail);
    int code = await_answer(channel, &call);
    *ret = call.answer;
    return code;
}

int channel_expect(struct channel *channel, uint32_t id, struct channel_answer *ret, struct fail *fail)
{
    struct channel_call call;
    begin_call(channel, &call, id, fail);
    int code = await_answer(channel, &call);
    *ret = call.answer;
    return code;
}

int channel_tell(struct channel *channel, struct wire_head *head)
{
    head->id = next_id(channel);
    return channel->socket < 0 ? -ECONNRESET : wire_send(channel->socket, head, (struct slice){0}, NULL, 0);
}
