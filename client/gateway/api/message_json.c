#include "client/gateway/api/message_json.h"

#include <errno.h>
#include <stdlib.h>

#include "client/gateway/json_text.h"

/* ---- texts ----------------------------------------------------------------------------------- */

void kept_texts_finish(struct kept_texts *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free(kept->each[i]);
    free(kept->each);
    *kept = (struct kept_texts){0};
}

/* Takes the text. */
static bool keep(struct kept_texts *kept, char *text)
{
    char **more = text ? realloc(kept->each, (kept->count + 1) * sizeof(*more)) : NULL;
    if (!more) {
        free(text);
        return false;
    }
    kept->each = more;
    kept->each[kept->count++] = text;
    return true;
}

bool kept_texts_add(struct kept_texts *kept, struct slice text, struct slice *ret)
{
    char *copy = malloc(text.len + 1);
    if (copy) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
    }
    *ret = slice_of(copy, text.len);
    return keep(kept, copy);
}

/* ---- one field ----------------------------------------------------------------------------------- */

static const struct field *find_field(const struct message *message, const char *name, struct refusal *no)
{
    for (size_t i = 0; i < message->field_count; i++)
        if (strcmp(message->fields[i].name, name) == 0 && strcmp(name, "tag") != 0)
            return &message->fields[i];
    refuse(no, REFUSAL_UNKNOWN_FIELD, name, "there is no field %.100s", name);
    return NULL;
}

static void put(const struct field *field, void *out, const void *value, size_t size)
{
    const bool yes = true;
    memcpy((char *)out + field->offset, value, size);
    memcpy((char *)out + field->has_offset, &yes, sizeof(yes));
}

static bool wrong_type(const struct field *field, const char *wanted, struct refusal *no)
{
    return refuse(no, REFUSAL_WRONG_TYPE, field->name, "%s must be %s", field->name, wanted);
}

static bool put_text(const struct field *field, void *out, struct slice text)
{
    put(field, out, &text, sizeof(text));
    return true;
}

static bool put_value(const struct field *field, const json_t *value, struct kept_texts *kept, void *out,
                      struct refusal *no)
{
    struct buffer text = {0};
    if (!json_is_object(value))
        return wrong_type(field, "an object", no);
    json_text_append_value(&text, value);
    const size_t len = text.len;
    char *whole = text.failed ? NULL : buffer_take_str(&text);
    buffer_finish(&text);
    if (!keep(kept, whole))
        return refuse(no, REFUSAL_QUEUE_FULL, field->name, "out of memory");
    return put_text(field, out, slice_of(whole, len));
}

static bool put_json(const struct field *field, const json_t *value, struct kept_texts *kept, void *out,
                     struct refusal *no)
{
    uint64_t number;
    double real;
    bool flag;
    switch (field->type) {
    case FIELD_STR:
        if (field_is_json(field))
            return put_value(field, value, kept, out, no);
        return json_is_string(value)
                   ? put_text(field, out, slice_of(json_string_value(value), json_string_length(value)))
                   : wrong_type(field, "a string", no);
    case FIELD_UINT:
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return wrong_type(field, "a whole number, 0 or more", no);
        number = (uint64_t)json_integer_value(value);
        put(field, out, &number, sizeof(number));
        return true;
    case FIELD_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(field, "true or false", no);
        flag = json_is_true(value);
        put(field, out, &flag, sizeof(flag));
        return true;
    case FIELD_REAL:
        if (!json_is_number(value))
            return wrong_type(field, "a number", no);
        real = json_number_value(value);
        put(field, out, &real, sizeof(real));
        return true;
    case FIELD_BIN:
    case FIELD_JOBS: break;
    }
    return wrong_type(field, "left out", no);
}

static bool put_number(const struct field *field, const char *text, void *out, struct refusal *no)
{
    char *end;
    errno = 0;
    const uint64_t number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return wrong_type(field, "a whole number, 0 or more", no);
    put(field, out, &number, sizeof(number));
    return true;
}

bool message_field_from_text(const struct message *message, const char *name, const char *text, struct kept_texts *kept,
                             void *out, struct refusal *no)
{
    const struct field *field = find_field(message, name, no);
    struct slice copy;
    if (!field)
        return false;
    if (field->type == FIELD_UINT)
        return put_number(field, text, out, no);
    if (field->type == FIELD_STR) {
        if (!kept_texts_add(kept, slice_from_str(text), &copy))
            return refuse(no, REFUSAL_QUEUE_FULL, name, "out of memory");
        return put_text(field, out, copy);
    }
    const bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0 || !*text;
    if (field->type != FIELD_BOOL || (!yes && strcmp(text, "false") != 0 && strcmp(text, "0") != 0))
        return wrong_type(field, "true or false", no);
    put(field, out, &yes, sizeof(yes));
    return true;
}

bool message_from_json(const struct message *message, const json_t *object, struct kept_texts *kept, void *out,
                       struct refusal *no)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        const struct field *field = find_field(message, name, no);
        if (!field || (!json_is_null(value) && !put_json(field, value, kept, out, no)))
            return false;
    }
    return true;
}

bool message_is_complete(const struct message *message, const void *in, struct refusal *no)
{
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        const bool has = *(const bool *)((const char *)in + field->has_offset);
        if (field->need == FIELD_REQUIRED && !has && strcmp(field->name, "tag") != 0)
            return refuse(no, REFUSAL_MISSING_FIELD, field->name, "%s is missing", field->name);
    }
    return true;
}

/* ---- the other way --------------------------------------------------------------------------------- */

static void append_field(const struct field *field, const void *at, struct buffer *ret)
{
    struct slice text;
    uint64_t number;
    double real;
    switch (field->type) {
    case FIELD_STR:
        memcpy(&text, at, sizeof(text));
        if (field_is_json(field))
            buffer_append(ret, text.data, text.len);
        else
            json_text_append(ret, text);
        break;
    case FIELD_UINT:
        memcpy(&number, at, sizeof(number));
        buffer_printf(ret, "%llu", (unsigned long long)number);
        break;
    case FIELD_REAL:
        memcpy(&real, at, sizeof(real));
        json_text_append_number(ret, real);
        break;
    case FIELD_BOOL: buffer_append_str(ret, *(const bool *)at ? "true" : "false"); break;
    case FIELD_BIN:
    case FIELD_JOBS: buffer_append_str(ret, "null"); break;
    }
}

void message_append_members(const struct message *message, const void *in, struct buffer *ret)
{
    for (size_t i = 0; i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        const bool is_there = field->need == FIELD_REQUIRED || *(const bool *)((const char *)in + field->has_offset);
        if (!is_there || strcmp(field->name, "tag") == 0 || field->type == FIELD_BIN || field->type == FIELD_JOBS)
            continue;
        buffer_append_str(ret, ret->len > 0 && ret->data[ret->len - 1] != '{' ? "," : "");
        json_text_append(ret, slice_of(field->name, field->name_len));
        buffer_append_str(ret, ":");
        append_field(field, (const char *)in + field->offset, ret);
    }
}
