/* example.h - the examples of messages.def as a message: what documents show and tests send. */
#ifndef SLUICE_SCHEMAS_MESSAGES_EXAMPLE_H
#define SLUICE_SCHEMAS_MESSAGES_EXAMPLE_H

#include "schemas/messages/message.h"

/* Appends message `id` with every field, optional ones too, set to its example. */
bool message_example(enum message_id id, struct buffer *out, struct refusal *no);

#endif
