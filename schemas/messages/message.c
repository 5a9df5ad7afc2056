#include "schemas/messages/message.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/base/utf8.h"
#include "schemas/messages/reader.h"

/* ---- the tables -------------------------------------------------------------- */

#define MESSAGE(name_, wire_, sender_, doc_)                                                                           \
    static const struct message *describe_##name_(void)                                                                \
    {                                                                                                                  \
        typedef struct msg_##name_ self;                                                                               \
        static const char wire[] = wire_, doc[] = doc_;                                                                \
        enum { sender = SENDER_##sender_ };                                                                            \
        static const struct field fields[] = {
#define FIELD(type_, name_, need_, min_, max_, example_, doc_)                                                         \
    {.name = #name_,                                                                                                   \
     .name_len = sizeof(#name_) - 1,                                                                                   \
     .type = FIELD_##type_,                                                                                            \
     .need = FIELD_##need_,                                                                                            \
     .min = min_,                                                                                                      \
     .max = max_,                                                                                                      \
     .offset = offsetof(self, name_),                                                                                  \
     .has_offset = offsetof(self, has_##name_),                                                                        \
     .example = {(const uint8_t *)example_, sizeof(example_) - 1},                                                     \
     .doc = doc_},
#define END(name_)                                                                                                     \
    }                                                                                                                  \
    ;                                                                                                                  \
    static const struct message message = {.wire = wire,                                                               \
                                           .wire_len = sizeof(wire) - 1,                                               \
                                           .sender = (enum message_sender)sender,                                      \
                                           .doc = doc,                                                                 \
                                           .fields = fields,                                                           \
                                           .field_count = sizeof(fields) / sizeof(fields[0]),                          \
                                           .size = sizeof(self)};                                                      \
    return &message;                                                                                                   \
    }
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END

const struct message *message_get(enum message_id id)
{
    static const struct message *(*const all[])(void) = {
#define MESSAGE(name, wire, sender, doc) describe_##name,
#define FIELD(type, name, need, min, max, example, doc)
#define END(name)
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
    };
    return all[id]();
}

static const char *const refusal_wires[] = {
    "none",
#define REFUSAL(name, wire, doc) wire,
#include "schemas/messages/refusals.def"
#undef REFUSAL
};

static const char *const refusal_docs[] = {
    "",
#define REFUSAL(name, wire, doc) doc,
#include "schemas/messages/refusals.def"
#undef REFUSAL
};

const char *refusal_wire(enum refusal_reason reason) { return refusal_wires[reason]; }
const char *refusal_doc(enum refusal_reason reason) { return refusal_docs[reason]; }

static const char *const outcome_wires[] = {
#define OUTCOME(name, wire, trainable, doc) wire,
#include "schemas/outcomes.def"
#undef OUTCOME
};

static const bool outcome_trainables[] = {
#define OUTCOME(name, wire, trainable, doc) trainable,
#include "schemas/outcomes.def"
#undef OUTCOME
};

static const char *const stage_wires[] = {"init", "run", "eval"};

static bool find_wire(const char *const *wires, unsigned count, struct slice wire, unsigned *ret)
{
    for (unsigned i = 0; i < count; i++)
        if (slice_is(wire, wires[i])) {
            *ret = i;
            return true;
        }
    return false;
}

const char *outcome_wire(enum outcome outcome) { return outcome_wires[outcome]; }
bool outcome_is_trainable(enum outcome outcome) { return outcome_trainables[outcome]; }

bool outcome_parse(struct slice wire, enum outcome *ret)
{
    unsigned i;
    if (!find_wire(outcome_wires, OUTCOME_COUNT, wire, &i))
        return false;
    *ret = (enum outcome)i;
    return true;
}

static const char *const fault_wires[FAULT_COUNT] = {
    "",
#define FAULT(name, wire, doc) wire,
#include "schemas/faults.def"
#undef FAULT
};

const char *fault_wire(enum fault fault) { return fault_wires[fault]; }

enum fault fault_parse(struct slice wire)
{
    unsigned i;
    return find_wire(fault_wires, FAULT_COUNT, wire, &i) ? (enum fault)i : FAULT_NONE;
}

const char *stage_wire(enum stage stage) { return stage_wires[stage]; }

bool stage_parse(struct slice wire, enum stage *ret)
{
    unsigned i;
    if (!find_wire(stage_wires, STAGE_COUNT, wire, &i))
        return false;
    *ret = (enum stage)i;
    return true;
}

/* ---- checks, the same for what is read and what is sent ------------------------ */

bool refuse(struct refusal *no, enum refusal_reason reason, const char *field, const char *format, ...)
{
    if (!no)
        return false;
    no->reason = reason;
    snprintf(no->field, sizeof(no->field), "%s", field ? field : "");
    va_list args;
    va_start(args, format);
    vsnprintf(no->text, sizeof(no->text), format, args);
    va_end(args);
    return false;
}

bool name_is_valid(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] <= ' ' || name.data[i] == '/' || name.data[i] == 0x7f)
            return false;
    return name.len > 0 && utf8_is_valid(name);
}

/* What min and max bound for this type. */
static uint64_t measure(const struct field *field, const void *value)
{
    switch (field->type) {
    case FIELD_UINT: return *(const uint64_t *)value;
    case FIELD_STR:
    case FIELD_BIN: return ((const struct slice *)value)->len;
    case FIELD_JOBS: return ((const struct jobs *)value)->count;
    case FIELD_REAL:
    case FIELD_BOOL: break;
    }
    return field->min;
}

static bool check_value(const struct message *message, const struct field *field, const void *value, struct refusal *no)
{
    const char *unit = field->type == FIELD_UINT ? "" : field->type == FIELD_JOBS ? " jobs" : " bytes";
    uint64_t n = measure(field, value);
    if (n < field->min)
        return refuse(no, REFUSAL_TOO_SMALL, field->name, "%s: %s is %llu%s; the minimum is %llu", message->wire,
                      field->name, (unsigned long long)n, unit, (unsigned long long)field->min);
    if (field->type != FIELD_REAL && field->type != FIELD_BOOL && n > field->max)
        return refuse(no, REFUSAL_TOO_LARGE, field->name, "%s: %s is %llu%s; the maximum is %llu", message->wire,
                      field->name, (unsigned long long)n, unit, (unsigned long long)field->max);
    if (field->type == FIELD_STR && !utf8_is_valid(*(const struct slice *)value))
        return refuse(no, REFUSAL_NOT_UTF8, field->name, "%s: %s is not UTF-8 text", message->wire, field->name);
    if (field->type == FIELD_REAL && !isfinite(*(const double *)value))
        return refuse(no, REFUSAL_NOT_FINITE, field->name, "%s: %s is not a finite number", message->wire, field->name);
    return true;
}

/* ---- reading --------------------------------------------------------------------- */

static bool read_job_ref(struct reader *reader, struct job_ref *ret)
{
    uint32_t two;
    return reader_array(reader, &two) && two == 2 && reader_str(reader, &ret->job) &&
           reader_uint(reader, &ret->token) && utf8_is_valid(ret->job);
}

static bool read_job_refs(struct reader *reader, uint32_t count)
{
    struct job_ref ref;
    for (uint32_t i = 0; i < count; i++)
        if (!read_job_ref(reader, &ref))
            return false;
    return true;
}

static bool read_jobs(struct reader *reader, struct jobs *ret)
{
    uint32_t count;
    if (!reader_array(reader, &count))
        return false;
    size_t start = reader->at;
    if (!read_job_refs(reader, count))
        return false;
    *ret = (struct jobs){slice_of(reader->bytes.data + start, reader->at - start), count};
    return true;
}

bool jobs_next(const struct jobs *jobs, size_t *at, struct job_ref *ret)
{
    struct reader reader = {jobs->packed, *at};
    if (reader.at >= reader.bytes.len || !read_job_ref(&reader, ret))
        return false;
    *at = reader.at;
    return true;
}

static bool read_bool(struct reader *reader, bool *ret)
{
    msgpack_object object;
    if (!reader_scalar(reader, &object) || object.type != MSGPACK_OBJECT_BOOLEAN)
        return false;
    *ret = object.via.boolean;
    return true;
}

static bool read_value(struct reader *reader, enum field_type type, void *value)
{
    switch (type) {
    case FIELD_STR: return reader_str(reader, value);
    case FIELD_BIN: return reader_bin(reader, value);
    case FIELD_UINT: return reader_uint(reader, value);
    case FIELD_REAL: return reader_real(reader, value);
    case FIELD_BOOL: return read_bool(reader, value);
    case FIELD_JOBS: return read_jobs(reader, value);
    }
    return false;
}

/* Peers send fields in the table's order, as we do: it is looked for from *hint on, behind the last. */
static const struct field *find_field(const struct message *message, struct slice name, size_t *hint)
{
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[(*hint + i) % message->field_count];
        if (!slice_equal(name, slice_of(field->name, field->name_len)))
            continue;
        *hint = (size_t)(field - message->fields) + 1;
        return field;
    }
    return NULL;
}

/* A peer's word, cut and cleaned for a sentence. */
static const char *printable(struct slice s, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < s.len && len + 1 < size; i++)
        out[len++] = s.data[i] > ' ' && s.data[i] < 0x7f ? (char)s.data[i] : '?';
    out[len] = '\0';
    return out;
}

bool message_is(enum message_id id, struct slice bytes)
{
    const struct message *message = message_get(id);
    struct reader reader = {bytes, 0};
    struct slice name;
    return reader_str(&reader, &name) && slice_equal(name, slice_of(message->wire, message->wire_len));
}

bool message_peek(struct slice bytes, enum message_id *ret, struct refusal *no)
{
    struct reader reader = {bytes, 0};
    struct slice name;
    if (!reader_str(&reader, &name))
        return refuse(no, REFUSAL_MALFORMED, "", "no message name at the start of %zu bytes", bytes.len);
    for (unsigned id = 0; id < MESSAGE_COUNT; id++) {
        const struct message *message = message_get((enum message_id)id);
        if (slice_equal(name, slice_of(message->wire, message->wire_len))) {
            *ret = (enum message_id)id;
            return true;
        }
    }
    char shown[65];
    return refuse(no, REFUSAL_UNKNOWN_MESSAGE, "", "no message is called '%s'", printable(name, shown, sizeof(shown)));
}

static bool decode_pair(const struct message *message, struct reader *reader, size_t *hint, uint8_t *out,
                        struct refusal *no)
{
    struct slice name;
    if (!reader_str(reader, &name))
        return refuse(no, REFUSAL_MALFORMED, "", "%s: a field's name cannot be read", message->wire);
    const struct field *field = find_field(message, name, hint);
    char shown[65];
    if (!field)
        return refuse(no, REFUSAL_UNKNOWN_FIELD, printable(name, shown, sizeof(shown)), "%s has no field '%s'",
                      message->wire, shown);
    bool *has = (bool *)(out + field->has_offset);
    if (*has)
        return refuse(no, REFUSAL_DUPLICATE_FIELD, field->name, "%s: %s is given twice", message->wire, field->name);
    if (!read_value(reader, field->type, out + field->offset))
        return refuse(no, REFUSAL_WRONG_TYPE, field->name, "%s: %s has the wrong type or is cut short", message->wire,
                      field->name);
    *has = true;
    return check_value(message, field, out + field->offset, no);
}

static bool decode_map(const struct message *message, struct reader *reader, uint8_t *out, struct refusal *no)
{
    struct slice name;
    uint32_t pairs;
    size_t hint = 0;
    if (!reader_str(reader, &name) || !slice_is(name, message->wire) || !reader_map(reader, &pairs))
        return refuse(no, REFUSAL_MALFORMED, "", "%s: its name is not followed by a map", message->wire);
    for (uint32_t i = 0; i < pairs; i++)
        if (!decode_pair(message, reader, &hint, out, no))
            return false;
    if (reader->at != reader->bytes.len)
        return refuse(no, REFUSAL_MALFORMED, "", "%s is followed by %zu stray bytes", message->wire,
                      reader->bytes.len - reader->at);
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        if (field->need == FIELD_REQUIRED && !*(bool *)(out + field->has_offset))
            return refuse(no, REFUSAL_MISSING_FIELD, field->name, "%s: %s is missing", message->wire, field->name);
    }
    return true;
}

bool message_decode(enum message_id id, struct slice bytes, void *out, struct refusal *no)
{
    const struct message *message = message_get(id);
    struct reader reader = {bytes, 0};
    memset(out, 0, message->size);
    if (decode_map(message, &reader, out, no))
        return true;
    memset(out, 0, message->size);
    return false;
}

static struct slice *borrowed(enum field_type type, void *value)
{
    switch (type) {
    case FIELD_STR:
    case FIELD_BIN: return value;
    case FIELD_JOBS: return &((struct jobs *)value)->packed;
    case FIELD_UINT:
    case FIELD_REAL:
    case FIELD_BOOL: break;
    }
    return NULL;
}

/* What is empty borrows nothing (reader.c). */
void message_rebase(enum message_id id, void *message, const void *from, const void *to)
{
    const struct message *described = message_get(id);
    for (size_t i = 0; i < described->field_count; i++) {
        const struct field *field = &described->fields[i];
        struct slice *bytes = borrowed(field->type, (uint8_t *)message + field->offset);
        if (bytes && bytes->len > 0)
            bytes->data = (const uint8_t *)to + (bytes->data - (const uint8_t *)from);
    }
}

/* ---- writing ----------------------------------------------------------------------- */

static void pack_value(msgpack_packer *packer, enum field_type type, const void *value)
{
    switch (type) {
    case FIELD_STR: packer_str(packer, *(const struct slice *)value); break;
    case FIELD_BIN: packer_bin(packer, *(const struct slice *)value); break;
    case FIELD_UINT: msgpack_pack_uint64(packer, *(const uint64_t *)value); break;
    case FIELD_REAL: msgpack_pack_double(packer, *(const double *)value); break;
    case FIELD_BOOL: *(const bool *)value ? msgpack_pack_true(packer) : msgpack_pack_false(packer); break;
    case FIELD_JOBS: {
        const struct jobs *jobs = value;
        msgpack_pack_array(packer, jobs->count);
        buffer_append(packer->data, jobs->packed.data, jobs->packed.len);
        break;
    }
    }
}

/* A JOBS field comes to be sent already encoded; it must hold what it counts and no more. */
static bool check_packed(const struct message *message, const struct field *field, const struct jobs *jobs,
                         struct refusal *no)
{
    struct reader reader = {jobs->packed, 0};
    if (read_job_refs(&reader, jobs->count) && reader_left(&reader) == 0)
        return true;
    return refuse(no, REFUSAL_WRONG_TYPE, field->name, "%s: %s does not hold %u jobs", message->wire, field->name,
                  jobs->count);
}

bool jobs_append(struct buffer *packed, struct slice job, uint64_t token)
{
    msgpack_packer packer;
    packer_init(&packer, packed);
    msgpack_pack_array(&packer, 2);
    packer_str(&packer, job);
    msgpack_pack_uint64(&packer, token);
    return !packed->failed;
}

static bool is_written(const struct field *field, const uint8_t *in)
{
    return field->need == FIELD_REQUIRED || *(const bool *)(in + field->has_offset);
}

bool message_encode(enum message_id id, const void *in, struct buffer *out, struct refusal *no)
{
    const struct message *message = message_get(id);
    size_t start = out->len, pairs = 0;
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        if (!is_written(field, in))
            continue;
        pairs++;
        const void *value = (const uint8_t *)in + field->offset;
        if (!check_value(message, field, value, no) ||
            (field->type == FIELD_JOBS && !check_packed(message, field, value, no)))
            return false;
    }
    msgpack_packer packer;
    packer_init(&packer, out);
    packer_str(&packer, slice_of(message->wire, message->wire_len));
    msgpack_pack_map(&packer, pairs);
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        if (!is_written(field, in))
            continue;
        packer_str(&packer, slice_of(field->name, field->name_len));
        pack_value(&packer, field->type, (const uint8_t *)in + field->offset);
    }
    if (!out->failed)
        return true;
    out->len = start;
    return refuse(no, REFUSAL_TOO_LARGE, "", "%s: out of memory", message->wire);
}
