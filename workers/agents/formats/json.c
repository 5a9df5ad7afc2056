#include "workers/agents/formats/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/tools/arguments.h"
#include "workers/tools/toolbox.h"

/* ---- one value ---------------------------------------------------------------------------- */

/*
 * The JSON value that starts here, by its brackets alone: all of the text where they are never
 * closed. False: nested too deep, which is asked before anything recurses over it.
 */
static bool measure(const char *from, size_t *ret)
{
    bool in_string = false;
    int depth = 0;
    for (*ret = 0; from[*ret]; ++*ret) {
        const char byte = from[*ret];
        if (in_string && byte == '\\' && from[*ret + 1])
            ++*ret;
        else if (byte == '"')
            in_string = !in_string;
        else if (!in_string && (byte == '{' || byte == '[') && ++depth > FORM_DEPTH_MAX)
            return false;
        else if (!in_string && (byte == '}' || byte == ']') && --depth <= 0)
            return ++*ret, true;
    }
    return true;
}

static char last_before(const char *from, const char *at)
{
    while (at > from && isspace((unsigned char)at[-1]))
        at--;
    return at > from ? at[-1] : '\0';
}

/* What those who write JSON by hand get wrong; `at` is behind what could not be read. */
static const char *hint_for(const json_error_t *error, const char *from, const char *at)
{
    const char *near = strstr(error->text, " near '");
    const char what = near ? near[strlen(" near '")] : '\0';
    if (json_error_code(error) == json_error_premature_end_of_input)
        return "; the JSON ends before its last bracket or quote is closed";
    if (strstr(error->text, "newline"))
        return "; within a string a line break is \\n";
    if (strstr(error->text, "control character"))
        return "; within a string a tab is \\t, and others are \\u00XX";
    if (what == '\'')
        return "; strings and names stand in double quotes";
    if ((what == '}' || what == ']') && last_before(from, at - 1) == ',')
        return "; no comma stands before a closing bracket";
    if (near && (strstr(near, "'True'") || strstr(near, "'False'") || strstr(near, "'None'")))
        return "; JSON has true, false and null";
    if (strstr(error->text, "invalid escape"))
        return "; a backslash in a string is \\\\";
    return "";
}

/* Where the token starts that could not be read, and is named unless it is long. */
static const char *token_before(const json_error_t *error, const char *from, const char *at)
{
    const char *near = strstr(error->text, " near '");
    const size_t len = near ? strlen(near) - strlen(" near ''") : 1;
    return len <= (size_t)(at - from) ? at - len : from;
}

/* A value from `from` on; *end is behind it. NULL with reply->wrong. */
static json_t *read_value(struct reading *reading, const char *from, const char **end)
{
    json_error_t error;
    size_t len;
    if (!measure(from, &len)) {
        reading_wrong(reading, from, "more than %d levels of brackets", FORM_DEPTH_MAX);
        return NULL;
    }
    json_t *value = json_loadb(from, len, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    *end = from + ((size_t)error.position < len ? (size_t)error.position : len);
    if (!value)
        reading_wrong(reading, token_before(&error, from, *end), "%.200s%s", error.text, hint_for(&error, from, *end));
    return value;
}

/* ---- a call ------------------------------------------------------------------------------- */

/* A reference of the caller's to an object; models write it as a string of JSON, too. */
static json_t *arguments_of(const json_t *call)
{
    size_t len;
    json_t *given = json_object_get(call, "arguments");
    if (!given)
        given = json_object_get(call, "parameters");
    if (!given || json_is_null(given))
        return json_object();
    if (!json_is_string(given))
        return json_incref(given);
    const char *text = json_string_value(given);
    return measure(text, &len) && text[len] == '\0' ? json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

static bool add_call(struct reading *reading, const char *from, const json_t *call)
{
    const char *name = json_string_value(json_object_get(call, "name"));
    if (!json_is_object(call) || !name)
        return reading_wrong(reading, from, "it is not an object with a \"name\" that is a string");
    json_t *arguments = arguments_of(call);
    if (json_is_object(arguments))
        return reading_add(reading, slice_from_str(name), arguments);
    json_decref(arguments);
    return reading_wrong(reading, from, "the arguments of \"%.64s\" are not an object", name);
}

static bool add_value(struct reading *reading, const char *from, const json_t *value)
{
    if (!json_is_array(value))
        return add_call(reading, from, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_call(reading, from, json_array_get(value, i)))
            return false;
    return true;
}

/* Past the line "```json" or the like, if one starts here. */
static const char *behind_fence(const char *at)
{
    const char *start = skip_blanks(at), *line = strchr(start, '\n');
    return starts_with(start, "```") && line ? skip_blanks(line) : start;
}

static const char *behind_closing_fence(const char *at)
{
    const char *start = skip_blanks(at);
    return starts_with(start, "```") ? start + 3 : at;
}

const char *json_read_calls(struct reading *reading, const char *from, char separator)
{
    for (;;) {
        const char *start = behind_fence(from), *end;
        json_t *value = read_value(reading, start, &end);
        const bool good = value && add_value(reading, start, value);
        json_decref(value);
        if (!good)
            return NULL;
        end = behind_closing_fence(end);
        const char *next = skip_blanks(end);
        if (separator && *next == separator)
            next = skip_blanks(next + 1);
        if (*next != '{' && *next != '[')
            return end;
        from = next;
    }
}

/* ---- calls without a tag ------------------------------------------------------------------ */

/* In quotes of either kind: a call in single ones is told what is wrong with it. Behind it, or NULL. */
static const char *behind_word(const char *at, const char *word)
{
    const size_t len = strlen(word);
    bool is_word = (*at == '"' || *at == '\'') && strncmp(at + 1, word, len) == 0 && at[len + 1] == *at;
    return is_word ? at + len + 2 : NULL;
}

static bool opens_call(const char *at)
{
    const char *inner = skip_blanks(at + 1);
    if (behind_word(inner, "name"))
        return true;
    inner = behind_word(inner, "type");
    inner = inner ? skip_blanks(inner) : "";
    return *inner == ':' && behind_word(skip_blanks(inner + 1), "function");
}

static bool has_arguments(const char *at)
{
    static const char *const words[] = {"\"arguments\"", "\"parameters\"", "'arguments'", "'parameters'"};
    size_t len;
    if (!measure(at, &len))
        return true;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (memmem(at, len, words[i], strlen(words[i])))
            return true;
    return false;
}

const char *json_find_bare(struct reading *reading)
{
    const char *first = behind_fence(reading->at), *from = reading->at;
    if (*first == '{' && opens_call(first))
        return reading_note_begin(reading, from), first;
    for (const char *at; (at = reading_find(reading, "{")); reading->at = at + 1) {
        const char *line = at;
        if (reading->at > from) /* thinking was passed */
            from = reading->at;
        while (line > reading->text && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if ((line == reading->text || line[-1] == '\n') && opens_call(at) && has_arguments(at))
            return reading_note_begin(reading, at), at;
    }
    return NULL;
}

/* ---- and of a text that goes on ------------------------------------------------------------ */

/* Behind the word in quotes; NULL: it is another, or, with *ret CALL_MAYBE, not whole yet. */
static const char *behind_quoted(const char *at, const char *word, enum call_start *ret)
{
    const char quoted[] = {*at, '\0'};
    const bool is_quote = *at == '"' || *at == '\'';
    const enum call_start inner = is_quote ? tag_starts(at + 1, word) : *at ? CALL_NOT : CALL_MAYBE;
    const char *end = at + 1 + strlen(word);
    *ret = inner == CALL_STARTS ? tag_starts(end, quoted) : inner;
    return *ret == CALL_STARTS ? end + 1 : NULL;
}

/* As opens_call. */
static enum call_start may_open_call(const char *at)
{
    const char *inner = skip_blanks(at + 1);
    enum call_start name, type;
    behind_quoted(inner, "name", &name);
    inner = behind_quoted(inner, "type", &type);
    if (!inner)
        return name == CALL_NOT ? type : name;
    inner = skip_blanks(inner);
    if (*inner != ':')
        return *inner ? CALL_NOT : CALL_MAYBE;
    behind_quoted(skip_blanks(inner + 1), "function", &type);
    return type;
}

/* Whether nothing is before it, or thinking. */
static bool is_first(const char *text, const char *at)
{
    const size_t len = strlen(THINK_END);
    while (at > text && isspace((unsigned char)at[-1]))
        at--;
    return at == text || ((size_t)(at - text) >= len && memcmp(at - len, THINK_END, len) == 0);
}

static bool is_at_line_start(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == text || at[-1] == '\n';
}

/* As behind_fence. */
static enum call_start may_be_behind_fence(const char *at)
{
    const enum call_start fence = tag_starts(at, "```");
    const char *line = strchr(at, '\n');
    if (fence != CALL_STARTS || !line)
        return fence == CALL_NOT ? CALL_NOT : CALL_MAYBE;
    at = skip_blanks(line);
    return *at == '{' ? may_open_call(at) : *at ? CALL_NOT : CALL_MAYBE;
}

enum call_start json_starts_bare(const char *text, const char *at)
{
    if (*at == '`')
        return is_first(text, at) ? may_be_behind_fence(at) : CALL_NOT;
    if (*at != '{' || (!is_first(text, at) && !is_at_line_start(text, at)))
        return CALL_NOT;
    return may_open_call(at);
}

/* ---- saying ------------------------------------------------------------------------------- */

void json_say_call(const char *name, const char *key, const json_t *arguments, struct buffer *out)
{
    json_t *call = json_pack("{s:s, s:O}", "name", name, key, arguments);
    AUTO_FREE char *text = call ? json_dumps(call, 0) : NULL;
    json_decref(call);
    buffer_append_str(out, text ? text : "");
    out->failed |= !text;
}

bool json_describe_tools(const struct toolbox *box, size_t flags, struct buffer *out)
{
    for (size_t i = 0; i < box->count; i++) {
        json_t *json = tool_describe(box->tools[i]);
        AUTO_FREE char *text = json ? json_dumps(json, flags) : NULL;
        json_decref(json);
        if (!text)
            return false;
        buffer_printf(out, "\n%s", text);
    }
    return !out->failed;
}
