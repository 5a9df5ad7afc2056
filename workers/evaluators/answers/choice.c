#include "workers/evaluators/answers/choice.h"

#include <ctype.h>
#include <strings.h>

#include "common/base/text.h"

static struct slice slice_after(struct slice text, size_t at) { return slice_of(text.data + at, text.len - at); }

static bool starts_with(struct slice text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.data, with, len) == 0;
}

/* One of these pairs less, each two characters; false: none is around it. */
static bool peel_pair(struct slice *text, const char *pairs)
{
    for (; *pairs; pairs += 2)
        if (text->len > 2 && text->data[0] == pairs[0] && text->data[text->len - 1] == pairs[1] &&
            !memchr(text->data + 1, pairs[0], text->len - 2)) {
            *text = text_trim(slice_of(text->data + 1, text->len - 2));
            return true;
        }
    return false;
}

bool choice_peel_marks(struct slice *text)
{
    static const char *const commands[] = {"\\textbf", "\\text",   "\\mathrm", "\\mathbf",
                                           "\\boxed",  "\\textit", "\\mathit"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (starts_with(*text, commands[i])) {
            *text = text_trim(slice_after(*text, strlen(commands[i])));
            return true;
        }
    return peel_pair(text, "{}**__$$``\"\"");
}

/* So, and (B), [B]. */
static bool peel(struct slice *text) { return choice_peel_marks(text) || peel_pair(text, "()[]"); }

/* "option", "choice" before a letter. */
static struct slice without_noun(struct slice text)
{
    static const char *const nouns[] = {"option", "choice", "answer"};
    for (size_t i = 0; i < sizeof(nouns) / sizeof(nouns[0]); i++) {
        size_t len = strlen(nouns[i]);
        if (text.len > len && strncasecmp((const char *)text.data, nouns[i], len) == 0 && !isalpha(text.data[len]))
            return text_trim(slice_after(text, len));
    }
    return text;
}

static uint32_t bit_of(uint8_t letter) { return 1U << (toupper(letter) - 'A'); }

/* How long the letter at the start is with the brackets around it: B, (B), B), [B]; 0: none is. */
static size_t letter_length(struct slice text, uint32_t *ret)
{
    bool open = text.len && strchr("([", text.data[0]);
    if (text.len <= open || !isalpha(text.data[open]))
        return 0;
    size_t len = open + 1U;
    if (len < text.len && isalnum(text.data[len]))
        return 0;
    *ret = bit_of(text.data[open]);
    bool close = len < text.len && strchr(")]", text.data[len]);
    return open && !close ? 0 : len + close;
}

/* "A, C", "A and C": nothing but letters and what separates them. */
static uint32_t read_list(struct slice text)
{
    uint32_t letters = 0, letter;
    while (text.len) {
        size_t len = letter_length(text, &letter);
        if (len == 0 || (letters & letter))
            return 0;
        letters |= letter;
        text = text_trim(slice_after(text, len));
        bool separated = text.len == 0;
        for (;;) {
            size_t word = starts_with(text, "and") || starts_with(text, "AND") ? 3
                          : text.len && strchr(",;&/+", text.data[0])          ? 1
                          : starts_with(text, "or") || starts_with(text, "OR") ? 2
                                                                               : 0;
            if (word == 0)
                break;
            separated = true;
            text = text_trim(slice_after(text, word));
        }
        if (!separated)
            return 0;
    }
    return letters;
}

/* "AC", capitals in order; "BAD" is a word. */
static uint32_t read_run(struct slice text)
{
    uint32_t letters = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < 'A' || text.data[i] > 'J' || (i > 0 && text.data[i] <= text.data[i - 1]))
            return 0;
        letters |= bit_of(text.data[i]);
    }
    return text.len > 1 ? letters : 0;
}

/* "B. 12", "B) 12", "B: twelve": the option's text follows its letter. */
static uint32_t read_with_text(struct slice text, struct slice *ret_text)
{
    uint32_t letter, other;
    size_t len = letter_length(text, &letter);
    if (len == 0 || len == text.len)
        return 0;
    bool marked = !isalpha(text.data[len - 1]);
    struct slice rest = slice_after(text, len);
    if (!marked && !strchr(".:-)", rest.data[0]))
        return 0;
    rest = text_trim(slice_after(rest, marked && !strchr(".:-", rest.data[0]) ? 0 : 1));
    /* "B or C" and "B) or C)" are no option with its text */
    if (starts_with(rest, "or ") || starts_with(rest, "and ") || letter_length(rest, &other) > 0)
        return 0;
    for (size_t i = 1; i + 1 < rest.len; i++) /* "12 C) 14": the next option */
        if (isspace(rest.data[i - 1]) && letter_length(slice_after(rest, i), &other) > 1 && other != letter)
            return 0;
    *ret_text = rest;
    return letter;
}

uint32_t choice_letters(struct slice text, struct slice *ret_text)
{
    enum { PEELS_MAX = 8 };
    *ret_text = (struct slice){0};
    text = without_noun(text_trim(text));
    for (int i = 0; i < PEELS_MAX && peel(&text); i++)
        continue;
    while (text.len > 1 && strchr(".,;", text.data[text.len - 1]))
        text = text_trim(slice_of(text.data, text.len - 1));
    text = without_noun(text);
    uint32_t letters = read_list(text);
    if (!letters)
        letters = read_run(text);
    return letters ? letters : read_with_text(text, ret_text);
}
