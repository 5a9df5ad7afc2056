#include "workers/evaluators/math/parse/scan.h"

#include <ctype.h>
#include <stdlib.h>

#include "common/base/text.h"
#include "workers/evaluators/math/parse/spelling.h"

struct scanner {
    struct slice text;
    size_t at;
    int depth; /* of ( [ \{ */
    enum math_comma comma;
    bool blank;
    int environments; /* \begin without its \end */
    struct math_tokens *tokens;
};

/* ---- tokens --------------------------------------------------------------------------------------- */

static struct slice slice_after(struct slice text, size_t at) { return slice_of(text.data + at, text.len - at); }
static struct slice rest(const struct scanner *scanner) { return slice_after(scanner->text, scanner->at); }

static int peek(const struct scanner *scanner, size_t ahead)
{
    return scanner->at + ahead < scanner->text.len ? scanner->text.data[scanner->at + ahead] : -1;
}

static bool starts_with(struct slice text, const char *with)
{
    size_t len = strlen(with);
    return text.len >= len && memcmp(text.data, with, len) == 0;
}

static struct math_token *add(struct scanner *scanner, enum math_token_kind kind, char sign, struct slice text)
{
    struct math_tokens *tokens = scanner->tokens;
    if (tokens->count >= MATH_TOKENS_MAX)
        return NULL;
    struct math_token *token = &tokens->at[tokens->count++];
    *token = (struct math_token){.kind = kind, .sign = sign, .blank = scanner->blank, .text = text};
    scanner->blank = false;
    if (kind == MATH_SIGN)
        scanner->depth += (strchr("([S", sign) != NULL) - (strchr(")]s", sign) != NULL);
    return token;
}

static bool add_spelling(struct scanner *scanner, const struct spelling *as)
{
    struct math_token *token = add(scanner, as->kind, as->sign, slice_from_str(as->name ? as->name : as->text));
    if (token && token->kind == MATH_LETTER)
        token->word = token->text;
    return token != NULL;
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

static size_t count_digits(struct slice text)
{
    size_t count = 0;
    while (count < text.len && isdigit(text.data[count]))
        count++;
    return count;
}

/* How long what groups digits here is: "," "{,}" "\," ",\!" "\!" or a blank; 0: nothing does. */
static size_t group_mark(const struct scanner *scanner, struct slice text)
{
    static const char *const marks[] = {"{,}", "\\,", ",\\!", "\\!", "{,\\!}", "~"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (starts_with(text, marks[i])) {
            size_t len = strlen(marks[i]);
            while (len < text.len && text.data[len] == ' ')
                len++;
            return len;
        }
    if (starts_with(text, ",")) {
        scanner->tokens->has_ambiguous_comma = true;
        return scanner->comma == MATH_COMMA_GROUPS && scanner->depth == 0;
    }
    return starts_with(text, " ");
}

/* The bytes of a mark and three digits, of which no fourth follows; 0: something else is here. */
static size_t group_length(const struct scanner *scanner, struct slice text)
{
    size_t mark = group_mark(scanner, text);
    return mark && count_digits(slice_after(text, mark)) == 3 ? mark + 3 : 0;
}

/* "," or "{,}" and the places of a decimal comma; 0: it is none. */
static size_t comma_length(const struct scanner *scanner, struct slice text, struct slice whole)
{
    bool braces = starts_with(text, "{,}");
    scanner->tokens->has_ambiguous_comma |= starts_with(text, ",");
    if (!braces && (!starts_with(text, ",") || scanner->comma != MATH_COMMA_GROUPS || scanner->depth > 0))
        return 0;
    size_t mark = braces ? 3 : 1, places = count_digits(slice_after(text, mark));
    if (places == 0 || (places == 3 && !slice_is(whole, "0")) || (places == 1 && !braces))
        return 0;
    struct slice next = slice_after(text, mark + places);
    bool goes_on = starts_with(next, ",") || starts_with(next, "{,}") || starts_with(next, ".");
    return goes_on ? 0 : mark + places;
}

/* e3, E-12 after a number; 0: it is none. */
static size_t exponent_length(struct slice text, int *ret)
{
    if (text.len < 2 || (text.data[0] != 'e' && text.data[0] != 'E'))
        return 0;
    bool negative = text.data[1] == '-';
    size_t at = 1 + (negative || text.data[1] == '+');
    size_t len = count_digits(slice_after(text, at));
    if (len == 0 || len > 4 || (at + len < text.len && isalpha(text.data[at + len])))
        return 0;
    int value = 0;
    for (size_t i = at; i < at + len; i++)
        value = value * 10 + (text.data[i] - '0');
    *ret = negative ? -value : value;
    return at + len;
}

static bool scan_number(struct scanner *scanner)
{
    struct slice text = rest(scanner);
    size_t whole = count_digits(text), at = whole, point = 0, group;
    bool has_point = false;
    if (whole > 0 && whole <= 3 && text.data[0] != '0')
        while ((group = group_length(scanner, slice_after(text, at))) > 0)
            at += group;
    size_t comma = at == whole ? comma_length(scanner, slice_after(text, at), slice_of(text.data, whole)) : 0;
    if (comma > 0) {
        has_point = true;
        point = at + (starts_with(slice_after(text, at), "{") ? 1 : 0);
        at += comma;
    } else if (at < text.len && text.data[at] == '.') {
        has_point = true;
        point = at;
        at += 1 + count_digits(slice_after(text, at + 1));
    }
    int exponent = 0;
    size_t digits = at;
    at += exponent_length(slice_after(text, at), &exponent);
    struct math_token *token = add(scanner, MATH_NUMBER, 0, slice_of(text.data, digits));
    if (!token)
        return false;
    token->point = has_point ? point : digits;
    token->exponent = exponent;
    scanner->at += at;
    return true;
}

/* ---- words -------------------------------------------------------------------------------------------- */

static size_t count_letters(struct slice text)
{
    size_t count = 0;
    while (count < text.len && isalpha(text.data[count]))
        count++;
    return count;
}

static bool scan_letters(struct scanner *scanner)
{
    struct slice text = rest(scanner);
    struct slice run = slice_of(text.data, count_letters(text));
    const struct spelling *known = spelling_find(SPELLING_WORDS, run);
    scanner->at += run.len;
    if (known)
        return add_spelling(scanner, known);
    if (spelling_is_function(run))
        return add(scanner, MATH_FUNCTION, 0, run) != NULL;
    for (size_t i = 0; i < run.len; i++) {
        struct math_token *token = add(scanner, MATH_LETTER, 0, slice_of(run.data + i, 1));
        if (!token)
            return false;
        token->word = slice_after(run, i);
    }
    return true;
}

/* What stands in the braces at the scanner's place, which moves behind them. */
static bool take_braces(struct scanner *scanner, struct slice *ret)
{
    struct slice text = rest(scanner);
    size_t at = 0;
    while (at < text.len && isspace(text.data[at]))
        at++;
    if (at == text.len || text.data[at] != '{')
        return false;
    int depth = 0;
    for (size_t start = at; at < text.len; at++) {
        depth += (text.data[at] == '{') - (text.data[at] == '}');
        if (text.data[at] == '\\')
            at++;
        else if (depth == 0) {
            *ret = slice_of(text.data + start + 1, at - start - 1);
            scanner->at += at + 1;
            return true;
        }
    }
    return false;
}

static bool scan_all(struct scanner *scanner);

/* Words between "and" and "or" and commas: as if no \text{} were around them. */
static bool is_separating(struct slice words_text)
{
    struct slice text = text_trim(words_text);
    while (text.len && (text.data[0] == ',' || text.data[0] == ';'))
        text = text_trim(slice_after(text, 1));
    return text.len == 0 || slice_is(text, "and") || slice_is(text, "or");
}

static bool has_letters(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (isalpha(text.data[i]) || text.data[i] >= 0x80)
            return true;
    return false;
}

static bool scan_inside(struct scanner *scanner, struct slice text)
{
    struct scanner inner = *scanner;
    inner.text = text;
    inner.at = 0;
    bool is_whole = scan_all(&inner);
    scanner->blank = inner.blank;
    scanner->depth = inner.depth;
    scanner->environments = inner.environments;
    return is_whole;
}

static bool is_percent(struct slice word)
{
    const struct spelling *known = spelling_find(SPELLING_WORDS, word);
    return known && (known->sign == '%' || known->sign == 'd');
}

static bool scan_text(struct scanner *scanner)
{
    struct slice text;
    if (!take_braces(scanner, &text))
        return false;
    struct slice trimmed = text_trim(text);
    if (is_separating(text) || !has_letters(text) || is_percent(trimmed) || memchr(text.data, '\\', text.len))
        return scan_inside(scanner, text);
    return add(scanner, MATH_WORDS, 0, trimmed) != NULL;
}

/* \mathrm{e} is e, \operatorname{lcm} is lcm, \mathrm{cm} are words. */
static bool scan_upright(struct scanner *scanner)
{
    struct slice text;
    if (!take_braces(scanner, &text))
        return true;
    struct slice trimmed = text_trim(text);
    bool is_word = trimmed.len > 1 && count_letters(trimmed) > 1 && !spelling_find(SPELLING_WORDS, trimmed) &&
                   !spelling_is_function(trimmed);
    return is_word ? add(scanner, MATH_WORDS, 0, trimmed) != NULL : scan_inside(scanner, text);
}

/* ---- commands --------------------------------------------------------------------------------------------- */

static bool scan_named(struct scanner *scanner, struct slice name)
{
    const struct spelling *known = spelling_find(SPELLING_COMMANDS, name);
    scanner->environments += slice_is(name, "begin") - slice_is(name, "end");
    if (known)
        return add_spelling(scanner, known);
    if (spelling_is_look(name))
        return true;
    if (spelling_is_text(name))
        return scan_text(scanner);
    if (slice_is(name, "mathrm") || slice_is(name, "operatorname"))
        return scan_upright(scanner);
    if (spelling_is_function(name))
        return add(scanner, MATH_FUNCTION, 0, name) != NULL;
    if (starts_with(name, "quad") || starts_with(name, "qquad")) { /* \quadx: one meant \quad x */
        scanner->at -= name.len - (name.data[0] == 'q' && name.data[1] == 'q' ? 5 : 4);
        scanner->blank = true;
        return true;
    }
    return add(scanner, MATH_SYMBOL, 0, name) != NULL;
}

static bool scan_command(struct scanner *scanner)
{
    struct slice text = rest(scanner);
    size_t letters = count_letters(slice_after(text, 1));
    if (letters > 0) {
        scanner->at += 1 + letters;
        return scan_named(scanner, slice_of(text.data + 1, letters));
    }
    if (text.len < 2)
        return false;
    if (text.data[1] == '\\' && scanner->environments == 0 && text.len > 2 && isalpha(text.data[2])) {
        scanner->at++; /* \\frac, as JSON has it */
        return true;
    }
    scanner->at += 2;
    switch (text.data[1]) {
    case '{': return add(scanner, MATH_SIGN, 'S', slice_from_str("{"));
    case '}': return add(scanner, MATH_SIGN, 's', slice_from_str("}"));
    case '|': return add(scanner, MATH_SIGN, '|', slice_from_str("|"));
    case '%': return add(scanner, MATH_SIGN, '%', slice_from_str("%"));
    case '\\': return add(scanner, MATH_SIGN, 'r', slice_from_str("\\"));
    case '!': return true;
    case ',':
    case ';':
    case ':':
    case ' ':
    case '\n': scanner->blank = true; return true;
    case '$':
    case '(':
    case ')':
    case '[':
    case ']': return true;
    case '&': return add(scanner, MATH_WORDS, 0, slice_from_str("&"));
    default: return false;
    }
}

/* ---- the rest ------------------------------------------------------------------------------------------------ */

static bool scan_bytes(struct scanner *scanner)
{
    struct slice text = rest(scanner);
    size_t len;
    const struct spelling *known = spelling_begin(text, &len);
    if (!known)
        return false;
    scanner->at += len;
    if (known->kind == MATH_END) /* money: nothing remains */
        return true;
    if (known->kind != MATH_NUMBER)
        return add_spelling(scanner, known);
    struct math_token *power = add(scanner, MATH_SIGN, '^', slice_from_str("^")); /* a raised digit */
    struct math_token *digit = power ? add(scanner, MATH_NUMBER, 0, slice_from_str(known->name)) : NULL;
    if (digit)
        digit->point = 1;
    return digit;
}

static bool scan_one(struct scanner *scanner)
{
    int c = peek(scanner, 0), next = peek(scanner, 1);
    if (isspace(c) || c == '~') {
        scanner->blank = true;
        scanner->at++;
        return true;
    }
    if (isdigit(c) || (c == '.' && next >= 0 && isdigit(next)))
        return scan_number(scanner);
    if (isalpha(c))
        return scan_letters(scanner);
    if (c == '\\')
        return scan_command(scanner);
    if (c == '$' || (c == '.' && scanner->at + 1 == scanner->text.len)) {
        scanner->at++;
        return true;
    }
    if (c == '!' && next == '=')
        return scan_bytes(scanner);
    if (c == '*' && next == '*')
        return scan_bytes(scanner);
    if ((c == '+' && next == '-') || (c == '-' && next == '>'))
        return scan_bytes(scanner);
    if (strchr("+-*/^_!'|:,;&()[]{}%", c)) {
        scanner->at++;
        return add(scanner, MATH_SIGN, (char)c, slice_of(scanner->text.data + scanner->at - 1, 1));
    }
    return scan_bytes(scanner);
}

static bool scan_all(struct scanner *scanner)
{
    while (scanner->at < scanner->text.len)
        if (scanner->text.data[scanner->at] == '\0' || !scan_one(scanner))
            return false;
    return true;
}

bool math_scan(struct slice text, enum math_comma comma, struct math_tokens *ret)
{
    *ret = (struct math_tokens){0};
    text = text_trim(text);
    while (text.len && text.data[text.len - 1] == '.' && (text.len < 2 || text.data[text.len - 2] != '\\'))
        text = text_trim(slice_of(text.data, text.len - 1));
    if (text.len == 0 || text.len > MATH_TEXT_MAX)
        return false;
    size_t room = (text.len < MATH_TOKENS_MAX ? text.len : MATH_TOKENS_MAX) + 2;
    ret->at = malloc(room * sizeof(*ret->at));
    struct scanner scanner = {.text = text, .comma = comma, .tokens = ret};
    if (ret->at && scan_all(&scanner)) {
        ret->at[ret->count] = (struct math_token){.kind = MATH_END, .blank = scanner.blank};
        return true;
    }
    free(ret->at);
    ret->at = NULL;
    return false;
}
