#include "schemas/messages/example.h"

#include "common/base/cleanup.h"

enum { EXAMPLE_TOKEN = 41 };

/* Examples are string literals, so each ends in a NUL; `packed` keeps a JOBS field's bytes. */
static void set_value(const struct field *field, void *value, struct buffer *packed)
{
    const char *text = (const char *)field->example.data;
    switch (field->type) {
    case FIELD_STR:
    case FIELD_BIN: *(struct slice *)value = field->example; break;
    case FIELD_UINT: *(uint64_t *)value = strtoull(text, NULL, 10); break;
    case FIELD_REAL: *(double *)value = strtod(text, NULL); break;
    case FIELD_BOOL: *(bool *)value = strcmp(text, "1") == 0; break;
    case FIELD_JOBS:
        jobs_append(packed, field->example, EXAMPLE_TOKEN);
        *(struct jobs *)value = (struct jobs){buffer_peek(packed), 1};
        break;
    }
}

bool message_example(enum message_id id, struct buffer *out, struct refusal *no)
{
    const struct message *message = message_get(id);
    AUTO_BUFFER packed = {0};
    AUTO_FREE uint8_t *in = calloc(1, message->size);
    if (!in)
        return refuse(no, REFUSAL_TOO_LARGE, "", "%s: out of memory", message->wire);
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        set_value(field, in + field->offset, &packed);
        *(bool *)(in + field->has_offset) = true;
    }
    return message_encode(id, in, out, no);
}
