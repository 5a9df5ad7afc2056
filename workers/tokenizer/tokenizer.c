#include "workers/tokenizer/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "common/base/text.h"
#include "workers/tokenizer/nfc.h"
#include "workers/tokenizer/tokenizer_file.h"
#include "workers/tokenizer/tokenizer_inside.h"

enum { FILE_LEVELS_MAX = 16 };

/* ---- making ------------------------------------------------------------------------------ */

int tokenizer_parse(struct slice json, struct tokenizer **ret, struct fail *fail)
{
    json_error_t error;
    if (json.len > TOKENIZER_FILE_MAX)
        return fail_set(fail, -EINVAL, "a tokenizer.json of more than %d MiB", TOKENIZER_FILE_MAX >> 20);
    if (!text_is_shallow(json, FILE_LEVELS_MAX))
        return fail_set(fail, -EINVAL, "a tokenizer.json of more than %d levels", FILE_LEVELS_MAX);
    json_t *file = json_loadb((const char *)json.data, json.len, JSON_REJECT_DUPLICATES, &error);
    if (!file)
        return fail_set(fail, -EINVAL, "not JSON: line %d: %.160s", error.line, error.text);
    struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
    int code = tokenizer ? tokenizer_read(tokenizer, file, fail) : fail_memory(fail);
    json_decref(file);
    if (code < 0)
        tokenizer_destroy(&tokenizer);
    else
        *ret = tokenizer;
    return code;
}

int tokenizer_load(const char *path, struct tokenizer **ret, struct fail *fail)
{
    AUTO_FCLOSE FILE *file = fopen(path, "re");
    AUTO_BUFFER json = {0};
    char chunk[65536];
    size_t len;
    if (!file)
        return fail_set(fail, -errno, "%s: %s", path, strerror(errno));
    while (json.len <= TOKENIZER_FILE_MAX && (len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buffer_append(&json, chunk, len);
    if (ferror(file) || json.failed)
        return fail_set(fail, -EIO, "%s: it cannot be read", path);
    int code = tokenizer_parse(buffer_peek(&json), ret, fail);
    return code < 0 ? fail_wrap(fail, "%s", path) : 0;
}

void tokenizer_destroy(struct tokenizer **tokenizer)
{
    struct tokenizer *old = take_ptr(tokenizer);
    if (!old)
        return;
    vocabulary_finish(&old->vocabulary);
    vocabulary_finish(&old->names);
    added_finish(&old->added);
    splits_finish(&old->splits);
    bpe_finish(&old->bpe);
    free(old);
}

/* ---- NFC without normalizing --------------------------------------------------------------- */

/*
 * Characters that NFC leaves as they are whatever stands beside them, as long as that is one of
 * them, too: none is replaced, combines, or is composed. Unicode 15, a part of them.
 */
static const struct {
    uint32_t first, last;
} inert[] = {
    {0x0000, 0x02ff}, {0x0400, 0x0482}, {0x2010, 0x2027}, {0x2030, 0x205e},   {0x2190, 0x2328},
    {0x2500, 0x27bf}, {0x3001, 0x3029}, {0x3041, 0x3096}, {0x30a0, 0x30ff},   {0x4e00, 0x9fff},
    {0xac00, 0xd7a3}, {0xff01, 0xff60}, {0xfffd, 0xfffd}, {0x1f300, 0x1faff},
};

static bool is_inert(uint32_t character)
{
    for (size_t i = 0; i < sizeof(inert) / sizeof(*inert); i++)
        if (character >= inert[i].first && character <= inert[i].last)
            return true;
    return false;
}

static bool is_nfc_for_sure(struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        const size_t len = utf8_sequence(slice_of(text.data + at, text.len - at));
        if (len == 0 || !is_inert(utf8_character(text.data + at, len)))
            return false;
        at += len;
    }
    return true;
}

/* ---- encoding ---------------------------------------------------------------------------- */

struct encoding {
    struct tokenizer *tokenizer;
    struct tokens *ids;
    bool normalizes; /* what stands between added tokens, as it is cut */
};

static int take_piece(void *arg, struct slice piece)
{
    const struct encoding *encoding = arg;
    struct tokenizer *tokenizer = encoding->tokenizer;
    const int32_t whole = tokenizer->ignores_merges ? vocabulary_find(&tokenizer->vocabulary, piece) : VOCABULARY_NONE;
    if (whole != VOCABULARY_NONE)
        return tokens_append(encoding->ids, &(uint32_t){(uint32_t)whole}, 1) ? 0 : -ENOMEM;
    for (size_t i = 0; i < piece.len; i++)
        if (tokenizer->bytes[piece.data[i]] == UINT32_MAX)
            return -ENOTSUP;
    return bpe_encode(&tokenizer->bpe, &tokenizer->vocabulary, tokenizer->bytes, piece, encoding->ids) ? 0 : -ENOMEM;
}

/* Bytes until the next name of an added token, and its own bytes and id; 0 of these at the end. */
static size_t find_added(const struct tokenizer *tokenizer, struct slice text, bool specials, size_t *len, uint32_t *id)
{
    size_t at = 0;
    *len = 0;
    while (at < text.len &&
           !(*len = added_match(&tokenizer->added, slice_of(text.data + at, text.len - at), specials, id)))
        at++;
    return at;
}

static int encode_plain(struct encoding *encoding, struct slice text)
{
    AUTO_BUFFER normal = {0};
    if (!encoding->normalizes || is_nfc_for_sure(text))
        return splits_run(&encoding->tokenizer->splits, text, take_piece, encoding);
    return nfc_append(&normal, text)
               ? splits_run(&encoding->tokenizer->splits, buffer_peek(&normal), take_piece, encoding)
               : -ENOTSUP;
}

static int encode(struct encoding *encoding, struct slice text, bool specials)
{
    int code = 0;
    while (code == 0 && text.len > 0) {
        size_t len;
        uint32_t id = 0;
        const size_t before = find_added(encoding->tokenizer, text, specials, &len, &id);
        code = encode_plain(encoding, slice_of(text.data, before));
        if (code == 0 && len > 0 && !tokens_append(encoding->ids, &id, 1))
            code = -ENOMEM;
        text = slice_of(text.data + before + len, text.len - before - len);
    }
    return code;
}

static int encode_or_refuse(struct tokenizer *tokenizer, struct slice text, bool specials, bool normalizes,
                            struct tokens *ret, struct fail *fail)
{
    const size_t count = ret->count;
    struct encoding encoding = {tokenizer, ret, normalizes};
    if (text.len > TOKENIZER_TEXT_MAX)
        return fail_set(fail, -ENOTSUP, "a text of more than %d bytes", TOKENIZER_TEXT_MAX);
    if (!utf8_is_valid(text))
        return fail_set(fail, -ENOTSUP, "a text that is not UTF-8");
    if (tokenizer->normalizes && !normalizes && !is_nfc_for_sure(text))
        return fail_set(fail, -ENOTSUP, "a text that may have to be normalized");
    int code = encode(&encoding, text, specials);
    if (code < 0)
        ret->count = count;
    return code == 0 ? 0
                     : fail_set(fail, code, "%s", code == -ENOMEM ? "out of memory" : "a text that is beyond limits");
}

int tokenizer_encode(struct tokenizer *tokenizer, struct slice text, bool specials, struct tokens *ret,
                     struct fail *fail)
{
    return encode_or_refuse(tokenizer, text, specials, false, ret, fail);
}

int tokenizer_encode_alone(struct tokenizer *tokenizer, struct slice text, bool specials, struct tokens *ret,
                           struct fail *fail)
{
    return encode_or_refuse(tokenizer, text, specials, tokenizer->normalizes && !tokenizer->normalizes_names, ret,
                            fail);
}

uint64_t tokenizer_id_end(const struct tokenizer *tokenizer) { return tokenizer->id_end; }

bool tokenizer_decode(const struct tokenizer *tokenizer, const struct tokens *ids, struct buffer *ret)
{
    for (size_t i = 0; i < ids->count; i++) {
        struct slice bytes = vocabulary_get(&tokenizer->names, ids->ids[i]);
        if (bytes.len == 0)
            bytes = vocabulary_get(&tokenizer->vocabulary, ids->ids[i]);
        if (bytes.len == 0 || !buffer_append(ret, bytes.data, bytes.len))
            return false;
    }
    return true;
}
