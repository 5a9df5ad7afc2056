/*
 * message_max.h - the bounds of messages.def as constants: MESSAGE_MAX(group_submit, stream) is the most that the field
 * takes, a number's value or a text's bytes. A bound beyond MESSAGE_MAX_LARGEST has none: using it does not compile.
 */
#ifndef SLUICE_SCHEMAS_MESSAGES_MESSAGE_MAX_H
#define SLUICE_SCHEMAS_MESSAGES_MESSAGE_MAX_H

#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX_LARGEST (1ull << 32)

/* Never made: each member's size is its bound, or 0. */
#define MESSAGE(name, wire, sender, doc) struct max_##name {
#define FIELD(type, name, need, min, max, example, doc) char name[(max) > MESSAGE_MAX_LARGEST ? 0 : (max)];
#define END(name)                                                                                                      \
    }                                                                                                                  \
    ;
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END

#define MESSAGE_MAX(message, field)                                                                                    \
    (sizeof(((struct max_##message *)0)->field) /                                                                      \
     (sizeof(char[sizeof(((struct max_##message *)0)->field) > 0 ? 1 : -1])))

#endif
