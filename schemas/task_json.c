#include "schemas/task_json.h"

#include "common/cleanup.h"
#include "common/utf8.h"

enum { DIGITS_MAX = 18 }; /* that many fit an int64_t, whatever they are */

struct source {
    const uint8_t *at, *end;
    struct buffer text; /* a string in the making */
};

static json_t *read_value(struct source *source, int levels);

static bool skip_byte(struct source *source, uint8_t byte)
{
    if (source->at == source->end || *source->at != byte)
        return false;
    source->at++;
    return true;
}

static void skip_blanks(struct source *source)
{
    while (source->at < source->end && (*source->at == ' ' || *source->at == '\n' ||
                                        *source->at == '\t' || *source->at == '\r'))
        source->at++;
}

/* ---- strings ---------------------------------------------------------------------------- */

#define EACH(byte) (0x0101010101010101u * (byte))
/* Not 0 where a byte of the word is less than `bound`, at most 0x80. */
static uint64_t has_less(uint64_t word, uint8_t bound)
{
    return (word - EACH(bound)) & ~word & EACH(0x80);
}

static bool is_plain(uint8_t byte) { return byte >= ' ' && byte != '"' && byte != '\\'; }

/* The bytes up to a quote, a backslash or a control character, which are passed. */
static struct slice take_plain(struct source *source)
{
    const uint8_t *start = source->at;
    for (uint64_t word; source->end - source->at >= (ptrdiff_t)sizeof(word); source->at += sizeof(word)) {
        memcpy(&word, source->at, sizeof(word));
        if (has_less(word, ' ') | has_less(word ^ EACH('"'), 1) | has_less(word ^ EACH('\\'), 1))
            break;
    }
    while (source->at < source->end && is_plain(*source->at))
        source->at++;
    return slice_of(start, (size_t)(source->at - start));
}

/* An escape but \u, as the byte it stands for. */
static bool take_escape(struct source *source, char *ret)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    if (!skip_byte(source, '\\') || source->at == source->end || !*source->at)
        return false;
    const char *found = strchr(names, *source->at);
    if (!found)
        return false;
    *ret = bytes[found - names];
    source->at++;
    return true;
}

/* From its first quote: to the last, over what is escaped. */
static json_t *leave_string(struct source *source, const uint8_t *start)
{
    source->at = start + 1;
    for (take_plain(source); skip_byte(source, '\\'); take_plain(source))
        if (source->at < source->end)
            source->at++;
    if (!skip_byte(source, '"'))
        return NULL;
    return json_loadb((const char *)start, (size_t)(source->at - start), JSON_DECODE_ANY, NULL);
}

static json_t *make_string(struct slice text)
{
    return utf8_is_valid(text) ? json_stringn_nocheck((const char *)text.data, text.len) : NULL;
}

static json_t *read_string(struct source *source)
{
    const uint8_t *start = source->at++;
    struct slice plain = take_plain(source);
    if (skip_byte(source, '"'))
        return make_string(plain);
    buffer_clear(&source->text);
    for (char byte; buffer_append(&source->text, plain.data, plain.len); plain = take_plain(source)) {
        if (skip_byte(source, '"'))
            return make_string(buffer_peek(&source->text));
        if (!take_escape(source, &byte))
            return leave_string(source, start);
        buffer_append(&source->text, &byte, 1);
    }
    return NULL;
}

/* ---- other values ------------------------------------------------------------------------- */

static json_t *read_number(struct source *source)
{
    const uint8_t *start = source->at;
    bool is_negative = skip_byte(source, '-');
    const uint8_t *digits = source->at;
    int64_t number = 0;
    while (source->at < source->end && *source->at >= '0' && *source->at <= '9' &&
           source->at - digits < DIGITS_MAX)
        number = number * 10 + (*source->at++ - '0');
    bool is_whole = source->at > digits && (*digits != '0' || source->at == digits + 1);
    while (source->at < source->end && *source->at && strchr("+-.0123456789Ee", *source->at)) {
        source->at++;
        is_whole = false;
    }
    if (is_whole)
        return json_integer(is_negative ? -number : number);
    return json_loadb((const char *)start, (size_t)(source->at - start), JSON_DECODE_ANY, NULL);
}

static json_t *read_word(struct source *source, const char *word, json_t *value)
{
    size_t len = strlen(word);
    if ((size_t)(source->end - source->at) < len || memcmp(source->at, word, len) != 0)
        return NULL;
    source->at += len;
    return value;
}

static bool read_element(struct source *source, json_t *array, int levels)
{
    return json_array_append_new(array, read_value(source, levels)) == 0;
}

/* A name with an escape is not common. */
static bool read_member(struct source *source, json_t *object, int levels)
{
    skip_blanks(source);
    if (!skip_byte(source, '"'))
        return false;
    struct slice name = take_plain(source);
    if (!skip_byte(source, '"') || !utf8_is_valid(name) ||
        json_object_getn(object, (const char *)name.data, name.len))
        return false;
    skip_blanks(source);
    return skip_byte(source, ':') &&
           json_object_setn_new_nocheck(object, (const char *)name.data, name.len,
                                        read_value(source, levels)) == 0;
}

/* What lies between the brackets, in order. */
static json_t *read_all(struct source *source, json_t *made, uint8_t last, int levels,
                        bool (*read_one)(struct source *source, json_t *made, int levels))
{
    source->at++;
    skip_blanks(source);
    bool is_good = made != NULL, is_done = skip_byte(source, last);
    while (is_good && !is_done) {
        is_good = read_one(source, made, levels);
        skip_blanks(source);
        is_done = skip_byte(source, last);
        is_good = is_good && (is_done || skip_byte(source, ','));
    }
    if (is_good)
        return made;
    json_decref(made);
    return NULL;
}

static json_t *read_value(struct source *source, int levels)
{
    skip_blanks(source);
    if (source->at == source->end || levels == 0)
        return NULL;
    switch (*source->at) {
    case '{': return read_all(source, json_object(), '}', levels - 1, read_member);
    case '[': return read_all(source, json_array(), ']', levels - 1, read_element);
    case '"': return read_string(source);
    case 't': return read_word(source, "true", json_true());
    case 'f': return read_word(source, "false", json_false());
    case 'n': return read_word(source, "null", json_null());
    default:  return read_number(source);
    }
}

json_t *task_json_read(struct slice json)
{
    if (json.len == 0)
        return NULL;
    struct source source = {.at = json.data, .end = json.data + json.len};
    json_t *value = read_value(&source, TASK_JSON_LEVELS_MAX);
    buffer_finish(&source.text);
    skip_blanks(&source);
    if (source.at == source.end && (json_is_object(value) || json_is_array(value)))
        return value;
    json_decref(value);
    return NULL;
}
