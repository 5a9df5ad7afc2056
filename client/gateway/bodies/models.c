#include "client/gateway/bodies/models.h"

#include "client/gateway/bodies/loose_json.h"

enum { INPUT_MAX = 1024 /* bytes of what was given that are told again */ };

static const struct {
    const char *type, *msg;
} wrong_types[] = {
    [MODEL_OBJECT] = {"dict_type", "Input should be a valid dictionary"},
    [MODEL_STRING] = {"string_type", "Input should be a valid string"},
    [MODEL_MAY_STRING] = {"string_type", "Input should be a valid string"},
};

static bool fits(const struct model_field *field, const json_t *value)
{
    if (field->type == MODEL_MAY_STRING && (!value || json_is_null(value)))
        return true;
    return field->type == MODEL_OBJECT ? json_is_object(value) : json_is_string(value);
}

static void append_input(struct buffer *ret, const json_t *input)
{
    struct buffer text = {0};
    if (input)
        json_text_append_value(&text, input);
    if (input && text.len <= INPUT_MAX)
        buffer_append(ret, text.data, text.len);
    else
        buffer_append_str(ret, "null");
    buffer_finish(&text);
}

/* field: NULL for the body itself. */
static void append_wrong(struct buffer *ret, const char *type, const char *field, const char *msg, const json_t *input)
{
    json_text_printf(ret, "%j{\"type\":%s,\"loc\":[\"body\"", ret->len > 1 && ret->data[ret->len - 1] == '}' ? "," : "",
                     type);
    if (field)
        json_text_printf(ret, ",%s", field);
    json_text_printf(ret, "],\"msg\":%s,\"input\":", msg);
    append_input(ret, input);
    buffer_append_str(ret, "}");
}

static void answer_wrong(struct http_call *call, struct buffer *list)
{
    struct buffer body = {0};
    buffer_append_str(&body, "{\"detail\":[");
    buffer_append(&body, list->data, list->len);
    buffer_append_str(&body, "]}");
    buffer_finish(list);
    http_call_answer_json(call, 422, &body);
}

static json_t *read_json(struct http_call *call)
{
    struct buffer body = exchange_take_body(call->exchange), list = {0};
    json_error_t error = {.position = 0};
    json_t *read = body.len > 0 ? loose_json_read(buffer_peek(&body), &error) : NULL;
    if (!read && body.len == 0) {
        append_wrong(&list, "missing", NULL, "Field required", NULL);
        answer_wrong(call, &list);
    } else if (!read) {
        json_text_printf(&list,
                         "{\"type\":\"json_invalid\",\"loc\":[\"body\",%d],\"msg\":\"JSON decode error\",\"input\":{},"
                         "\"ctx\":{\"error\":%s}}",
                         (int64_t)error.position, error.text);
        answer_wrong(call, &list);
    }
    buffer_finish(&body);
    return read;
}

json_t *model_read(struct http_call *call, const struct model_field *fields, size_t count)
{
    json_t *body = read_json(call);
    struct buffer list = {0};
    if (!body)
        return NULL;
    if (json_is_null(body))
        append_wrong(&list, "missing", NULL, "Field required", NULL);
    else if (!json_is_object(body))
        append_wrong(&list, "model_attributes_type", NULL,
                     "Input should be a valid dictionary or object to extract fields from", body);
    for (size_t i = 0; json_is_object(body) && i < count; i++) {
        const json_t *value = json_object_get(body, fields[i].name);
        if (fits(&fields[i], value))
            continue;
        if (value)
            append_wrong(&list, wrong_types[fields[i].type].type, fields[i].name, wrong_types[fields[i].type].msg,
                         value);
        else
            append_wrong(&list, "missing", fields[i].name, "Field required", body);
    }
    if (list.len == 0)
        return body;
    json_decref(body);
    answer_wrong(call, &list);
    return NULL;
}
