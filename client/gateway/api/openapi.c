#include "client/gateway/api/openapi.h"

#include <stdio.h>

#include "client/gateway/http_call.h"
#include "client/sluice.h"

static const struct message *message_of(const struct route *route)
{
    return route->message < MESSAGE_COUNT ? message_get(route->message) : NULL;
}

static bool is_in_path(const struct route *route, const struct field *field)
{
    char part[80];
    snprintf(part, sizeof(part), "{%s}", field->name);
    return strstr(route->pattern, part) != NULL;
}

/* OpenAPI's {rollout} would be one part of the path: there it is {group}/{sample}. */
static void append_path(const char *pattern, struct buffer *ret)
{
    const char *two = strstr(pattern, "{rollout}");
    buffer_append_str(ret, "\"");
    buffer_append(ret, pattern, two ? (size_t)(two - pattern) : strlen(pattern));
    if (two)
        buffer_printf(ret, "{group}/{sample}%s", two + strlen("{rollout}"));
    buffer_append_str(ret, "\"");
}

static void append_schema(const struct field *field, struct buffer *ret)
{
    static const char *const types[] = {[FIELD_STR] = "string",  [FIELD_BIN] = "string",   [FIELD_UINT] = "integer",
                                        [FIELD_REAL] = "number", [FIELD_BOOL] = "boolean", [FIELD_JOBS] = "array"};
    json_text_printf(ret, "{\"type\":%s", field_is_json(field) ? "object" : types[field->type]);
    if (field->type == FIELD_UINT)
        json_text_printf(ret, ",\"minimum\":%u,\"maximum\":%u", field->min, field->max);
    else if (field->type == FIELD_STR && !field_is_json(field))
        json_text_printf(ret, ",\"minLength\":%u,\"maxLength\":%u", field->min, field->max);
    buffer_append_str(ret, "}");
}

static void append_parameter(const char *name, const char *in, bool is_needed, const char *doc, struct buffer *ret,
                             const char **joint)
{
    json_text_printf(ret, "%j{\"name\":%s,\"in\":%s,\"required\":%j,\"description\":%s,\"schema\":", *joint, name, in,
                     is_needed ? "true" : "false", doc);
    *joint = ",";
}

/* What stands in paths beside messages' fields. */
static void append_own_parameters(const struct route *route, struct buffer *ret, const char **joint)
{
    static const struct {
        const char *name, *type, *doc;
    } own[] = {{"stream", "string", "The stream."},
               {"attempt", "integer", "Which attempt of its run the session is of."},
               {"rest", "string",
                "What a session's own URL has behind it, slashes and all, such as "
                "v1/chat/completions."}};
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        char part[80];
        snprintf(part, sizeof(part), "{%s}", own[i].name);
        if (!strstr(route->pattern, part))
            continue;
        append_parameter(own[i].name, "path", true, own[i].doc, ret, joint);
        json_text_printf(ret, "{\"type\":%s}}", own[i].type);
    }
}

static void append_parameters(const struct route *route, struct buffer *ret)
{
    const struct message *message = message_of(route);
    const char *joint = "";
    buffer_append_str(ret, "\"parameters\":[");
    if (strstr(route->pattern, "{rollout}")) {
        append_parameter("group", "path", true, "The rollout's group.", ret, &joint);
        buffer_append_str(ret, "{\"type\":\"string\"}}");
        append_parameter("sample", "path", true, "Its number in the group, from 0.", ret, &joint);
        buffer_append_str(ret, "{\"type\":\"integer\"}}");
    }
    if (!message)
        append_own_parameters(route, ret, &joint);
    for (size_t i = 0; message && i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        const bool is_path = is_in_path(route, field);
        if (strcmp(field->name, "tag") == 0 || strcmp(field->name, "rollout") == 0 ||
            (!is_path && route->body != ROUTE_NO_BODY))
            continue;
        append_parameter(field->name, is_path ? "path" : "query", is_path, field->doc, ret, &joint);
        append_schema(field, ret);
        buffer_append_str(ret, "}");
    }
    buffer_append_str(ret, "]");
}

static void append_body(const struct route *route, const struct message *message, struct buffer *ret)
{
    const char *joint = "";
    json_text_printf(ret,
                     ",\"requestBody\":{\"required\":%j,\"content\":{\"application/json\":{\"schema\":{\"type\":"
                     "\"object\",\"properties\":{",
                     route->body == ROUTE_OBJECT ? "true" : "false");
    for (size_t i = 0; message && i < message->field_count; i++) {
        const struct field *field = &message->fields[i];
        if (strcmp(field->name, "tag") == 0 || is_in_path(route, field))
            continue;
        json_text_printf(ret, "%j%s:{\"allOf\":[", joint, field->name);
        append_schema(field, ret);
        json_text_printf(ret, "],\"description\":%s}", field->doc);
        joint = ",";
    }
    buffer_append_str(ret, "}}}}}");
}

static void append_operation(const struct route *route, struct buffer *ret)
{
    char method[8];
    snprintf(method, sizeof(method), "%s", route->method);
    for (char *at = method; *at; at++)
        *at = (char)(*at | 0x20);
    json_text_printf(ret, "%s:{\"summary\":%s,", method, route->summary);
    append_parameters(route, ret);
    if (route->body != ROUTE_NO_BODY)
        append_body(route, message_of(route), ret);
    json_text_printf(ret,
                     ",\"responses\":{\"200\":{\"description\":\"The answer.\"},\"default\":{\"description\":"
                     "\"Why not: error.reason, error.field and error.text.\"}}%j}",
                     route->access == ROUTE_OPEN ? ",\"security\":[]" : "");
}

/* The routes of one path stand together in the table, or further down: each path is written once. */
static bool came_before(const struct route_family *family, size_t place)
{
    for (size_t i = 0; i < place; i++)
        if (strcmp(family->routes[i].pattern, family->routes[place].pattern) == 0)
            return true;
    return false;
}

static void append_path_item(const struct route_family *family, size_t place, struct buffer *ret)
{
    const char *joint = "";
    append_path(family->routes[place].pattern, ret);
    buffer_append_str(ret, ":{");
    for (size_t i = place; i < family->count; i++) {
        if (strcmp(family->routes[i].pattern, family->routes[place].pattern) != 0)
            continue;
        buffer_append_str(ret, joint);
        append_operation(&family->routes[i], ret);
        joint = ",";
    }
    buffer_append_str(ret, "}");
}

static void openapi_write(const struct route_family *family, struct buffer *ret)
{
    const char *joint = "";
    json_text_printf(
        ret,
        "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"Sluice\",\"version\":%s,\"description\":\"Rollouts as a "
        "service. Tasks are described in docs/tasks.md, trajectories in docs/trajectory.md.\"},"
        "\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}}},"
        "\"security\":[{\"token\":[]},{}],\"paths\":{",
        SLUICE_VERSION);
    for (size_t i = 0; i < family->count; i++) {
        if (came_before(family, i))
            continue;
        buffer_append_str(ret, joint);
        append_path_item(family, i, ret);
        joint = ",";
    }
    buffer_append_str(ret, "}}");
}

void openapi_run(struct http_call *call)
{
    struct buffer body = {0};
    openapi_write(call->family, &body);
    http_call_answer_json(call, 200, &body);
}
