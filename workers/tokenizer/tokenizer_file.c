/* tokenizer_file.c - reading a tokenizer.json, and refusing what is not known here. */
#include "workers/tokenizer/tokenizer_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/tokenizer/tokenizer_inside.h"

/* ---- bytes as characters ------------------------------------------------------------------- */

static bool is_itself(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/* The byte that a character stands for; -1: none. As GPT-2 has it: the rest follows 0xff. */
static int byte_of(uint32_t character)
{
    static int16_t others[256];
    static bool is_ready;
    for (unsigned byte = 0, next = 0; !is_ready && byte < 256; byte++)
        if (!is_itself(byte))
            others[next++] = (int16_t)byte;
    is_ready = true;
    if (character < 256)
        return is_itself(character) ? (int)character : -1;
    return character < 256 + 68 ? others[character - 256] : -1;
}

/* Byte-level vocabularies are written with a printable character for each byte. False: it is none. */
static bool byte_level_decode(struct slice text, struct buffer *ret)
{
    for (size_t at = 0; at < text.len;) {
        const uint8_t *bytes = text.data + at;
        const size_t len = utf8_sequence(slice_of(bytes, text.len - at));
        const int byte = len == 1   ? byte_of(bytes[0])
                         : len == 2 ? byte_of((bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu))
                                    : -1;
        if (byte < 0 || !buffer_append(ret, &(uint8_t){(uint8_t)byte}, 1))
            return false;
        at += len;
    }
    return true;
}

/* ---- tokens ------------------------------------------------------------------------------ */

static bool read_id(const json_t *json, uint32_t *ret)
{
    const json_int_t value = json_integer_value(json);
    if (!json_is_integer(json) || value < 0 || value >= TOKENIZER_TOKENS_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

/* Of both the vocabulary and the added tokens. */
static int find_id_end(const json_t *vocab, const json_t *added, size_t *ret, struct fail *fail)
{
    const char *key;
    json_t *value;
    size_t i;
    uint32_t id;
    *ret = 0;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        if (!read_id(value, &id))
            return fail_set(fail, -EINVAL, "token \"%.40s\" has no id below %d", key, TOKENIZER_TOKENS_MAX);
        *ret = id >= *ret ? id + 1 : *ret;
    }
    json_array_foreach(added, i, value)
    {
        if (!read_id(json_object_get(value, "id"), &id))
            return fail_set(fail, -EINVAL, "added token %zu has no id below %d", i, TOKENIZER_TOKENS_MAX);
        *ret = id >= *ret ? id + 1 : *ret;
    }
    return 0;
}

static int read_token(struct tokenizer *tokenizer, struct slice text, uint32_t id, struct fail *fail)
{
    AUTO_BUFFER bytes = {0};
    const int32_t added = vocabulary_find(&tokenizer->names, text);
    if (added != VOCABULARY_NONE && (uint32_t)added == id)
        return 0; /* an added token may stand here, too, as it is */
    if (text.len == 0 || text.len > TOKENIZER_TOKEN_BYTES_MAX)
        return fail_set(fail, -EINVAL, "token %u is empty or longer than %d bytes", id, TOKENIZER_TOKEN_BYTES_MAX);
    if (!byte_level_decode(text, &bytes))
        return fail_set(fail, -EINVAL, "token %u is not written byte by byte", id);
    return vocabulary_get(&tokenizer->names, id).len == 0 &&
                   vocabulary_add(&tokenizer->vocabulary, id, buffer_peek(&bytes))
               ? 0
               : fail_set(fail, -EINVAL, "token %u is there twice", id);
}

static int read_vocab(struct tokenizer *tokenizer, const json_t *vocab, struct fail *fail)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)vocab, key, value)
    {
        int error = read_token(tokenizer, slice_from_str(key), (uint32_t)json_integer_value(value), fail);
        if (error < 0)
            return error;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        const int32_t id = vocabulary_find(&tokenizer->vocabulary, slice_of(&(uint8_t){(uint8_t)byte}, 1));
        tokenizer->bytes[byte] = id == VOCABULARY_NONE ? UINT32_MAX : (uint32_t)id;
    }
    return 0;
}

static int read_added_token(struct tokenizer *tokenizer, const json_t *token, struct fail *fail)
{
    static const char *const unknown[] = {"lstrip", "rstrip", "single_word"};
    const json_t *content = json_object_get(token, "content");
    const struct slice name = slice_of(json_string_value(content), json_string_length(content));
    const uint32_t id = (uint32_t)json_integer_value(json_object_get(token, "id"));
    if (name.len == 0 || name.len > TOKENIZER_TOKEN_BYTES_MAX)
        return fail_set(fail, -EINVAL, "added token %u has no content of at most %d bytes", id,
                        TOKENIZER_TOKEN_BYTES_MAX);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        if (json_is_true(json_object_get(token, unknown[i])))
            return fail_set(fail, -EINVAL, "added token %u has %s", id, unknown[i]);
    tokenizer->normalizes_names |= json_is_true(json_object_get(token, "normalized"));
    return vocabulary_add(&tokenizer->names, id, name) &&
                   added_put(&tokenizer->added, name, id, json_is_true(json_object_get(token, "special")))
               ? 0
               : fail_set(fail, -EINVAL, "added token %u is there twice", id);
}

/* ---- merges ------------------------------------------------------------------------------ */

/* "a b", or ["a", "b"]. */
static bool split_merge(const json_t *merge, struct slice *left, struct slice *right)
{
    const json_t *first = json_array_get(merge, 0), *second = json_array_get(merge, 1);
    *left = slice_of(json_string_value(first), json_string_length(first));
    *right = slice_of(json_string_value(second), json_string_length(second));
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *space = strchr(text, ' ');
        if (!space)
            return false;
        *left = slice_of(text, (size_t)(space - text));
        *right = slice_from_str(space + 1);
    }
    return left->len > 0 && right->len > 0;
}

static int read_merge(struct tokenizer *tokenizer, const json_t *json, uint32_t rank, struct fail *fail)
{
    struct vocabulary *vocabulary = &tokenizer->vocabulary;
    AUTO_BUFFER bytes = {0};
    struct slice left, right;
    if (!split_merge(json, &left, &right) || !byte_level_decode(left, &bytes))
        return fail_set(fail, -EINVAL, "merge %u is not one of two tokens", rank);
    const size_t cut = bytes.len;
    if (!byte_level_decode(right, &bytes))
        return fail_set(fail, -EINVAL, "merge %u is not one of two tokens", rank);
    const int32_t a = vocabulary_find(vocabulary, slice_of(bytes.data, cut)),
                  b = vocabulary_find(vocabulary, slice_of(bytes.data + cut, bytes.len - cut)),
                  merged = vocabulary_find(vocabulary, buffer_peek(&bytes));
    if (a == VOCABULARY_NONE || b == VOCABULARY_NONE || merged == VOCABULARY_NONE)
        return fail_set(fail, -EINVAL, "merge %u is of tokens that there are not", rank);
    vocabulary_add_merge(vocabulary, (struct vocabulary_merge){(uint32_t)a, (uint32_t)b, (uint32_t)merged, rank});
    return 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

/* What would change ids, and is not done here. */
static int check_model(const json_t *model, struct fail *fail)
{
    static const char *const empty[] = {"continuing_subword_prefix", "end_of_word_suffix", "dropout"};
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type && strcmp(type, "BPE") != 0)
        return fail_set(fail, -EINVAL, "its model is %.40s, not BPE", type);
    for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
        const json_t *value = json_object_get(model, empty[i]);
        if (value && !json_is_null(value) && !(json_is_string(value) && json_string_length(value) == 0))
            return fail_set(fail, -EINVAL, "its model has a %s", empty[i]);
    }
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return fail_set(fail, -EINVAL, "its model has byte_fallback");
    return json_is_object(json_object_get(model, "vocab")) && json_is_array(json_object_get(model, "merges"))
               ? 0
               : fail_set(fail, -EINVAL, "its model has no vocab or no merges");
}

static int read_normalizer(struct tokenizer *tokenizer, const json_t *normalizer, struct fail *fail)
{
    const char *type = json_string_value(json_object_get(normalizer, "type"));
    tokenizer->normalizes = type && strcmp(type, "NFC") == 0;
    return !normalizer || json_is_null(normalizer) || tokenizer->normalizes
               ? 0
               : fail_set(fail, -EINVAL, "its normalizer is %.40s, not NFC", type ? type : "?");
}

static int read_tokens(struct tokenizer *tokenizer, const json_t *model, const json_t *added, struct fail *fail)
{
    const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    const json_t *element;
    size_t id_end, i;
    if (json_object_size(vocab) > TOKENIZER_TOKENS_MAX || json_array_size(merges) > TOKENIZER_TOKENS_MAX ||
        json_array_size(added) > TOKENIZER_ADDED_MAX)
        return fail_set(fail, -EINVAL, "more than %d tokens or merges, or %d added tokens", TOKENIZER_TOKENS_MAX,
                        TOKENIZER_ADDED_MAX);
    int error = find_id_end(vocab, added, &id_end, fail);
    tokenizer->id_end = error == 0 ? id_end : 0;
    if (error == 0 &&
        (!vocabulary_init(&tokenizer->vocabulary, id_end, json_object_size(vocab), json_array_size(merges)) ||
         !vocabulary_init(&tokenizer->names, id_end, json_array_size(added), 0)))
        error = fail_memory(fail);
    for (i = 0; error == 0 && (element = json_array_get(added, i)); i++)
        error = read_added_token(tokenizer, element, fail);
    if (error == 0)
        error = read_vocab(tokenizer, vocab, fail);
    for (i = 0; error == 0 && (element = json_array_get(merges, i)); i++)
        error = read_merge(tokenizer, element, (uint32_t)i, fail);
    return error;
}

int tokenizer_read(struct tokenizer *tokenizer, const json_t *file, struct fail *fail)
{
    const json_t *model = json_object_get(file, "model");
    int error = check_model(model, fail);
    if (error == 0)
        error = read_normalizer(tokenizer, json_object_get(file, "normalizer"), fail);
    if (error == 0)
        error = splits_read(&tokenizer->splits, json_object_get(file, "pre_tokenizer"), fail);
    tokenizer->ignores_merges = json_is_true(json_object_get(model, "ignore_merges"));
    return error < 0 ? error : read_tokens(tokenizer, model, json_object_get(file, "added_tokens"), fail);
}
