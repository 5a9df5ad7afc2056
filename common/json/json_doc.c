#include "common/json/json_doc_names.h"

#include <errno.h>
#include <stdlib.h>

#include "common/json/json_number.h"

struct json_doc_reader {
    struct json_doc *doc;
    const uint8_t *at, *end;
    size_t nodes_max;
    bool no_memory, has_twice, has_too_many; /* why it could not be read, if it was not the form */
};

/* ---- pieces of text ---------------------------------------------------------------------- */

static void skip_blanks(struct json_doc_reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

static inline bool take(struct json_doc_reader *reader, char wanted)
{
    if (reader->at == reader->end || *reader->at != wanted) /* where it stands at once, it is no blank */
        skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

static bool take_word(struct json_doc_reader *reader, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(reader->end - reader->at) < len || memcmp(reader->at, word, len) != 0)
        return false;
    reader->at += len;
    return true;
}

static bool grow(struct json_doc_reader *reader)
{
    struct json_doc *doc = reader->doc;
    reader->has_too_many = doc->count == reader->nodes_max;
    if (reader->has_too_many)
        return false;
    size_t capacity = doc->capacity ? doc->capacity * 2 : 64;
    capacity = capacity < reader->nodes_max ? capacity : reader->nodes_max;
    struct json_doc_node *nodes = capacity < UINT32_MAX ? realloc(doc->nodes, capacity * sizeof(*nodes)) : NULL;
    reader->no_memory = !nodes;
    if (!nodes)
        return false;
    doc->nodes = nodes;
    doc->capacity = capacity;
    return true;
}

/* A new node, or UINT32_MAX. Nodes move: hold their indices. */
static inline uint32_t add_node(struct json_doc_reader *reader, enum json_doc_kind kind)
{
    struct json_doc *doc = reader->doc;
    if (doc->count == doc->capacity && !grow(reader))
        return UINT32_MAX;
    doc->nodes[doc->count] = (struct json_doc_node){.kind = kind};
    return (uint32_t)doc->count++;
}

static bool close_node(struct json_doc_reader *reader, uint32_t index)
{
    reader->doc->nodes[index].next = (uint32_t)reader->doc->count;
    return true;
}

/* ---- values ------------------------------------------------------------------------------ */

static bool is_hex(uint8_t c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

/* Behind a backslash. */
static bool skip_escape(struct json_doc_reader *reader)
{
    if (reader->at == reader->end || !strchr("\"\\/bfnrtu", *reader->at) || !*reader->at)
        return false;
    if (*reader->at++ != 'u')
        return true;
    for (int i = 0; i < 4; i++)
        if (reader->at == reader->end || !is_hex(*reader->at++))
            return false;
    return true;
}

#define EACH(byte) (0x0101010101010101u * (byte))

/* Not 0 where a byte of the word is less than `bound`, at most 0x80. */
static uint64_t has_less(uint64_t word, uint8_t bound) { return (word - EACH(bound)) & ~word & EACH(0x80); }

static bool is_plain(uint8_t c) { return c >= ' ' && c != '"' && c != '\\'; }

/* Over all that stands for itself, eight bytes at a time. */
static void skip_plain(struct json_doc_reader *reader)
{
    const uint8_t *at = reader->at;
    for (uint64_t word; reader->end - at >= (ptrdiff_t)sizeof(word); at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        if (has_less(word, ' ') | has_less(word ^ EACH('"'), 1) | has_less(word ^ EACH('\\'), 1))
            break;
    }
    while (at < reader->end && is_plain(*at))
        at++;
    reader->at = at;
}

static bool read_string(struct json_doc_reader *reader)
{
    if (!take(reader, '"'))
        return false;
    uint32_t index = add_node(reader, JSON_DOC_STRING);
    if (index == UINT32_MAX)
        return false;
    const uint8_t *from = reader->at;
    struct json_doc_node *node = &reader->doc->nodes[index];
    for (skip_plain(reader); reader->at < reader->end && *reader->at == '\\'; skip_plain(reader)) {
        reader->at++;
        node->has_escapes = true;
        if (!skip_escape(reader))
            return false;
    }
    if (reader->at == reader->end || *reader->at != '"')
        return false;
    node->from = (uint32_t)(from - reader->doc->text.data);
    node->len = (uint32_t)(reader->at++ - from);
    return close_node(reader, index);
}

static bool read_number(struct json_doc_reader *reader)
{
    struct json_number number;
    const uint8_t *end = json_number_read(reader->at, reader->end, &number);
    uint32_t index = end ? add_node(reader, number.is_integer ? JSON_DOC_INTEGER : JSON_DOC_REAL) : UINT32_MAX;
    if (index == UINT32_MAX)
        return false;
    struct json_doc_node *node = &reader->doc->nodes[index];
    reader->at = end;
    if (number.is_integer)
        node->integer = number.integer;
    else
        node->real = number.real;
    return close_node(reader, index);
}

static bool read_value(struct json_doc_reader *reader, int level);

static bool read_array(struct json_doc_reader *reader, int level)
{
    uint32_t index = add_node(reader, JSON_DOC_ARRAY), count = 0;
    if (index == UINT32_MAX)
        return false;
    if (!take(reader, ']')) {
        do {
            if (!read_value(reader, level))
                return false;
            count++;
        } while (take(reader, ','));
        if (!take(reader, ']'))
            return false;
    }
    reader->doc->nodes[index].count = count;
    return close_node(reader, index);
}

static bool check_names(struct json_doc_reader *reader, uint32_t object)
{
    const int unique = json_doc_names_are_unique(reader->doc, &reader->doc->nodes[object]);
    reader->no_memory |= unique < 0;
    reader->has_twice |= unique == 0;
    return unique == 1;
}

static bool read_object(struct json_doc_reader *reader, int level)
{
    uint32_t index = add_node(reader, JSON_DOC_OBJECT), count = 0;
    if (index == UINT32_MAX)
        return false;
    if (!take(reader, '}')) {
        do {
            if (!read_string(reader) || !take(reader, ':') || !read_value(reader, level))
                return false;
            count++;
        } while (take(reader, ','));
        if (!take(reader, '}'))
            return false;
    }
    reader->doc->nodes[index].count = count;
    return close_node(reader, index) && check_names(reader, index);
}

static bool read_word(struct json_doc_reader *reader)
{
    static const struct {
        const char *word;
        enum json_doc_kind kind;
    } words[] = {{"null", JSON_DOC_NULL}, {"false", JSON_DOC_FALSE}, {"true", JSON_DOC_TRUE}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (take_word(reader, words[i].word)) {
            uint32_t index = add_node(reader, words[i].kind);
            return index != UINT32_MAX && close_node(reader, index);
        }
    return false;
}

static bool read_value(struct json_doc_reader *reader, int level)
{
    skip_blanks(reader);
    if (reader->at == reader->end || level == JSON_DOC_LEVELS_MAX)
        return false;
    switch (*reader->at) {
    case '{': reader->at++; return read_object(reader, level + 1);
    case '[': reader->at++; return read_array(reader, level + 1);
    case '"': return read_string(reader);
    case 'n':
    case 'f':
    case 't': return read_word(reader);
    default: return read_number(reader);
    }
}

int json_doc_parse_up_to(struct slice text, size_t nodes_max, struct json_doc *ret, struct fail *fail)
{
    *ret = (struct json_doc){.text = text};
    if (text.len >= UINT32_MAX)
        return fail_set(fail, -EPROTO, "the JSON is too long");
    struct json_doc_reader reader = {.doc = ret, .at = text.data, .end = text.data + text.len, .nodes_max = nodes_max};
    if (read_value(&reader, 0)) {
        skip_blanks(&reader);
        if (reader.at == reader.end)
            return 0;
    }
    if (reader.no_memory)
        return fail_memory(fail);
    if (reader.has_too_many)
        return fail_set(fail, -E2BIG, "the JSON has more than %zu values and names", nodes_max);
    return fail_set(fail, -EPROTO,
                    reader.has_twice ? "the JSON gives a key twice, before byte %zu" : "the JSON is broken at byte %zu",
                    text.len ? (size_t)(reader.at - text.data) : 0);
}

int json_doc_parse(struct slice text, struct json_doc *ret, struct fail *fail)
{
    return json_doc_parse_up_to(text, UINT32_MAX, ret, fail);
}

void json_doc_finish(struct json_doc *doc)
{
    free(doc->nodes);
    *doc = (struct json_doc){0};
}
