/*
 * A tokenizer.json of anybody: it is refused with a sentence, or what it encodes comes back byte for
 * byte. And any text through a tokenizer that is well-formed: first byte odd.
 */
#include "tests/fuzz.h"
#include "tests/workers/tokenizer/tokenizer_file.h"

static const char *const tokens[] = {"aa", "ab", "aab", "11", "th", "the", NULL};
static const char *const merges[] = {"a a", "a b", "aa b", "1 1", "t h", "th e", NULL};

static void encode(struct tokenizer *tokenizer, struct slice text, bool specials)
{
    struct tokens ids = {0};
    struct fail fail = {0};
    AUTO_BUFFER back = {0};
    const int code = tokenizer_encode(tokenizer, text, specials, &ids, &fail);
    must(code == 0 || (code < 0 && fail.text[0] && ids.count == 0));
    if (code == 0) {
        must(tokenizer_decode(tokenizer, &ids, &back));
        must(slice_equal(buffer_peek(&back), text));
    }
    tokens_finish(&ids);
}

static void read_file(struct slice json)
{
    struct tokenizer *tokenizer = NULL;
    struct fail fail = {0};
    const int code = tokenizer_parse(json, &tokenizer, &fail);
    must((code == 0) == (tokenizer != NULL) && (code == 0 || fail.text[0]));
    if (!tokenizer)
        return;
    encode(tokenizer, slice_from_str("aab the 112 \u00e9\n\n  <e><e>>"), true);
    encode(tokenizer, slice_from_str("aab the 112 \u00e9\n\n  <e><e>>"), false);
    tokenizer_destroy(&tokenizer);
}

static void read_text(struct slice text)
{
    static struct tokenizer *tokenizer;
    struct fail fail = {0};
    if (!tokenizer) {
        AUTO_FREE char *json = file_write(
            &(struct file_parts){.tokens = tokens,
                                 .merges = merges,
                                 .pre = PRE_GPT2,
                                 .added = ADDED("300", "<e>", "true") "," ADDED("301", "<e>>", "false")});
        must(tokenizer_parse(slice_from_str(json), &tokenizer, &fail) == 0);
    }
    encode(tokenizer, text, true);
    encode(tokenizer, text, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2)
        read_text(slice_of(data + 1, size - 1));
    else
        read_file(slice_of(data, size));
    return 0;
}
