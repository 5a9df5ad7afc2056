/*
 * message_craft.h - for tests of messages: messages that are good but for one field.
 */
#ifndef SLUICE_TESTS_SCHEMAS_MESSAGES_MESSAGE_CRAFT_H
#define SLUICE_TESTS_SCHEMAS_MESSAGES_MESSAGE_CRAFT_H

#include "common/base/cleanup.h"
#include "schemas/messages/message.h"
#include "schemas/messages/reader.h"

#define EACH_MESSAGE(id) (enum message_id id = 0; id < MESSAGE_COUNT; id++)

/* A message of examples but for one field. */
struct flaw {
    const struct field *field;
    unsigned times;     /* how often it stands there */
    struct slice value; /* its bytes; empty: the example's */
};

static inline void pack_example(msgpack_packer *packer, const struct field *field)
{
    const char *text = (const char *)field->example.data;
    switch (field->type) {
    case FIELD_STR: packer_str(packer, field->example); break;
    case FIELD_BIN: packer_bin(packer, field->example); break;
    case FIELD_UINT: msgpack_pack_uint64(packer, strtoull(text, NULL, 10)); break;
    case FIELD_REAL: msgpack_pack_double(packer, strtod(text, NULL)); break;
    case FIELD_BOOL: text[0] == '1' ? msgpack_pack_true(packer) : msgpack_pack_false(packer); break;
    case FIELD_JOBS: msgpack_pack_array(packer, 0); break;
    }
}

static inline void pack_faulty(const struct message *message, const struct flaw *fault, size_t extra,
                               struct buffer *out)
{
    msgpack_packer packer;
    packer_init(&packer, out);
    packer_str(&packer, slice_from_str(message->wire));
    msgpack_pack_map(&packer, message->field_count - 1 + fault->times + extra);
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        bool faulty = field == fault->field;
        for (unsigned times = faulty ? fault->times : 1; times > 0; times--) {
            packer_str(&packer, slice_from_str(field->name));
            if (faulty && fault->value.len)
                buffer_append(out, fault->value.data, fault->value.len);
            else
                pack_example(&packer, field);
        }
    }
    assert_false(out->failed);
}

#endif
