#include "broker/io/looks.h"

#include "broker/net/zmq_frame.h"
#include "schemas/messages/message.h"
#include "schemas/messages/reader.h"

/* The name of the field that says which group is meant, of those messages of which the past matters; else NULL. */
static const char *naming_field(struct slice bytes)
{
    if (message_is(MSG_group_submit, bytes))
        return "group";
    return message_is(MSG_rollout_get, bytes) || message_is(MSG_rollout_watch, bytes) ? "rollout" : NULL;
}

/* Of a message that is not decoded yet; empty if it cannot be read, and then it will be refused. */
static struct slice find_text(struct slice bytes, const char *field)
{
    struct reader reader = {bytes, 0};
    struct slice name, text = {0};
    msgpack_object other;
    uint32_t pairs = 0;
    if (!reader_str(&reader, &name) || !reader_map(&reader, &pairs))
        return text;
    for (uint32_t i = 0; i < pairs && reader_str(&reader, &name); i++) {
        if (slice_is(name, field))
            return reader_str(&reader, &text) ? text : (struct slice){0};
        if (!reader_scalar(&reader, &other))
            break;
    }
    return (struct slice){0};
}

struct slice group_of_rollout(struct slice rollout)
{
    const uint8_t *slash = rollout.len ? memrchr(rollout.data, '/', rollout.len) : NULL;
    return slash ? slice_of(rollout.data, (size_t)(slash - rollout.data)) : rollout;
}

void look_begin(struct look *look, struct looks *looks, zmq_msg_t *body, struct turn_inbound *turn, bool has_ledger)
{
    look->field = naming_field(zmq_frame_peek(body));
    if (!look->field)
        return;
    look->body = body;
    look->turn = turn;
    turn->is_held = !has_ledger;
    TAILQ_INSERT_TAIL(looks, look, link);
}

void look_end(struct look *look, struct looks *looks)
{
    if (look->field)
        TAILQ_REMOVE(looks, look, link);
    look->field = NULL;
}

int looks_ahead(struct looks *looks, struct ledger *ledger, struct fail *fail)
{
    struct look *look;
    if (TAILQ_EMPTY(looks))
        return 0;
    int code = ledger_read_begin(ledger, fail);
    TAILQ_FOREACH(look, looks, link)
    {
        const struct slice group = group_of_rollout(find_text(zmq_frame_peek(look->body), look->field));
        const int found = code ? code : group.len ? ledger_find_past(ledger, group, &look->hash, fail) : 0;
        if (found < 0)
            return found;
        look->was_found = found > 0;
        look->turn->is_held = false;
    }
    return ledger_read_end(ledger, fail);
}

void looks_release(struct looks *looks)
{
    struct look *look;
    TAILQ_FOREACH(look, looks, link)
    look->turn->is_held = false;
}
