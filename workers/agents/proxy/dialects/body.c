#include "workers/agents/proxy/dialects/body.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"

enum { WORD_SHOWN = 64 };                /* bytes of a word of the harness's, in a sentence */
static const double NUMBER_MAX = 0x1p53; /* up to which numbers in JSON are exact */

struct body_place body_in(const struct body_place *in, const char *key)
{
    const json_t *value = json_object_get(in->value, key);
    return (struct body_place){.in = in, .key = key, .value = json_is_null(value) ? NULL : value};
}

struct body_place body_at(const struct body_place *list, size_t at)
{
    const json_t *value = json_array_get(list->value, at);
    return (struct body_place){.in = list, .at = at, .value = json_is_null(value) ? NULL : value};
}

bool body_says(const struct body_place *in, const char *key, const char *word)
{
    const char *said = json_string_value(json_object_get(in->value, key));
    return said && strcmp(said, word) == 0;
}

/* ---- refusals --------------------------------------------------------------------------------- */

static void put_path(const struct body_place *place, struct buffer *out)
{
    if (!place->in)
        return;
    put_path(place->in, out);
    if (place->key)
        buffer_printf(out, "%s%s", out->len ? "." : "", place->key);
    else
        buffer_printf(out, "[%zu]", place->at);
}

bool body_refuse(struct body *body, const struct body_place *place, const char *format, ...)
{
    AUTO_BUFFER sentence = {0};
    char words[256];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    text_sanitize(words);
    put_path(place, &sentence);
    buffer_printf(&sentence, "%s%s", sentence.len ? ": " : "", words);
    AUTO_FREE char *text = buffer_take_str(&sentence);
    if (body->fail.code == 0)
        fail_set(&body->fail, -EINVAL, "%s", text ? text : words);
    return false;
}

static const char *kind_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_NULL: return "null";
    default: return "a boolean";
    }
}

bool body_refuse_kind(struct body *body, const struct body_place *place, const char *expected)
{
    if (!place->value)
        return body_refuse(body, place, "%s is expected, and there is none", expected);
    return body_refuse(body, place, "%s is expected, not %s", expected, kind_of(place->value));
}

/* Types of parts that hold what no text can, by a word in them. */
static const char *medium_of(const char *type)
{
    static const char *const media[][2] = {{"image", "images are not supported"},
                                           {"audio", "audio is not supported"},
                                           {"video", "video is not supported"},
                                           {"file", "files are not supported"},
                                           {"document", "documents are not supported"}};
    for (size_t i = 0; i < sizeof(media) / sizeof(*media); i++)
        if (strstr(type, media[i][0]))
            return media[i][1];
    return "this is not supported here";
}

bool body_refuse_word(struct body *body, const struct body_place *word)
{
    const char *text = json_string_value(word->value);
    if (!text)
        return body_refuse_kind(body, word, "a string");
    const struct slice shown = text_cut(text, WORD_SHOWN);
    return body_refuse(body, word, "\"%.*s\": %s", SLICE_ARG(shown), medium_of(text));
}

bool body_one_of(struct body *body, const struct body_place *word, const char *words)
{
    const char *text = json_string_value(word->value);
    return (text && text_is_one_of(text, words)) || body_refuse_word(body, word);
}

bool body_each_one_of(struct body *body, const struct body_place *list, const char *words)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        const struct body_place word = body_at(list, i);
        if (!body_one_of(body, &word, words))
            return false;
    }
    return true;
}

bool body_out_of_memory(struct body *body)
{
    if (body->fail.code == 0)
        fail_memory(&body->fail);
    return false;
}

/* ---- what must not be there ------------------------------------------------------------------- */

static bool is_empty(const json_t *value)
{
    return !value || json_is_false(value) || (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

bool body_lacks(struct body *body, const struct body_place *in, const char *key, const char *words)
{
    const struct body_place place = body_in(in, key);
    return is_empty(place.value) || body_refuse(body, &place, "%s", words);
}

bool body_wants_one(struct body *body, const struct body_place *in, const char *key)
{
    uint64_t wanted = 1;
    const struct body_place place = body_in(in, key);
    return body_number(body, in, key, &wanted) &&
           (wanted == 1 || body_refuse(body, &place, "one answer is given, not %llu", (unsigned long long)wanted));
}

/* ---- values ----------------------------------------------------------------------------------- */

char *body_copy(const json_t *string)
{
    struct buffer copy = {0};
    utf8_append_repaired(&copy, slice_of(json_string_value(string), json_string_length(string)));
    return buffer_take_str(&copy);
}

bool body_word(struct body *body, const struct body_place *in, const char *key, const char **ret)
{
    const struct body_place place = body_in(in, key);
    if (!place.value)
        return true;
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string");
    *ret = json_string_value(place.value);
    return true;
}

bool body_needed_word(struct body *body, const struct body_place *in, const char *key, const char **ret)
{
    const struct body_place place = body_in(in, key);
    return place.value ? body_word(body, in, key, ret) : body_refuse_kind(body, &place, "a string");
}

bool body_text(struct body *body, const struct body_place *in, const char *key, char **ret)
{
    const struct body_place place = body_in(in, key);
    if (!place.value)
        return true;
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string");
    free(*ret);
    *ret = body_copy(place.value);
    return *ret || body_out_of_memory(body);
}

bool body_name(struct body *body, const struct body_place *in, const char *key, char **ret)
{
    const struct body_place place = body_in(in, key);
    if (!json_is_string(place.value))
        return body_refuse_kind(body, &place, "a string");
    if (json_string_length(place.value) == 0)
        return body_refuse(body, &place, "it must not be empty");
    return body_text(body, in, key, ret);
}

bool body_flag(struct body *body, const struct body_place *in, const char *key, bool *ret)
{
    const struct body_place place = body_in(in, key);
    if (place.value && !json_is_boolean(place.value))
        return body_refuse_kind(body, &place, "a boolean");
    *ret = place.value ? json_is_true(place.value) : *ret;
    return true;
}

bool body_number(struct body *body, const struct body_place *in, const char *key, uint64_t *ret)
{
    const struct body_place place = body_in(in, key);
    if (!place.value)
        return true;
    if (!json_is_number(place.value))
        return body_refuse_kind(body, &place, "a number");
    const double value = json_number_value(place.value);
    if (!(value >= 0 && value <= NUMBER_MAX))
        return body_refuse(body, &place, "a number of 0 to %.0f is expected", NUMBER_MAX);
    *ret = (uint64_t)value;
    return true;
}

bool body_object(struct body *body, const struct body_place *place)
{
    return !place->value || json_is_object(place->value) || body_refuse_kind(body, place, "an object");
}

bool body_list(struct body *body, const struct body_place *place)
{
    return !place->value || json_is_array(place->value) || body_refuse_kind(body, place, "a list");
}

static bool is_object(struct body *body, const struct body_place *element)
{
    return json_is_object(element->value) || body_refuse_kind(body, element, "an object");
}

bool body_each(struct body *body, const struct body_place *list,
               bool (*read)(struct body *body, const struct body_place *element))
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        const struct body_place element = body_at(list, i);
        if (!is_object(body, &element) || !read(body, &element))
            return false;
    }
    return body_list(body, list);
}

bool body_each_with(struct body *body, const struct body_place *list,
                    bool (*read)(struct body *body, const struct body_place *element, const char *word),
                    const char *word)
{
    for (size_t i = 0; i < json_array_size(list->value); i++) {
        const struct body_place element = body_at(list, i);
        if (!is_object(body, &element) || !read(body, &element, word))
            return false;
    }
    return body_list(body, list);
}
