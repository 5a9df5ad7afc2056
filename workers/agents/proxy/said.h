/*
 * said.h - what a harness sends to its model, whatever its dialect (dialects/dialect.h): messages in a flat list and
 * the tools it offers. Every text is owned, UTF-8 and NUL-terminated. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_SAID_H
#define SLUICE_WORKERS_AGENTS_PROXY_SAID_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAID_MESSAGES_MAX = 4096, SAID_CALLS_MAX = 64, SAID_TOOLS_MAX = 64, SAID_DEPTH_MAX = 64 };

enum said_role { SAID_SYSTEM, SAID_USER, SAID_ASSISTANT, SAID_TOOL };

/* A call of a tool, in a message of the assistant's. */
struct said_call {
    char *id; /* as the harness names it: the handle, where the proxy minted it; "": it has none */
    char *name;
    json_t *arguments; /* an object; NULL where they were none: then `text` */
    char *text;        /* as they were sent; NULL where they came as JSON */
};

struct said {
    enum said_role role;
    char *text;              /* parts joined by line ends, empty ones left out; "" where there is none */
    char *thinking;          /* assistant: what it thought, where the dialect gives that back; NULL: nothing */
    char *handle;            /* assistant: reply.handle, where the dialect gives it back: signature, item id; NULL */
    struct said_call *calls; /* assistant */
    size_t call_count, call_capacity;
    char *call_id; /* tool: the call it answers; "": it names none */
    char *name;    /* tool: of that call, where the dialect or a call before tells it; else NULL */
    bool is_error; /* tool */
};

struct said_tool {
    char *name, *doc;   /* doc may be "" */
    json_t *parameters; /* a JSON Schema of an object */
};

/* One request for the next turn. said_request_finish it. */
struct said_request {
    char *model; /* as it was asked for; any is taken; NULL: the body does not say */
    struct said *messages;
    size_t count, capacity;
    struct said_tool *tools;
    size_t tool_count, tool_capacity;
    bool is_stream;      /* as the body says; Google's path says it instead */
    bool wants_usage;    /* in the stream */
    uint64_t max_tokens; /* as it was asked for; 0: it says nothing */
};

/* Each appends one, zeroed; NULL: out of memory, or beyond the bounds above. The others may move. */
struct said *said_add(struct said_request *request, enum said_role role);
struct said_call *said_add_call(struct said *message);
struct said_tool *said_add_tool(struct said_request *request);
/* Tells each result without a name that of the last call before it with its id. False: out of memory. */
bool said_name_results(struct said_request *request);
void said_drop_tools(struct said_request *request);
/* Idempotent. */
void said_request_finish(struct said_request *request);

#endif
