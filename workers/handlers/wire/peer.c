#include "workers/handlers/wire/peer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/text.h"

static struct slice name_of(const uint64_t *id) { return slice_of(id, sizeof(*id)); }

/* ---- what it says --------------------------------------------------------------------------- */

#define ANSWER(name, roles) [MSG_##name] = {true, roles, offsetof(struct msg_##name, id), 0}
#define REQUEST(name, roles)                                                                                           \
    [MSG_##name] = {false, roles, offsetof(struct msg_##name, id), offsetof(struct msg_##name, call)}

/* What a handler may say of a job, in which roles, and where the message has the job's id and the request's number. */
static const struct turn {
    bool is_answer;
    unsigned roles; /* bits */
    size_t id_at, call_at;
} turns[MESSAGE_COUNT] = {
    REQUEST(handler_sample, 1 << HANDLER_AGENT),
    REQUEST(handler_fork, 1 << HANDLER_AGENT),
    REQUEST(handler_tool, 1 << HANDLER_AGENT),
    REQUEST(handler_exec, ~0U),
    REQUEST(handler_read, ~0U),
    REQUEST(handler_write, ~0U),
    REQUEST(handler_note, ~0U),
    REQUEST(handler_clock, ~0U),
    ANSWER(handler_end, 1 << HANDLER_AGENT),
    ANSWER(handler_score, 1 << HANDLER_EVALUATOR),
    ANSWER(handler_output, 1 << HANDLER_TOOL),
    ANSWER(handler_decision, 1 << HANDLER_HOOK),
    ANSWER(handler_failed, ~0U),
};

static uint64_t number_at(const struct handler_message *message, size_t offset)
{
    return *(const uint64_t *)((const uint8_t *)&message->as + offset);
}

static uint64_t id_of(const struct handler_message *message) { return number_at(message, turns[message->id].id_at); }
static uint64_t call_of(const struct handler_message *message)
{
    return number_at(message, turns[message->id].call_at);
}

static void break_off(struct handler_peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void break_off(struct handler_peer *peer, const char *format, ...)
{
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    peer->broken(peer->arg, CONNECTION_FAULT, why);
}

static void take_hello(struct handler_peer *peer, const struct msg_handler_hello *hello)
{
    struct refusal no = {0};
    if (peer->has_hello)
        break_off(peer, "it said handler.hello twice");
    else if (!offers_parse(hello->offers, &peer->offers, &no))
        break_off(peer, "its handler.hello is refused: %.200s", no.text);
    else {
        peer->has_hello = true;
        peer->greeted(peer->arg);
    }
}

static bool was_answered(const struct handler_peer *peer, uint64_t id)
{
    for (size_t i = 0; i < PEER_ANSWERED_KEPT; i++)
        if (peer->answered[i] == id)
            return true;
    return false;
}

/* Of no job that it has. */
static void take_stray(struct handler_peer *peer, const struct handler_message *message)
{
    const char *wire = message_get(message->id)->wire;
    const uint64_t id = id_of(message);
    if (id > peer->last_id)
        break_off(peer, "it sent %s of job %llu, which it was not given", wire, (unsigned long long)id);
    else if (was_answered(peer, id))
        break_off(peer, "it sent %s of job %llu, which it had ended", wire, (unsigned long long)id);
    else
        peer->ignored++;
}

static void take_turn(struct handler_peer *peer, struct handler_job *job, struct handler_message *message)
{
    const struct turn *turn = &turns[message->id];
    const char *wire = message_get(message->id)->wire;
    if (!(turn->roles & 1U << job->role))
        break_off(peer, "it sent %s of job %llu, which is of the role %s", wire, (unsigned long long)job->id,
                  handler_role_wire(job->role));
    else if (job->is_answered)
        break_off(peer, "it sent %s of job %llu, which it had ended", wire, (unsigned long long)job->id);
    else if (job->is_open)
        break_off(peer, "it sent %s of job %llu, of which a request is open", wire, (unsigned long long)job->id);
    else {
        job->is_answered = turn->is_answer;
        job->is_open = !turn->is_answer;
        if (turn->is_answer)
            peer->answered[peer->done++ % PEER_ANSWERED_KEPT] = job->id;
        job->message = *message;
        job->has_message = true;
        *message = (struct handler_message){0};
        fiber_wake(job->fiber);
    }
}

static void heard(void *arg, struct handler_message *message)
{
    struct handler_peer *peer = arg;
    if (message->id == MSG_handler_hello) {
        take_hello(peer, &message->as.handler_hello);
    } else if (!peer->has_hello) {
        break_off(peer, "it sent %s before handler.hello", message_get(message->id)->wire);
    } else {
        const uint64_t id = id_of(message);
        struct handler_job *job = table_find(&peer->jobs, name_of(&id));
        if (job)
            take_turn(peer, job, message);
        else
            take_stray(peer, message);
    }
    handler_message_finish(message);
}

static void broken(void *arg, enum connection_break how, const char *why)
{
    struct handler_peer *peer = arg;
    peer->broken(peer->arg, how, why);
}

/* ---- life ------------------------------------------------------------------------------------- */

bool peer_open(struct handler_peer *peer, struct loop *loop, int fd, int out_fd, bool is_lines)
{
    peer->connection = (struct connection){
        .fd = -1, .is_lines = is_lines, .heard = heard, .broken = broken, .arg = peer};
    peer->has_hello = false;
    return connection_open(&peer->connection, loop, fd, out_fd);
}

void peer_close(struct handler_peer *peer, const char *why)
{
    size_t at = 0;
    for (struct handler_job *job; (job = table_next(&peer->jobs, &at));) {
        fail_set(&job->lost, peer->lost_code ? peer->lost_code : -EOWNERDEAD, "%s", why);
        job->peer = NULL;
        fiber_wake(job->fiber);
    }
    table_finish(&peer->jobs);
    peer->jobs = (struct table){0};
    connection_close(&peer->connection);
    offers_finish(&peer->offers);
    peer->has_hello = false;
}

/* ---- a job -------------------------------------------------------------------------------------- */

int handler_job_begin(struct handler_job *job, struct handler_peer *peer, enum handler_role role,
                      struct msg_handler_begin *begin, struct fail *fail)
{
    struct refusal no = {0};
    *job = (struct handler_job){.id = ++peer->last_id, .role = role, .fiber = fiber_current()};
    begin->id = job->id;
    begin->role = slice_from_str(handler_role_wire(role));
    if (!table_put(&peer->jobs, name_of(&job->id), job))
        return fail_memory(fail);
    job->peer = peer;
    if (connection_send(&peer->connection, MSG_handler_begin, begin, &no))
        return 0;
    job->is_answered = true; /* it never heard of it */
    handler_job_end(job, "");
    return fail_set(fail, -EINVAL, "no handler can be given this: %s", no.text);
}

int handler_job_next(struct handler_job *job, struct fail *fail)
{
    handler_message_finish(&job->message);
    while (!job->has_message) {
        if (job->lost.code)
            return fail_set(fail, job->lost.code, "%s", job->lost.text);
        int code = await_wake(-1);
        if (code < 0 && !job->has_message)
            return fail_set(fail, code, code == -ECANCELED ? "cancelled" : "the time is up, and it has not answered");
    }
    job->has_message = false;
    return 0;
}

void handler_job_reply(struct handler_job *job, struct msg_handler_reply *reply)
{
    struct refusal no = {0};
    reply->id = job->id;
    reply->call = call_of(&job->message);
    job->is_open = false;
    if (!job->peer || connection_send(&job->peer->connection, MSG_handler_reply, reply, &no))
        return;
    const struct slice words = text_cut(no.text, 500);
    const struct msg_handler_reply refusal = {
        .id = reply->id, .call = reply->call, .refusal = words, .has_refusal = true};
    connection_send(&job->peer->connection, MSG_handler_reply, &refusal, &no);
}

void handler_job_refuse(struct handler_job *job, const char *format, ...)
{
    char words[512];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    text_repair(words);
    handler_job_reply(job, &(struct msg_handler_reply){.refusal = slice_from_str(words), .has_refusal = true});
}

void handler_job_end(struct handler_job *job, const char *why)
{
    struct refusal no;
    struct handler_peer *peer = job->peer;
    handler_message_finish(&job->message);
    job->has_message = false;
    if (!peer)
        return;
    table_take(&peer->jobs, name_of(&job->id));
    job->peer = NULL;
    if (!job->is_answered)
        connection_send(&peer->connection, MSG_handler_cancel,
                        &(struct msg_handler_cancel){.id = job->id, .why = text_cut(why, 256)}, &no);
}
