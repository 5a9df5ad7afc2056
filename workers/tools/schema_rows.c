#include "workers/tools/schema_rows.h"

#include <stdlib.h>

#include "common/base/cleanup.h"

static bool type_of(const json_t *property, enum tool_type *ret)
{
    const char *type = json_string_value(json_object_get(property, "type"));
    const char *items = json_string_value(json_object_get(json_object_get(property, "items"), "type"));
    if (!type)
        return false;
    if (strcmp(type, "string") == 0)
        *ret = TOOL_STRING;
    else if (strcmp(type, "integer") == 0)
        *ret = TOOL_INTEGER;
    else if (strcmp(type, "boolean") == 0)
        *ret = TOOL_BOOLEAN;
    else if (strcmp(type, "array") == 0 && items && strcmp(items, "integer") == 0)
        *ret = TOOL_INTEGERS;
    else
        return false;
    return true;
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *list = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (word && strcmp(word, name) == 0)
            return true;
    }
    return false;
}

/* "one|of|these" of an enum of strings; *ret NULL where it has none. False when out of memory. */
static bool read_words(const json_t *property, char **ret)
{
    const json_t *list = json_object_get(property, "enum");
    AUTO_BUFFER words = {0};
    *ret = NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (!word || !*word || strchr(word, '|'))
            return true;
        buffer_printf(&words, "%s%s", i ? "|" : "", word);
    }
    if (words.len > 0)
        *ret = buffer_take_str(&words);
    return json_array_size(list) == 0 || *ret;
}

bool schema_rows_read(const json_t *schema, struct schema_rows *ret)
{
    size_t count = 0;
    const char *name;
    json_t *property;
    *ret = (struct schema_rows){.words = {NULL}};
    json_object_foreach(json_object_get(schema, "properties"), name, property)
    {
        const char *doc = json_string_value(json_object_get(property, "description"));
        struct tool_argument row = {.name = name, .required = is_required(schema, name), .doc = doc ? doc : ""};
        if (count == TOOL_ARGUMENTS_MAX - 1 || !type_of(property, &row.type))
            continue;
        if (row.type == TOOL_STRING && !read_words(property, &ret->words[count])) {
            schema_rows_finish(ret);
            return false;
        }
        row.words = ret->words[count];
        ret->list[count++] = row;
    }
    return true;
}

void schema_rows_finish(struct schema_rows *rows)
{
    for (size_t i = 0; i < TOOL_ARGUMENTS_MAX; i++)
        free(rows->words[i]);
    *rows = (struct schema_rows){.words = {NULL}};
}
