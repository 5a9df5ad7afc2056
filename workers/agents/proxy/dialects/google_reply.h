/* google_reply.h - what is answered in Google's generateContent (dialect.h), and handles as its signatures. Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_GOOGLE_REPLY_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_GOOGLE_REPLY_H

#include "workers/agents/proxy/dialects/dialect.h"

void google_write(const struct reply *reply, struct buffer *out);
void google_stream_begin(struct reply_stream *stream, const struct reply *reply, struct buffer *out);
void google_stream_thinking(struct reply_stream *stream, const struct reply *reply, struct slice piece,
                            struct buffer *out);
void google_stream_text(struct reply_stream *stream, const struct reply *reply, struct slice piece, struct buffer *out);
void google_stream_end(struct reply_stream *stream, const struct reply *reply, bool wants_usage, struct buffer *out);
void google_write_error(enum reply_error error, const char *words, struct buffer *out);
void google_stream_error(struct reply_stream *stream, enum reply_error error, const char *words, struct buffer *out);
void google_write_count(uint64_t tokens, struct buffer *out);

/* The handle that a thoughtSignature holds in base64; of another's, the signature itself; NULL: out of memory. */
char *google_handle(const char *signature);

#endif
