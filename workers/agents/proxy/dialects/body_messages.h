/*
 * body_messages.h - what a body says becomes messages, one after the other, and tools (said.h). The message in hand
 * gathers its text; it ends when the next begins. Functions return false after a refusal (body.h). Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_BODY_MESSAGES_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_BODY_MESSAGES_H

#include "workers/agents/proxy/dialects/body.h"

/* The whole of a dialect's `read`: a body that is no object and one without messages are refused; results get names. */
int body_run(const json_t *json, bool (*read)(struct body *body, const struct body_place *root),
             struct said_request *ret, struct fail *fail);

/* Ends the message in hand and begins another, which stands at `place`. */
bool body_begin(struct body *body, const struct body_place *place, enum said_role role);
bool body_end(struct body *body);
/* What the `role` of a message says. */
struct body_role {
    const char *word; /* NULL ends them */
    enum said_role role;
};
bool body_role(struct body *body, const struct body_place *message, const struct body_role *roles, enum said_role *ret);
/* The message in hand, or NULL; it moves when another begins. */
struct said *body_message(struct body *body);

/* ---- to the message in hand: texts, each behind a line end ---- */
bool body_add_text(struct body *body, const struct body_place *in, const char *key);
bool body_add_words(struct body *body, const char *words);
bool body_append_text(struct body *body, const struct body_place *in, const char *key); /* without a line end */
bool body_add_thinking(struct body *body, const struct body_place *in, const char *key);
bool body_append_thinking(struct body *body, const struct body_place *in, const char *key); /* without a line end */
/* A string, or a list of parts of which each has a type among "these|words" and a text. */
bool body_add_content(struct body *body, const struct body_place *content, const char *types);
/* A handle without the prefix that it was given back with; the first of a message stays. */
bool body_add_handle(struct body *body, const char *handle, const char *prefix);
/* NULL after a refusal. */
struct said_call *body_add_call(struct body *body, const struct body_place *place);
/* The call's arguments: a string of JSON, an object. */
bool body_arguments_text(struct body *body, const struct body_place *in, const char *key, struct said_call *call);
bool body_arguments(struct body *body, const struct body_place *in, const char *key, struct said_call *call);

/* Puts a namespace and "." before a name; NULL: none. */
bool body_put_space(struct body *body, const char *space, char **name);
/* A tool whose name, description and schema (of that key) stand in an object; another may not have its name. */
bool body_add_tool(struct body *body, const struct body_place *place, const char *space, const char *schema);
/* Whether tools are called is the model's choice: words for that, and for "none", which leaves the tools out. Other
 * choices are refused, where there are tools. */
bool body_tool_choice(struct body *body, const struct body_place *choice, const char *free, const char *none);

#endif
