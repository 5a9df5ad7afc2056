#include "workers/evaluators/answers/choice_options.h"

#include <ctype.h>
#include <strings.h>

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

/* "B. Lyon" at the start: a letter, what stands behind letters, and the text of its option. */
static uint32_t option_at(struct slice text, const struct choice_options *options)
{
    const size_t i = (size_t)(toupper(text.data[0]) - 'A');
    if (i >= CHOICE_OPTIONS_MAX || !options->texts[i] || text.len < 2 || !strchr(".:)]-", text.data[1]))
        return 0;
    const struct slice said = text_trim(slice_of(text.data + 2, text.len - 2));
    const struct slice option = text_trim(slice_from_str(options->texts[i]));
    const bool is_said = option.len > 0 && said.len >= option.len &&
                         strncasecmp((const char *)said.data, (const char *)option.data, option.len) == 0 &&
                         (said.len == option.len || !isalnum(said.data[option.len]));
    return is_said ? bit_of(i) : 0;
}

/* "Lyon or B. Paris" behind a letter: other options follow it. */
static bool has_other_options(struct slice behind, uint32_t letters, const struct choice_options *options)
{
    for (size_t i = 0; i < behind.len; i++)
        if ((i == 0 || !isalnum(behind.data[i - 1])) &&
            (option_at(slice_of(behind.data + i, behind.len - i), options) & ~letters))
            return true;
    return false;
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
    if (meant)
        return meant & letters ? chosen(CHOICE_BY_LETTERS, letters, ret) : chosen(CHOICE_MISMATCH, 0, ret);
    return has_other_options(behind, letters, options) ? chosen(CHOICE_SEVERAL, 0, ret)
                                                       : chosen(CHOICE_BY_LETTERS, letters, ret);
}
