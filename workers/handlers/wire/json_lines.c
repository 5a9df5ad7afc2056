#include "workers/handlers/wire/json_lines.h"

#include <jansson.h>
#include <openssl/evp.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "schemas/task/json/base64.h"

static const char data_base64[] = "data_base64";

static bool no_memory(struct refusal *no) { return refuse(no, REFUSAL_MALFORMED, "", "out of memory"); }

static const void *at_offset(const void *message, size_t offset) { return (const uint8_t *)message + offset; }

/* ---- out ---------------------------------------------------------------------------------- */

static json_t *json_of_bytes(struct slice bytes, const char **name)
{
    if (utf8_is_valid(bytes))
        return json_stringn((const char *)bytes.data, bytes.len);
    AUTO_FREE char *text = malloc((bytes.len + 2) / 3 * 4 + 1);
    *name = data_base64;
    if (text)
        EVP_EncodeBlock((uint8_t *)text, bytes.data, (int)bytes.len);
    return text ? json_string(text) : NULL;
}

static json_t *json_of(const struct field *field, const void *value, const char **name)
{
    const struct slice *text = value;
    switch (field->type) {
    case FIELD_UINT: return json_integer((json_int_t) * (const uint64_t *)value);
    case FIELD_REAL: return json_real(*(const double *)value);
    case FIELD_BOOL: return json_boolean(*(const bool *)value);
    case FIELD_BIN: return json_of_bytes(*text, name);
    case FIELD_STR:
        return field_is_json(field) ? json_loadb((const char *)text->data, text->len, JSON_DECODE_ANY, NULL)
                                    : json_stringn((const char *)text->data, text->len);
    default: return NULL;
    }
}

static bool add_fields(const struct message *message, const void *in, json_t *line, struct refusal *no)
{
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        if (field->need == FIELD_OPTIONAL && !*(const bool *)at_offset(in, field->has_offset))
            continue;
        const char *name = field->name;
        json_t *value = json_of(field, at_offset(in, field->offset), &name);
        if (!value || json_object_set_new(line, name, value) < 0)
            return refuse(no, REFUSAL_WRONG_TYPE, field->name, "%s: %s is not JSON, or memory ran out", message->wire,
                          field->name);
    }
    return true;
}

bool json_lines_encode(enum message_id id, const void *message, struct buffer *out, struct refusal *no)
{
    AUTO_BUFFER checked = {0};
    if (!message_encode(id, message, &checked, no))
        return false;
    json_t *line = json_pack("{s:s}", "type", message_get(id)->wire);
    if (!line)
        return no_memory(no);
    bool done = add_fields(message_get(id), message, line, no);
    AUTO_FREE char *text = done ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!done)
        return false;
    const size_t from = out->len;
    if (!text || !buffer_append_str(out, text) || !buffer_append(out, "\n", 1)) {
        out->len = from;
        return no_memory(no);
    }
    return true;
}

/* ---- in ----------------------------------------------------------------------------------- */

/* What a message borrows while it is put together. */
struct texts_kept {
    char *items[32];
    size_t count;
};

/* Takes the text, also where it is one too many: no message has so many fields. */
static bool keep(struct texts_kept *kept, char *text)
{
    if (!text || kept->count == sizeof(kept->items) / sizeof(kept->items[0])) {
        free(text);
        return false;
    }
    kept->items[kept->count++] = text;
    return true;
}

static void texts_finish(struct texts_kept *kept)
{
    while (kept->count > 0)
        free(kept->items[--kept->count]);
}

static bool take_text(const struct field *field, const json_t *value, struct texts_kept *kept, struct slice *ret)
{
    if (field_is_json(field)) {
        char *text = json_is_object(value) || json_is_array(value) ? json_dumps(value, JSON_COMPACT) : NULL;
        *ret = slice_from_str(text);
        return keep(kept, text);
    }
    *ret = slice_of(json_string_value(value), json_string_length(value));
    return json_is_string(value);
}

static bool take_base64(const json_t *value, struct texts_kept *kept, struct slice *ret)
{
    const struct slice text = slice_of(json_string_value(value), json_string_length(value));
    size_t len;
    uint8_t *bytes = json_is_string(value) ? malloc(base64_room(text.len) + 1) : NULL;
    if (!bytes || !base64_decode(text, bytes, &len)) {
        free(bytes);
        return false;
    }
    *ret = slice_of(bytes, len);
    return keep(kept, (char *)bytes);
}

static bool take_value(const struct field *field, const json_t *value, struct texts_kept *kept, void *into)
{
    switch (field->type) {
    case FIELD_UINT:
        *(uint64_t *)into = (uint64_t)json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0;
    case FIELD_REAL: *(double *)into = json_number_value(value); return json_is_number(value);
    case FIELD_BOOL: *(bool *)into = json_is_true(value); return json_is_boolean(value);
    case FIELD_STR: return take_text(field, value, kept, into);
    case FIELD_BIN:
        *(struct slice *)into = slice_of(json_string_value(value), json_string_length(value));
        return json_is_string(value);
    default: return false;
    }
}

static const struct field *find_field(const struct message *message, const char *name)
{
    for (size_t i = 0; i < message->field_count; i++)
        if (strcmp(message->fields[i].name, name) == 0)
            return &message->fields[i];
    return NULL;
}

static bool take_member(const struct message *message, const char *name, const json_t *value, struct texts_kept *kept,
                        union any_message *ret, struct refusal *no)
{
    const bool is_base64 = strcmp(name, data_base64) == 0;
    const struct field *field = find_field(message, is_base64 ? "data" : name);
    if (!field || (is_base64 && field->type != FIELD_BIN))
        return refuse(no, REFUSAL_UNKNOWN_FIELD, name, "%s has no field %.64s", message->wire, name);
    void *into = (uint8_t *)ret + field->offset;
    if (is_base64 ? !take_base64(value, kept, into) : !take_value(field, value, kept, into))
        return refuse(no, REFUSAL_WRONG_TYPE, name, "%s: %s has a value of another type", message->wire, field->name);
    *(bool *)((uint8_t *)ret + field->has_offset) = true;
    return true;
}

static bool find_message(const char *wire, enum message_id *ret)
{
    for (unsigned id = 0; wire && id < MESSAGE_COUNT; id++)
        if (strcmp(message_get((enum message_id)id)->wire, wire) == 0) {
            *ret = (enum message_id)id;
            return true;
        }
    return false;
}

static bool check_required(const struct message *message, const union any_message *in, struct refusal *no)
{
    for (size_t i = 0; i < message->field_count; i++)
        if (message->fields[i].need == FIELD_REQUIRED && !*(const bool *)at_offset(in, message->fields[i].has_offset))
            return refuse(no, REFUSAL_MISSING_FIELD, message->fields[i].name, "%s: %s is missing", message->wire,
                          message->fields[i].name);
    return true;
}

static bool take_object(json_t *line, struct texts_kept *kept, struct buffer *out, struct refusal *no)
{
    const char *wire = json_string_value(json_object_get(line, "type")), *name;
    union any_message any = {0};
    enum message_id id;
    json_t *value;
    if (!find_message(wire, &id))
        return refuse(no, REFUSAL_UNKNOWN_MESSAGE, "type", "there is no message of the type \"%.64s\"",
                      wire ? wire : "");
    json_object_foreach(line, name, value)
    {
        if (strcmp(name, "type") != 0 && !json_is_null(value) &&
            !take_member(message_get(id), name, value, kept, &any, no))
            return false;
    }
    return check_required(message_get(id), &any, no) && message_encode(id, &any, out, no);
}

bool json_lines_decode(struct slice line, struct buffer *out, struct refusal *no)
{
    struct texts_kept kept = {.count = 0};
    json_error_t error;
    if (!text_is_shallow(line, TEXT_LEVELS_MAX))
        return refuse(no, REFUSAL_MALFORMED, "", "its brackets are nested deeper than %d", TEXT_LEVELS_MAX);
    json_t *object = json_loadb((const char *)line.data, line.len, JSON_REJECT_DUPLICATES, &error);
    bool done = json_is_object(object) ? take_object(object, &kept, out, no)
                                       : refuse(no, REFUSAL_MALFORMED, "", "\"%.*s\" is not a JSON object%s%.200s",
                                                line.len > 100 ? 100 : (int)line.len, (const char *)line.data,
                                                object ? "" : ": ", object ? "" : error.text);
    texts_finish(&kept);
    json_decref(object);
    return done;
}
