/*
 * message_json.h - a message of the broker's as JSON, and back, by the tables of messages.def: members are its fields
 * but the tag, and a field that is JSON itself is a JSON value here.
 */
#ifndef SLUICE_CLIENT_GATEWAY_API_MESSAGE_JSON_H
#define SLUICE_CLIENT_GATEWAY_API_MESSAGE_JSON_H

#include <jansson.h>

#include "schemas/messages/message.h"

/* Texts that a message borrows, kept for as long as it is needed. */
struct kept_texts {
    char **each;
    size_t count;
};
void kept_texts_finish(struct kept_texts *kept);
/* A copy that is kept; false: out of memory. */
bool kept_texts_add(struct kept_texts *kept, struct slice text, struct slice *ret);

/* Sets one field from a text of a path or query: numbers and true or false are read. False with a refusal. */
bool message_field_from_text(const struct message *message, const char *name, const char *text, struct kept_texts *kept,
                             void *out, struct refusal *no);
/* Sets the fields that the object has; texts are borrowed. Bounds are the encoder's to check. False: a refusal. */
bool message_from_json(const struct message *message, const json_t *object, struct kept_texts *kept, void *out,
                       struct refusal *no);
/* Whether it has all that it must have, but the tag. False with a refusal. */
bool message_is_complete(const struct message *message, const void *in, struct refusal *no);
/* Appends the members of an object, after a comma where `ret` does not end in a brace. No bodies of bytes. */
void message_append_members(const struct message *message, const void *in, struct buffer *ret);

#endif
