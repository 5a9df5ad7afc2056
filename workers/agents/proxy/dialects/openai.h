/* openai.h - what OpenAI's two dialects share. Pure. */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_OPENAI_H
#define SLUICE_WORKERS_AGENTS_PROXY_DIALECTS_OPENAI_H

#include "workers/agents/proxy/dialects/body.h"
#include "workers/agents/proxy/dialects/dialect.h"

/* A format of the answer that constrains nothing: none, or one of the type "text". */
bool openai_format_is_text(struct body *body, const struct body_place *format);

const char *openai_error_code(enum reply_error error);
/* {"error": {message, type, code}} */
json_t *openai_error(enum reply_error error, const char *words);
void openai_write_error(enum reply_error error, const char *words, struct buffer *out);
void openai_write_count(uint64_t tokens, struct buffer *out);

#endif
