/*
 * message.h - the messages of messages.def as C structs, and the calls that
 * turn them into bytes and back.
 *
 * struct msg_group_submit { uint64_t tag; bool has_tag; struct slice group; ... }
 * and MSG_group_submit, and so on for every message. has_<field> says whether
 * an optional field is given; required ones are written whatever it says.
 *
 * A decoded struct borrows its strings and bodies from the bytes it was read
 * from: it is good for as long as those bytes are. No call here keeps state.
 */
#ifndef SLUICE_SCHEMAS_MESSAGES_MESSAGE_H
#define SLUICE_SCHEMAS_MESSAGES_MESSAGE_H

#include "common/base/buffer.h"
#include "common/base/slice.h"

/* A JOBS field: `count` pairs [job, token], still encoded; read them with jobs_next. */
struct jobs {
    struct slice packed;
    uint32_t count;
};

struct job_ref {
    struct slice job;
    uint64_t token;
};

#define TYPE_STR struct slice
#define TYPE_BIN struct slice
#define TYPE_UINT uint64_t
#define TYPE_REAL double
#define TYPE_BOOL bool
#define TYPE_JOBS struct jobs

#define MESSAGE(name, wire, sender, doc) struct msg_##name {
#define FIELD(type, name, need, min, max, example, doc)                                                                \
    TYPE_##type name;                                                                                                  \
    bool has_##name;
#define END(name)                                                                                                      \
    }                                                                                                                  \
    ;
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END

/* Room for any of them. */
union any_message {
#define MESSAGE(name, wire, sender, doc) struct msg_##name name;
#define FIELD(type, name, need, min, max, example, doc)
#define END(name)
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

enum message_id {
#define MESSAGE(name, wire, sender, doc) MSG_##name,
#define FIELD(type, name, need, min, max, example, doc)
#define END(name)
#include "schemas/messages/messages.def"
#undef MESSAGE
#undef FIELD
#undef END
    MESSAGE_COUNT
};

enum field_type { FIELD_STR, FIELD_BIN, FIELD_UINT, FIELD_REAL, FIELD_BOOL, FIELD_JOBS };
enum field_need { FIELD_OPTIONAL, FIELD_REQUIRED };
enum message_sender { SENDER_CLIENT, SENDER_ADMIN, SENDER_WORKER, SENDER_BROKER, SENDER_HOST, SENDER_HANDLER };

struct field {
    const char *name;
    size_t name_len;
    enum field_type type;
    enum field_need need;
    uint64_t min, max;
    size_t offset, has_offset;
    struct slice example;
    const char *doc;
};

/* Whether a STR is JSON: its example says so (messages.def, handlers). */
static inline bool field_is_json(const struct field *field)
{
    return field->type == FIELD_STR && field->example.len > 0 &&
           (field->example.data[0] == '{' || field->example.data[0] == '[');
}

struct message {
    const char *wire;
    size_t wire_len;
    enum message_sender sender;
    const char *doc;
    const struct field *fields;
    size_t field_count, size;
};

const struct message *message_get(enum message_id id);

enum refusal_reason {
    REFUSAL_NONE,
#define REFUSAL(name, wire, doc) REFUSAL_##name,
#include "schemas/messages/refusals.def"
#undef REFUSAL
    REFUSAL_COUNT
};

const char *refusal_wire(enum refusal_reason reason);
const char *refusal_doc(enum refusal_reason reason);

/* Why something was refused, in a form that can be sent back. */
struct refusal {
    enum refusal_reason reason;
    char field[128]; /* the field at fault, or "" */
    char text[1024]; /* one sentence */
};

/* Fills in `no` and returns false, so that a caller writes `return refuse(...)`. */
bool refuse(struct refusal *no, enum refusal_reason reason, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

enum outcome {
#define OUTCOME(name, wire, trainable, doc) OUTCOME_##name,
#include "schemas/outcomes.def"
#undef OUTCOME
    OUTCOME_COUNT
};

const char *outcome_wire(enum outcome outcome);
bool outcome_parse(struct slice wire, enum outcome *ret);
bool outcome_is_trainable(enum outcome outcome);

enum fault {
    FAULT_NONE,
#define FAULT(name, wire, doc) FAULT_##name,
#include "schemas/faults.def"
#undef FAULT
    FAULT_COUNT
};

const char *fault_wire(enum fault fault); /* "" for FAULT_NONE */
/* FAULT_NONE for a word that is none of them. */
enum fault fault_parse(struct slice wire);

/*
 * How a run's detail begins whose words the broker keeps, before those of the evaluator: the policy went on further
 * than the task lets it; a replay gave something else than was recorded.
 */
#define STALE_MARK "stale: "
#define DIFFERS_MARK "differs: "

enum stage { STAGE_INIT, STAGE_RUN, STAGE_EVAL, STAGE_COUNT };
const char *stage_wire(enum stage stage);
bool stage_parse(struct slice wire, enum stage *ret);

/* Whether these bytes claim to be that message. */
bool message_is(enum message_id id, struct slice bytes);
/* Which message these bytes claim to be. False with a refusal (MALFORMED, UNKNOWN_MESSAGE). */
bool message_peek(struct slice bytes, enum message_id *ret, struct refusal *no);

/*
 * Reads `bytes` as message `id` into *out (message_get(id)->size bytes, as in
 * struct msg_<name>). On failure *out is all zero and *no names field and reason.
 */
bool message_decode(enum message_id id, struct slice bytes, void *out, struct refusal *no);

/* Says of a decoded message that the bytes it borrows from lie at `to` now, and no longer at `from`. */
void message_rebase(enum message_id id, void *message, const void *from, const void *to);

/*
 * Appends the message's bytes. What is sent passes the same checks as what is
 * read: false with a refusal, and nothing appended, if a field breaks the schema.
 */
bool message_encode(enum message_id id, const void *in, struct buffer *out, struct refusal *no);

/* Iterates a JOBS field: start with *at = 0; false at the end. */
bool jobs_next(const struct jobs *jobs, size_t *at, struct job_ref *ret);
/* Appends one pair to `packed`; the caller counts. */
bool jobs_append(struct buffer *packed, struct slice job, uint64_t token);

/* Names on the wire that become ids and topics: no '/', blank or control character. */
bool name_is_valid(struct slice name);

#endif
