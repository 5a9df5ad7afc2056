/* dialect_replies.h - turns to be told, and how they are streamed piece by piece. */
#ifndef SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_REPLIES_H
#define SLUICE_TESTS_WORKERS_AGENTS_PROXY_DIALECT_REPLIES_H

#include "tests/workers/agents/proxy/dialect_world.h"

enum { CALLS_OF_TURN = 2 };

/* A turn that a test tells, and what its calls' arguments are made of. */
struct told {
    const char *name;
    const char *arguments[CALLS_OF_TURN]; /* JSON */
    struct reply reply;
    struct reply_call calls[CALLS_OF_TURN];
};

static const struct told turns[] = {
    {"calls",
     {"{ \"command\": \"l\\u00f6\\n\", \"ms\": 1000.0 }", "{}"},
     {.text = " Löok \n", .thinking = " hm ", .finish = REPLY_CALLS}},
    {"bare-calls", {"{\"a\":[1,2.5]}"}, {.text = "", .finish = REPLY_CALLS}},
    {"cut", {NULL}, {.text = "one two \xf0\x9f\x8c\x8d three", .finish = REPLY_LENGTH}},
    {"thought", {NULL}, {.text = "", .thinking = "hm", .finish = REPLY_STOP}},
    {"empty", {NULL}, {.text = "", .finish = REPLY_STOP}},
};
enum { TURN_COUNT = sizeof(turns) / sizeof(*turns) };

/* A turn ready to be told; told_finish it. */
static inline void told_init(const struct told *turn, struct told *ret)
{
    static const char *const ids[] = {"call_1", "call_2"}, *const names[] = {"Bash", "mcp__x.read"};
    *ret = *turn;
    ret->reply.id = "t1";
    ret->reply.handle = "H_-1";
    ret->reply.model = "M";
    ret->reply.created = 1700000000;
    ret->reply.prompt_tokens = 10;
    ret->reply.cached_tokens = 4;
    ret->reply.sampled_tokens = 7;
    ret->reply.calls = ret->calls;
    for (size_t i = 0; i < CALLS_OF_TURN && ret->arguments[i]; i++)
        ret->calls[ret->reply.call_count++] = (struct reply_call){
            ids[i], names[i], parse_json(ret->arguments[i], strlen(ret->arguments[i]))};
}

static inline void told_finish(struct told *told)
{
    for (size_t i = 0; i < told->reply.call_count; i++)
        json_decref((json_t *)(uintptr_t)told->calls[i].arguments);
}

enum { STREAM_THINKING, STREAM_TEXT };

/* The first two pieces of `step` bytes or so of its thinking or text. */
static inline void stream_pieces(const struct dialect *dialect, const struct reply *reply, int which, size_t step,
                                 struct reply_stream *stream, struct buffer *out)
{
    const char *all = which == STREAM_THINKING ? reply->thinking : reply->text;
    const size_t len = all ? strlen(all) : 0;
    for (size_t at = 0, end; step > 0 && at < len && at < 2 * step; at = end) {
        end = at + step < len ? at + step : len;
        while ((all[end] & 0xc0) == 0x80)
            end++;
        (which == STREAM_THINKING ? dialect->stream_thinking : dialect->stream_text)(stream, reply,
                                                                                     slice_of(all + at, end - at), out);
    }
}

/* The whole stream, its thinking and text in pieces of `step` bytes or so at first; 0: all at the end. */
static inline void stream_reply(const struct dialect *dialect, const struct reply *reply, size_t step,
                                struct buffer *out)
{
    struct reply_stream stream = {0};
    const struct reply begun = {
        .id = reply->id, .model = reply->model, .created = reply->created, .prompt_tokens = reply->prompt_tokens};
    dialect->stream_begin(&stream, &begun, out);
    stream_pieces(dialect, reply, STREAM_THINKING, step, &stream, out);
    stream_pieces(dialect, reply, STREAM_TEXT, step, &stream, out);
    dialect->stream_end(&stream, reply, true, out);
    assert_false(out->failed);
}

#endif
