#include "schemas/task/json/task_value.h"

#include "common/base/cleanup.h"

size_t task_value_count(struct task_value value)
{
    return task_value_is(value, JSON_DOC_ARRAY) || task_value_is(value, JSON_DOC_OBJECT) ? value.at->count : 0;
}

/* A name may be written with escapes. */
static bool is_name(struct task_value written, const char *name)
{
    if (!written.at->has_escapes)
        return slice_is(json_doc_raw(written.doc, written.at), name);
    AUTO_BUFFER text = {0};
    return json_doc_string(written.doc, written.at, &text) && slice_is(buffer_peek(&text), name);
}

struct task_value task_value_get(struct task_value object, const char *name)
{
    if (task_value_is(object, JSON_DOC_OBJECT))
        for (struct task_values each = task_values_of(object); task_values_next(&each);)
            if (is_name(each.name, name))
                return each.value;
    return (struct task_value){0};
}

struct task_values task_values_of(struct task_value container)
{
    const size_t count = task_value_count(container);
    return (struct task_values){.name = {.doc = container.doc},
                                .value = {.doc = container.doc},
                                .next = count ? container.at + 1 : NULL,
                                .left = count,
                                .has_names = task_value_is(container, JSON_DOC_OBJECT)};
}

bool task_values_next(struct task_values *values)
{
    if (values->left == 0)
        return false;
    values->at += values->value.at != NULL;
    values->name.at = values->has_names ? values->next : NULL;
    values->value.at = values->next + values->has_names;
    values->next = json_doc_behind(values->value.doc, values->value.at);
    values->left--;
    return true;
}

const char *task_value_text(struct task_value string, struct arena *arena)
{
    const struct slice raw = json_doc_raw(string.doc, string.at);
    if (!string.at->has_escapes)
        return arena_text(arena, raw);
    AUTO_BUFFER text = {0};
    return json_doc_string(string.doc, string.at, &text) ? arena_text(arena, buffer_peek(&text)) : NULL;
}

/* Between the brackets or quotes, which are part of it. */
json_t *task_value_load(struct task_value value)
{
    const struct slice raw = json_doc_raw(value.doc, value.at);
    return json_loadb((const char *)raw.data - 1, raw.len + 2, JSON_DECODE_ANY, NULL);
}
