/*
 * events.h - what the dialects' writers share: JSON as bytes, and as Server-Sent Events. Values that are handed over
 * are taken; where memory is out, the buffer has failed. Pure.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_EVENTS_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_EVENTS_H

#include "workers/agents/proxy/dialects/dialect.h"

/* A string of JSON, repaired; NULL for out of memory. */
json_t *event_text(struct slice text);
json_t *event_str(const char *text); /* NULL: "" */
json_t *event_id(const char *prefix, const char *id);
/* A call's arguments as a string of JSON, or as the object they are; NULL: {}. */
json_t *event_arguments(const json_t *arguments);
json_t *event_object(const json_t *arguments);
json_t *event_number(uint64_t number);

void event_append(json_t *list, json_t *value, struct buffer *out);
void event_json(struct buffer *out, json_t *json);
/* "data: JSON", with "event: NAME" before it, if it is not NULL. */
void event_put(struct buffer *out, const char *name, json_t *json);

/* What of the reply's text was not told yet. */
struct slice event_rest(const struct reply_stream *stream, const struct reply *reply);
struct slice event_rest_of_thinking(const struct reply_stream *stream, const struct reply *reply);
bool event_has_text(const struct reply *reply);

#endif
