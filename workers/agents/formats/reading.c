#include "workers/agents/formats/reading.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "workers/tools/toolbox.h"

/* ---- text -------------------------------------------------------------------------------- */

const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

bool starts_with(const char *at, const char *word) { return strncmp(at, word, strlen(word)) == 0; }

/* ---- thinking ----------------------------------------------------------------------------- */

/* Whether a tag or nothing follows on the line; else it is part of a call's text, or talked about. */
static bool is_line_end(const char *at)
{
    at += strspn(at, " \t\r");
    return *at == '\n' || *at == '<' || !*at;
}

/* Where the prompt opened the block, the reply has its end alone. */
const char *skip_open_thinking(const char *text)
{
    const char *end = strstr(text, THINK_END), *start = strstr(text, THINK_TAG);
    return end && (!start || end < start) && is_line_end(end + strlen(THINK_END)) ? end + strlen(THINK_END) : text;
}

struct reading reading_start(const struct toolbox *box, const char *text, struct tool_reply *ret)
{
    *ret = (struct tool_reply){0};
    return (struct reading){.box = box, .text = text, .at = skip_open_thinking(text), .reply = ret};
}

static bool is_at_line_start(const struct reading *reading, const char *at)
{
    while (at > reading->text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == reading->text || at == reading->at || at[-1] == '\n' || at[-1] == '>';
}

/* The next block of thinking before `limit`; NULL: none. */
static const char *find_thinking(const struct reading *reading, const char *limit)
{
    const char *at = reading->at;
    for (const char *start; (start = memmem(at, (size_t)(limit - at), THINK_TAG, strlen(THINK_TAG))); at = start + 1)
        if (is_at_line_start(reading, start))
            return start;
    return NULL;
}

/* Each byte is looked at a few times at most, however many markers and blocks there are. */
const char *reading_find(struct reading *reading, const char *marker)
{
    const char *found = strstr(reading->at, marker), *end_of_text = NULL;
    for (;;) {
        if (found && found < reading->at)
            found = strstr(reading->at, marker);
        if (!found && !end_of_text)
            end_of_text = reading->at + strlen(reading->at);
        const char *thinking = find_thinking(reading, found ? found : end_of_text);
        if (!thinking)
            return found;
        const char *end = strstr(thinking, THINK_END);
        if (!end) {
            reading->reply->is_thinking = true;
            reading->at = thinking + strlen(thinking);
            return NULL;
        }
        reading->at = end + strlen(THINK_END);
    }
}

void reading_note_begin(struct reading *reading, const char *at)
{
    if (reading->reply->count == 0)
        reading->reply->begin = (size_t)(at - reading->text);
}

enum call_start tag_starts(const char *at, const char *tag)
{
    while (*at && *at == *tag) {
        at++;
        tag++;
    }
    return !*tag ? CALL_STARTS : !*at ? CALL_MAYBE : CALL_NOT;
}

/* ---- what is read -------------------------------------------------------------------------- */

static void place_of(const char *text, const char *at, size_t *line, size_t *column)
{
    *line = *column = 1;
    for (; text < at && *text; text++) {
        ++*column;
        if (*text == '\n')
            ++*line, *column = 1;
    }
}

bool reading_wrong(struct reading *reading, const char *at, const char *format, ...)
{
    struct tool_reply *reply = reading->reply;
    size_t line, column;
    char why[600];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    text_repair(why);
    place_of(reading->text, at, &line, &column);
    snprintf(reply->wrong, sizeof(reply->wrong),
             "Call %zu of that reply cannot be read, at line %zu, column %zu: %s. Nothing was run.", reply->count + 1,
             line, column, why);
    return false;
}

bool reading_add(struct reading *reading, struct slice name, json_t *arguments)
{
    struct tool_reply *reply = reading->reply;
    if (reply->count == FORM_CALLS_MAX)
        snprintf(reply->wrong, sizeof(reply->wrong),
                 "There are more than %d calls in that reply, so nothing was run. Make fewer at a "
                 "time.",
                 FORM_CALLS_MAX);
    char *copy = reply->wrong[0] ? NULL : strndup((const char *)name.data, name.len);
    if (!copy) {
        json_decref(arguments);
        return false;
    }
    reply->calls[reply->count++] = (struct tool_format_call){copy, arguments};
    return true;
}
