#include "common/json/json_doc_names.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/wide.h"
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

static void note_inside(struct json_doc_reader *reader, uint32_t index, const uint8_t *from)
{
    struct json_doc_node *node = &reader->doc->nodes[index];
    node->from = (uint32_t)(from - reader->doc->text.data);
    node->len = (uint32_t)(reader->at - 1 - from); /* behind the quote or bracket that ends it */
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

static bool is_plain(uint8_t c) { return c >= ' ' && c != '"' && c != '\\'; }

static wide are_plain(wide bytes) { return (wide)((bytes >= ' ') & (bytes != '"') & (bytes != '\\')); }

/* In the first byte that is not plain, and perhaps in bytes behind that, the highest bit. */
static uint64_t strange_in(uint64_t word)
{
    return word_has_less(word, ' ') | word_has_less(word ^ WORD_EACH('"'), 1) |
           word_has_less(word ^ WORD_EACH('\\'), 1);
}

static uint64_t word_of(wide bytes)
{
    uint64_t halves[2];
    memcpy(halves, &bytes, sizeof(halves));
    return halves[0] | halves[1];
}

/* Over all that stands for itself; whether that is ASCII. */
static bool skip_plain(struct json_doc_reader *reader)
{
    const uint8_t *at = reader->at;
    wide seen = {0};
    for (; reader->end - at >= 2 * WIDE_BYTES; at += 2 * WIDE_BYTES) {
        const wide a = wide_load(at), b = wide_load(at + WIDE_BYTES);
        if (!wide_is_full(are_plain(a) & are_plain(b)))
            break;
        seen |= a | b;
    }
    uint64_t bits = word_of(seen);
    for (; reader->end - at >= 8; at += 8) {
        const uint64_t word = word_load(at), strange = strange_in(word);
        if (strange) {
            const unsigned plain = word_first(strange);
            reader->at = at + plain;
            bits |= word & ((UINT64_C(1) << 8 * plain) - 1);
            return !(bits & WORD_EACH(0x80));
        }
        bits |= word;
    }
    for (; at < reader->end && is_plain(*at); at++)
        bits |= *at;
    reader->at = at;
    return !(bits & WORD_EACH(0x80));
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
    bool is_ascii = skip_plain(reader);
    for (; reader->at < reader->end && *reader->at == '\\'; is_ascii &= skip_plain(reader)) {
        reader->at++;
        node->has_escapes = true;
        if (!skip_escape(reader))
            return false;
    }
    node->is_ascii = is_ascii;
    if (reader->at == reader->end || *reader->at != '"')
        return false;
    reader->at++;
    note_inside(reader, index, from);
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
    const uint8_t *from = reader->at;
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
    note_inside(reader, index, from);
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
    const uint8_t *from = reader->at;
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
    note_inside(reader, index, from);
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
    if (reader->at == reader->end)
        return false;
    switch (*reader->at) {
    case '{': return level < JSON_DOC_LEVELS_MAX && reader->at++ && read_object(reader, level + 1);
    case '[': return level < JSON_DOC_LEVELS_MAX && reader->at++ && read_array(reader, level + 1);
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
