/* responses_reply.h - what is answered in OpenAI's Responses (dialect.h), and how its ids are made. Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_RESPONSES_REPLY_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_RESPONSES_REPLY_H

#include "workers/agents/proxy/dialects/dialect.h"

#define RESPONSES_MESSAGE_ID "msg_" /* and the reply's handle */
#define RESPONSES_SPACE '.'         /* between the namespace of a tool and its name, as the model knows it */

void responses_write(const struct reply *reply, struct buffer *out);
void responses_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out);
void responses_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                               struct buffer *out);
void responses_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                           struct buffer *out);
void responses_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out);
void responses_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out);

#endif
