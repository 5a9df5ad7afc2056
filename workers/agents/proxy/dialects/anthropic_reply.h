/* anthropic_reply.h - what is answered in Anthropic's Messages (dialect.h). Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_ANTHROPIC_REPLY_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_ANTHROPIC_REPLY_H

#include "workers/agents/proxy/dialects/dialect.h"

void anthropic_write(const struct reply *reply, struct buffer *out);
void anthropic_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out);
void anthropic_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                               struct buffer *out);
void anthropic_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                           struct buffer *out);
void anthropic_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out);
void anthropic_write_error(enum reply_error error, const char *words, struct buffer *out);
void anthropic_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out);
void anthropic_write_count(uint64_t tokens, struct buffer *out);

#endif
