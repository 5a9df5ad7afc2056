#include "workers/handlers/wire/offers.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static bool wrong(struct refusal *no, size_t at, const char *format, const char *what)
{
    char words[256];
    snprintf(words, sizeof(words), format, what);
    return refuse(no, REFUSAL_WRONG_TYPE, "offers", "offers[%zu] %s", at, words);
}

static bool is_built_in(enum handler_role role, char *name)
{
    const struct task task = {.agent_kind = name, .eval_kind = name};
    switch (role) {
    case HANDLER_AGENT: return task_agent_is_built_in(&task);
    case HANDLER_TOOL: return task_tool_is_built_in(name);
    case HANDLER_HOOK: return false;
    default: return task_evaluator_is_built_in(&task);
    }
}

static bool take_version(const json_t *value, struct offer *ret)
{
    struct slice version = value ? slice_of(json_string_value(value), json_string_length(value)) : slice_from_str("0");
    if ((value && !json_is_string(value)) || version.len == 0 || version.len > OFFER_VERSION_MAX)
        return false;
    for (size_t i = 0; i < version.len; i++)
        if (version.data[i] <= ' ' || version.data[i] > '~' || version.data[i] == '@')
            return false;
    snprintf(ret->version, sizeof(ret->version), "%.*s", SLICE_ARG(version));
    return true;
}

static bool take_doc(const json_t *value, struct offer *ret)
{
    if (value && (!json_is_string(value) || json_string_length(value) > OFFER_DOC_MAX))
        return false;
    ret->doc = strdup(value ? json_string_value(value) : "");
    return ret->doc != NULL;
}

static bool take_parameters(json_t *value, struct offer *ret)
{
    if (ret->role != HANDLER_TOOL)
        return true;
    AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    if (value && (!json_is_object(value) || !text || strlen(text) > OFFER_PARAMETERS_MAX))
        return false;
    ret->parameters = value && json_object_size(value) > 0 ? json_incref(value)
                                                           : json_pack("{s:s, s:{}}", "type", "object", "properties");
    return ret->parameters != NULL;
}

static bool take(const json_t *json, struct offers *offers, struct refusal *no)
{
    const size_t at = offers->count;
    struct offer *offer = &offers->list[at];
    const char *role = json_string_value(json_object_get(json, "role"));
    const char *name = json_string_value(json_object_get(json, "name"));
    enum handler_role parsed;
    if (!role || !handler_role_parse(slice_from_str(role), &parsed))
        return wrong(no, at, "has no role%s: agent, tool, evaluator or hook", "");
    if (!name || !handler_name_is_valid(slice_from_str(name)))
        return wrong(no, at, "has no name: 1 to 64 of letters, digits, '_', '.' and '-', beginning with a letter%s",
                     "");
    if (offers_find(offers, parsed, name))
        return wrong(no, at, "is the second %s of its name", role);
    snprintf(offer->name, sizeof(offer->name), "%s", name);
    if (is_built_in(parsed, offer->name))
        return wrong(no, at, "has the name of what is built in: %s", offer->name);
    offer->role = parsed;
    offers->count++;
    if (!take_version(json_object_get(json, "version"), offer))
        return wrong(no, at, "(%s): its version is not a text of 1 to 32 printable characters without @", name);
    if (!take_doc(json_object_get(json, "doc"), offer))
        return wrong(no, at, "(%s): its doc is not a text of at most 4096 bytes", name);
    return take_parameters(json_object_get(json, "parameters"), offer) ||
           wrong(no, at, "(%s): its parameters are not a JSON Schema of an object of at most 16384 bytes", name);
}

bool offers_parse(struct slice json, struct offers *ret, struct refusal *no)
{
    *ret = (struct offers){.count = 0};
    json_t *list = text_is_shallow(json, TEXT_LEVELS_MAX)
                       ? json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, NULL)
                       : NULL;
    bool done = json_is_array(list) && json_array_size(list) <= OFFERS_MAX;
    if (!done)
        refuse(no, REFUSAL_WRONG_TYPE, "offers", "offers are not a list of at most %d objects", OFFERS_MAX);
    for (size_t i = 0; done && i < json_array_size(list); i++)
        done = take(json_array_get(list, i), ret, no);
    json_decref(list);
    return done;
}

void offers_finish(struct offers *offers)
{
    while (offers->count > 0) {
        free(offers->list[--offers->count].doc);
        json_decref(offers->list[offers->count].parameters);
    }
}

const struct offer *offers_find(const struct offers *offers, enum handler_role role, const char *name)
{
    for (size_t i = 0; i < offers->count; i++)
        if (offers->list[i].role == role && strcmp(offers->list[i].name, name) == 0)
            return &offers->list[i];
    return NULL;
}
