#include "workers/evaluators/answers/choice_options.h"

#include "common/base/text.h"
#include "workers/evaluators/answers/texts_equal.h"

static uint32_t bit_of(size_t i) { return 1U << i; }

static bool is_one(uint32_t letters) { return letters != 0 && (letters & (letters - 1)) == 0; }

bool choice_is_known(const struct choice_options *options, uint32_t letters)
{
    uint32_t known = 0;
    for (size_t i = 0; i < CHOICE_OPTIONS_MAX; i++)
        known |= options->texts[i] ? bit_of(i) : 0;
    return options->count == 0 || (letters & ~known) == 0;
}

/* Without \text{}, emphasis, quotes and the sentence's full stop around it. Brackets are the text's own: (1,2) is not
 * [1,2]. */
static struct slice bare(struct slice text)
{
    enum { PEELS_MAX = 8 };
    text = text_trim(text);
    for (int i = 0; i < PEELS_MAX; i++) {
        if (text.len > 1 && text.data[text.len - 1] == '.')
            text = text_trim(slice_of(text.data, text.len - 1));
        else if (!choice_peel_marks(&text))
            break;
    }
    return text;
}

/* The options with this text, by the strictest comparison by which any has it: "na" is NA, but not beside na. */
static uint32_t options_of(struct slice text, const struct choice_options *options)
{
    static const struct {
        enum normalize normalize;
        bool is_bare;
    } ways[] = {{NORMALIZE_BLANKS, false}, {NORMALIZE_CASE, false}, {NORMALIZE_CASE, true}};
    uint32_t found = 0;
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]) && !found; way++)
        for (size_t i = 0; i < CHOICE_OPTIONS_MAX; i++) {
            if (!options->texts[i])
                continue;
            const struct slice option = slice_from_str(options->texts[i]);
            const bool is_bare = ways[way].is_bare;
            if (texts_equal(is_bare ? bare(option) : option, is_bare ? bare(text) : text, ways[way].normalize))
                found |= bit_of(i);
        }
    return found;
}

static enum choice_how chosen(enum choice_how how, uint32_t letters, uint32_t *ret)
{
    *ret = letters;
    return how;
}

enum choice_how choice_read(struct slice text, const struct choice_options *options, uint32_t *ret)
{
    struct slice behind;
    uint32_t letters = choice_letters(text, &behind);
    if (!choice_is_known(options, letters))
        letters = 0;
    if (options->count == 0 || (letters && behind.len == 0))
        return chosen(letters ? CHOICE_BY_LETTERS : CHOICE_NOTHING, letters, ret);
    const uint32_t said = options_of(text, options);
    if (said)
        return is_one(said) ? chosen(CHOICE_BY_TEXT, said, ret) : chosen(CHOICE_SHARED_TEXT, 0, ret);
    if (!letters)
        return chosen(CHOICE_NOTHING, 0, ret);
    const uint32_t meant = options_of(behind, options);
    return meant && !(meant & letters) ? chosen(CHOICE_MISMATCH, 0, ret) : chosen(CHOICE_BY_LETTERS, letters, ret);
}
