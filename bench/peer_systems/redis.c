/*
 * Redis, in two ways. Lists: a script moves a batch from the stage's list to the worker's own, LMOVE by
 * LMOVE, and BLMOVE waits where there is nothing; the batch goes on and the worker's list goes away in
 * one transaction. What a dead worker's list holds stays there: to find it is left to the user. Streams:
 * a consumer group each; added to the next, acknowledged and deleted in one transaction; once a second each worker
 * claims what another has held for CLAIM_MS.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/peer_systems/peers.h"
#include "common/base/clock.h"

enum { CLAIM_MS = 5000 };

/* ---- the protocol ------------------------------------------------------------------------------------- */

/* One command of `count` words, each a struct slice. */
static void say(struct wire *wire, size_t count, const struct slice words[])
{
    buffer_printf(&wire->out, "*%zu\r\n", count);
    for (size_t i = 0; i < count; i++) {
        buffer_printf(&wire->out, "$%zu\r\n", words[i].len);
        buffer_append(&wire->out, words[i].data, words[i].len);
        buffer_append_str(&wire->out, "\r\n");
    }
}

/* A command in words that hold no blanks. */
static void say_text(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say_text(struct wire *wire, const char *format, ...)
{
    char text[512];
    struct slice words[32];
    size_t count = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *rest = text, *word; (word = strsep(&rest, " "));)
        words[count++] = slice_from_str(word);
    say(wire, count, words);
}

struct reply {
    char type;         /* '+', ':', '$' or '*' */
    int64_t number;    /* of ':'; elements of '*', -1: none */
    struct slice text; /* of '+' and '$' */
};

/* The next one; the elements of '*' follow it. An error ends the process. */
static struct reply hear(struct wire *wire)
{
    struct slice line = wire_line(wire);
    struct reply reply = {.type = (char)line.data[0], .text = slice_of(line.data + 1, line.len - 1)};
    if (reply.type == '-')
        die("redis", line);
    if (reply.type == '+')
        return reply;
    reply.number = strtoll((const char *)reply.text.data, NULL, 10);
    reply.text = slice_of(NULL, 0);
    if (reply.type == '$' && reply.number >= 0) {
        reply.text = wire_take(wire, (size_t)reply.number + 2);
        reply.text.len -= 2;
    }
    return reply;
}

/* Passes over a whole reply. */
static void skip(struct wire *wire)
{
    for (int64_t left = 1; left > 0; left--) {
        struct reply reply = hear(wire);
        if (reply.type == '*' && reply.number > 0)
            left += reply.number;
    }
}

static void open_both(struct link *link)
{
    if (link->take.fd == 0)
        wire_open(&link->take, link->port);
    if (link->give.fd == 0)
        wire_open(&link->give, link->port);
}

static void empty(struct link *link)
{
    open_both(link);
    say_text(&link->give, "FLUSHALL");
    wire_flush(&link->give);
    skip(&link->give);
}

static size_t confirm(struct link *link, bool waits)
{
    size_t count = 0;
    wire_forget(&link->give);
    for (; (waits && count == 0) || wire_pending(&link->give); count++)
        skip(&link->give);
    return count;
}

/* QUEUED for each command of a transaction, and what came of all. */
static void end_transaction(struct link *link, size_t commands)
{
    say_text(&link->take, "EXEC");
    wire_flush(&link->take);
    for (size_t i = 0; i < commands + 1; i++)
        skip(&link->take);
    struct reply reply = hear(&link->take);
    if (reply.type != '*' || reply.number != (int64_t)commands)
        die("redis", slice_from_str("a transaction was not carried out"));
    for (size_t i = 0; i < commands; i++)
        skip(&link->take);
}

/* ---- lists -------------------------------------------------------------------------------------------- */

static const char take_script[] = "local got = {} "
                                  "for i = 1, tonumber(ARGV[1]) do "
                                  "  local job = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT') "
                                  "  if not job then break end "
                                  "  got[i] = job "
                                  "end "
                                  "return got";

static void lists_attend(struct link *link)
{
    open_both(link);
    say(&link->take, 3,
        (struct slice[]){slice_from_str("SCRIPT"), slice_from_str("LOAD"), slice_from_str(take_script)});
    wire_flush(&link->take);
    struct slice sha = hear(&link->take).text;
    snprintf(link->script, sizeof(link->script), "%.*s", SLICE_ARG(sha));
}

static size_t lists_take(struct link *link, struct job jobs[BATCH])
{
    const char *from = stage_names[link->stage];
    wire_forget(&link->take);
    say_text(&link->take, "EVALSHA %s 2 %s %s %d", link->script, from, link->name, BATCH);
    wire_flush(&link->take);
    int64_t count = hear(&link->take).number;
    for (int64_t i = 0; i < count; i++)
        jobs[i].body = hear(&link->take).text;
    if (count > 0)
        return (size_t)count;
    say_text(&link->take, "BLMOVE %s %s RIGHT LEFT 0", from, link->name);
    wire_flush(&link->take);
    jobs[0].body = hear(&link->take).text;
    return 1;
}

static void lists_submit(struct link *link, int stage, struct slice body)
{
    open_both(link);
    say(&link->give, 3, (struct slice[]){slice_from_str("LPUSH"), slice_from_str(stage_names[stage]), body});
}

static void lists_finish(struct link *link, const struct job jobs[], size_t count)
{
    (void)jobs, (void)count;
    say_text(&link->take, "DEL %s", link->name);
    wire_flush(&link->take);
    skip(&link->take);
}

static void lists_pass(struct link *link, const struct job jobs[], size_t count)
{
    struct slice words[BATCH + 2] = {slice_from_str("LPUSH"), slice_from_str(stage_names[link->stage + 1])};
    for (size_t i = 0; i < count; i++)
        words[i + 2] = jobs[i].body;
    say_text(&link->take, "MULTI");
    say(&link->take, count + 2, words);
    say_text(&link->take, "DEL %s", link->name);
    end_transaction(link, 2);
}

const struct peer peer_redis_lists = {.name = "redis-lists",
                                      .prepare = empty,
                                      .attend = lists_attend,
                                      .take = lists_take,
                                      .submit = lists_submit,
                                      .confirm = confirm,
                                      .finish = lists_finish,
                                      .pass = lists_pass};

/* ---- streams ------------------------------------------------------------------------------------------ */

static void streams_prepare(struct link *link)
{
    empty(link);
    for (int stage = 0; stage <= DONE; stage++)
        say_text(&link->give, "XGROUP CREATE %s all $ MKSTREAM", stage_names[stage]);
    wire_flush(&link->give);
    for (int stage = 0; stage <= DONE; stage++)
        skip(&link->give);
}

static void streams_attend(struct link *link)
{
    open_both(link);
    link->claimed_ms = clock_ms();
}

/* Entries of a stream: each its id and its fields, of which we write one. */
static size_t read_entries(struct link *link, struct job jobs[BATCH])
{
    int64_t count = hear(&link->take).number;
    for (int64_t i = 0; i < count; i++) {
        hear(&link->take);
        jobs[i].handle = hear(&link->take).text;
        hear(&link->take);
        hear(&link->take);
        jobs[i].body = hear(&link->take).text;
    }
    return count > 0 ? (size_t)count : 0;
}

static size_t claim(struct link *link, struct job jobs[BATCH])
{
    link->claimed_ms = clock_ms();
    say_text(&link->take, "XAUTOCLAIM %s all %s %d 0 COUNT %d", stage_names[link->stage], link->name, CLAIM_MS, BATCH);
    wire_flush(&link->take);
    hear(&link->take); /* an array of the next id, entries, and ids of what was deleted */
    hear(&link->take);
    size_t count = read_entries(link, jobs);
    skip(&link->take);
    return count;
}

static size_t streams_take(struct link *link, struct job jobs[BATCH])
{
    for (;;) {
        wire_forget(&link->take);
        size_t count = clock_ms() - link->claimed_ms > 1000 ? claim(link, jobs) : 0;
        if (count > 0)
            return count;
        say_text(&link->take, "XREADGROUP GROUP all %s COUNT %d BLOCK 1000 STREAMS %s >", link->name, BATCH,
                 stage_names[link->stage]);
        wire_flush(&link->take);
        if (hear(&link->take).number <= 0)
            continue;
        hear(&link->take); /* an array of the stream's name and its entries */
        hear(&link->take);
        return read_entries(link, jobs);
    }
}

static void add(struct wire *wire, int stage, struct slice body)
{
    say(wire, 5,
        (struct slice[]){slice_from_str("XADD"), slice_from_str(stage_names[stage]), slice_from_str("*"),
                         slice_from_str("job"), body});
}

static void streams_submit(struct link *link, int stage, struct slice body)
{
    open_both(link);
    add(&link->give, stage, body);
}

/* In a transaction: the jobs that are not DONE's go on, and none is this stage's any more. */
static void streams_pass(struct link *link, const struct job jobs[], size_t count)
{
    struct slice name = slice_from_str(stage_names[link->stage]);
    struct slice ack[BATCH + 3] = {slice_from_str("XACK"), name, slice_from_str("all")};
    struct slice del[BATCH + 2] = {slice_from_str("XDEL"), name};
    bool goes_on = link->stage != DONE;
    say_text(&link->take, "MULTI");
    for (size_t i = 0; i < count; i++) {
        ack[i + 3] = del[i + 2] = jobs[i].handle;
        if (goes_on)
            add(&link->take, link->stage + 1, jobs[i].body);
    }
    say(&link->take, count + 3, ack);
    say(&link->take, count + 2, del);
    end_transaction(link, (goes_on ? count : 0) + 2);
}

const struct peer peer_redis_streams = {.name = "redis-streams",
                                        .prepare = streams_prepare,
                                        .attend = streams_attend,
                                        .take = streams_take,
                                        .submit = streams_submit,
                                        .confirm = confirm,
                                        .finish = streams_pass,
                                        .pass = streams_pass};
