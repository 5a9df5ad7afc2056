#include "workers/agents/formats/xml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "workers/tools/toolbox.h"

#define PARAMETER "<parameter="
#define PARAMETER_END "</parameter>"

/* ---- a value ------------------------------------------------------------------------------- */

static const struct tool_argument *argument_find(const struct toolbox *box, struct slice tool, struct slice name)
{
    for (size_t i = 0; i < box->count; i++)
        for (const struct tool_argument *at = box->tools[i]->arguments; slice_is(tool, box->tools[i]->name) && at->name;
             at++)
            if (slice_is(name, at->name))
                return at;
    return NULL;
}

static struct slice strip_lines(struct slice value, enum xml_lines lines)
{
    const bool first = value.len > 0 && value.data[0] == '\n';
    const bool last = value.len > (first ? 1 : 0) && value.data[value.len - 1] == '\n';
    if (lines == XML_BOTH && !(first && last))
        return value;
    return slice_of(value.data + first, value.len - first - last);
}

static json_t *read_integer(const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno || end == text || *end ? NULL : json_integer(value);
}

static json_t *read_boolean(const char *text)
{
    if (strcasecmp(text, "true") == 0)
        return json_true();
    return strcasecmp(text, "false") == 0 ? json_false() : NULL;
}

static bool is_flat_list(struct slice text)
{
    return text.len > 0 && text.data[0] == '[' && !memchr(text.data + 1, '[', text.len - 1) &&
           !memchr(text.data, '{', text.len);
}

/* As the schema has it; what does not look so stays a string, and the tool refuses that by name. */
static json_t *typed_value(const struct tool_argument *argument, struct slice value)
{
    const struct slice word = text_trim(value);
    char text[32] = "";
    if (word.len < sizeof(text) && word.len > 0)
        memcpy(text, word.data, word.len);
    switch (argument ? argument->type : TOOL_STRING) {
    case TOOL_INTEGER: return read_integer(text);
    case TOOL_BOOLEAN: return read_boolean(text);
    case TOOL_INTEGERS: return is_flat_list(word) ? json_loadb((const char *)word.data, word.len, 0, NULL) : NULL;
    default: return NULL;
    }
}

/* ---- a parameter ---------------------------------------------------------------------------- */

/* The NAME of "<tag=NAME>", `at` behind the '='; *ret_end behind the '>'. */
static bool read_name(struct reading *reading, const char *at, const char *tag, struct slice *ret, const char **ret_end)
{
    const size_t len = strcspn(at, ">\n<");
    *ret = text_trim(slice_of(at, len));
    *ret_end = at + len + 1;
    if (at[len] != '>')
        return reading_wrong(reading, at, "'>' is expected behind %sNAME", tag);
    if (ret->len >= 2 && (ret->data[0] == '"' || ret->data[0] == '\'') && ret->data[ret->len - 1] == ret->data[0])
        *ret = slice_of(ret->data + 1, ret->len - 2);
    if (ret->len == 0 || ret->len > FORM_NAME_MAX)
        return reading_wrong(reading, at, "a name of 1 to %d characters is expected behind %s", FORM_NAME_MAX, tag);
    return true;
}

/* What stands in a value only where its end tag was forgotten. */
static const char *find_forgotten(const char *from, const char *end)
{
    static const char *const signs[] = {"\n" PARAMETER, XML_FUNCTION_END};
    for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
        const char *found = memmem(from, (size_t)(end - from), signs[i], strlen(signs[i]));
        if (found)
            return found + (*found == '\n');
    }
    return NULL;
}

static bool find_end(struct reading *reading, const char *from, struct slice name, const char **ret)
{
    const char *end = strstr(from, PARAMETER_END);
    const char *forgotten = find_forgotten(from, end ? end : from + strlen(from));
    *ret = end;
    if (!end || forgotten)
        return reading_wrong(reading, forgotten ? forgotten : from + strlen(from),
                             PARAMETER_END " is expected: %.*s is not closed", SLICE_ARG(name));
    return true;
}

/* Sets one parameter; `at` is behind "<parameter=". Behind its end tag, or NULL. */
static const char *read_parameter(struct reading *reading, const char *at, struct slice tool, enum xml_lines lines,
                                  json_t *arguments)
{
    struct slice name;
    const char *from, *end;
    if (!read_name(reading, at, PARAMETER, &name, &from) || !find_end(reading, from, name, &end))
        return NULL;
    struct slice value = strip_lines(slice_of(from, (size_t)(end - from)), lines);
    char key[FORM_NAME_MAX + 1];
    snprintf(key, sizeof(key), "%.*s", SLICE_ARG(name));
    if (json_object_get(arguments, key)) {
        reading_wrong(reading, at, "the parameter %s is given twice", key);
        return NULL;
    }
    json_t *json = typed_value(argument_find(reading->box, tool, name), value);
    if (!json)
        json = json_stringn((const char *)value.data, value.len);
    if (json_object_set_new(arguments, key, json) < 0) {
        reading_wrong(reading, at, "the parameter %s is not UTF-8", key);
        return NULL;
    }
    return end + strlen(PARAMETER_END);
}

/* ---- a call -------------------------------------------------------------------------------- */

/* Whether the reply ends here, in the middle of the end tag perhaps (a stop string cuts it off). */
static bool is_end(const char *at) { return strncmp(at, XML_FUNCTION_END, strlen(at)) == 0; }

/* Up to the function's end. NULL with reply->wrong. */
static const char *read_parameters(struct reading *reading, const char *at, struct slice tool, enum xml_lines lines,
                                   json_t *arguments)
{
    for (;;) {
        at = skip_blanks(at);
        if (starts_with(at, XML_FUNCTION_END))
            return at + strlen(XML_FUNCTION_END);
        if (starts_with(at, CALL_END))
            return at;
        if (is_end(at)) {
            reading->reply->is_open = true;
            return at + strlen(at);
        }
        if (!starts_with(at, PARAMETER)) {
            reading_wrong(reading, at, PARAMETER "NAME> or " XML_FUNCTION_END " is expected, not %.24s", at);
            return NULL;
        }
        at = read_parameter(reading, at + strlen(PARAMETER), tool, lines, arguments);
        if (!at)
            return NULL;
    }
}

const char *xml_read_call(struct reading *reading, const char *from, enum xml_lines lines)
{
    struct slice name;
    const char *at;
    json_t *arguments = json_object();
    if (!arguments || !read_name(reading, from + strlen(XML_FUNCTION), XML_FUNCTION, &name, &at) ||
        !(at = read_parameters(reading, at, name, lines, arguments))) {
        json_decref(arguments);
        return NULL;
    }
    return reading_add(reading, name, arguments) ? at : NULL;
}

static void say_value(const json_t *value, enum xml_lines lines, struct buffer *out)
{
    AUTO_FREE char *json = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    const char *text = json ? json : json_string_value(value);
    const bool own_lines = lines == XML_EACH || (text && strchr(text, '\n'));
    out->failed |= !text;
    buffer_printf(out, own_lines ? "\n%s\n" : "%s", text ? text : "");
}

void xml_say_call(const char *name, const json_t *arguments, enum xml_lines lines, struct buffer *out)
{
    const char *key;
    json_t *value;
    buffer_printf(out, XML_FUNCTION "%s>\n", name);
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        buffer_printf(out, PARAMETER "%s>", key);
        say_value(value, lines, out);
        buffer_append_str(out, PARAMETER_END "\n");
    }
    buffer_append_str(out, XML_FUNCTION_END);
}
