/*
 * json_lines.h - the messages of handlers as lines of JSON, for programs that have no MessagePack: an object a line,
 * {"type": "handler.begin", "id": 1, ...}. A STR that is JSON (field_is_json) is a value there; a BIN is "data" where
 * it is text, else "data_base64". Unknown names are refused, as they are in a task: a wrong name would go unnoticed.
 */
#ifndef SLUICE_WORKERS_HANDLERS_WIRE_JSON_LINES_H
#define SLUICE_WORKERS_HANDLERS_WIRE_JSON_LINES_H

#include "schemas/messages/message.h"

/* Appends the line, '\n' included. False with a refusal, and nothing appended: message_encode would refuse it. */
bool json_lines_encode(enum message_id id, const void *message, struct buffer *out, struct refusal *no);
/* Appends the message as message_encode has it. False with a refusal; what was appended is then of no use. */
bool json_lines_decode(struct slice line, struct buffer *out, struct refusal *no);

#endif
