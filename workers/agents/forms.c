/* forms.c - the table of forms, and what they share. */
#include <stdio.h>
#include <stdlib.h>

#include "workers/agents/form.h"
#include "workers/text.h"

extern const struct form form_hermes;

static const struct form *const forms[] = {&form_hermes};

const struct form *form_at(size_t i)
{
    return i < sizeof(forms) / sizeof(*forms) ? forms[i] : NULL;
}

const struct form *form_find(const char *name)
{
    for (size_t i = 0; form_at(i); i++)
        if (strcmp(form_at(i)->name, name) == 0)
            return form_at(i);
    return NULL;
}

void form_reply_finish(struct form_reply *reply)
{
    for (size_t i = 0; i < reply->count; i++) {
        free(reply->calls[i].name);
        json_decref(reply->calls[i].arguments);
    }
    reply->count = 0;
}

bool form_add_call(struct form_reply *reply, const char *name, json_t *arguments)
{
    if (reply->count == FORM_CALLS_MAX)
        snprintf(reply->wrong, sizeof(reply->wrong),
                 "There are more than %d calls in that reply, so nothing was run. Make fewer at a "
                 "time.", FORM_CALLS_MAX);
    char *copy = reply->wrong[0] ? NULL : strdup(name);
    if (!copy) {
        json_decref(arguments);
        return false;
    }
    reply->calls[reply->count++] = (struct form_call){copy, arguments};
    return true;
}

json_t *form_read_json(struct slice text, size_t *used, char *wrong, size_t size)
{
    json_error_t error;
    if (!text_is_shallow(text, FORM_DEPTH_MAX)) {
        snprintf(wrong, size, "more than %d levels of brackets", FORM_DEPTH_MAX);
        return NULL;
    }
    json_t *value = json_loadb((const char *)text.data, text.len,
                               JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES, &error);
    if (value)
        *used = (size_t)error.position;
    else
        snprintf(wrong, size, "line %d, column %d: %s%s", error.line, error.column, error.text,
                 strstr(error.text, "newline") ? " (within a string a line break is \\n)" : "");
    return value;
}
