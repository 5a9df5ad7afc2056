#include "workers/engines/jinja/reading/lexer.h"

#include <ctype.h>
#include <string.h>

#include "common/base/text.h"
#include "workers/engines/jinja/values/strings.h"

struct lexer {
    struct jinja_run *run;
    struct jinja_tokens *tokens;
    struct slice source;
    size_t at;
    unsigned nesting;      /* of brackets in the tag */
    bool is_line_starting; /* the tag before ended with its line */
};

static struct slice rest(const struct lexer *lexer)
{
    return slice_of(lexer->source.data + lexer->at, lexer->source.len - lexer->at);
}

static char peek(const struct lexer *lexer, size_t ahead)
{
    return lexer->at + ahead < lexer->source.len ? (char)lexer->source.data[lexer->at + ahead] : '\0';
}

static bool begins(const struct lexer *lexer, const char *what)
{
    const size_t len = strlen(what);
    return rest(lexer).len >= len && memcmp(rest(lexer).data, what, len) == 0;
}

/* Moves on, counting lines. */
static struct slice take(struct lexer *lexer, size_t len)
{
    const struct slice taken = slice_of(lexer->source.data + lexer->at, len);
    for (size_t i = 0; i < len; i++)
        lexer->run->line += taken.data[i] == '\n';
    lexer->at += len;
    return taken;
}

static void add(struct lexer *lexer, enum jinja_token_kind kind, struct slice text)
{
    struct jinja_tokens *tokens = lexer->tokens;
    if (tokens->count == tokens->capacity) {
        const size_t wanted = tokens->capacity ? tokens->capacity * 2 : 64;
        struct jinja_token *larger = jinja_alloc(lexer->run, wanted * sizeof(*larger));
        if (!larger)
            return;
        if (tokens->count)
            memcpy(larger, tokens->list, tokens->count * sizeof(*larger));
        tokens->list = larger;
        tokens->capacity = wanted;
    }
    tokens->list[tokens->count++] = (struct jinja_token){kind, lexer->run->line, text};
}

static void skip_blanks(struct lexer *lexer)
{
    size_t len;
    while (rest(lexer).len && (len = text_space_at(rest(lexer))))
        take(lexer, len);
}

/* ---- the words of a tag ----------------------------------------------------------------------- */

static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">",
                                        "=",  "(",  ")",  "[",  "]",  "{",  "}", ".", ",", ":", "|", ";", NULL};

static bool lex_operator(struct lexer *lexer)
{
    for (size_t i = 0; operators[i]; i++)
        if (begins(lexer, operators[i])) {
            lexer->nesting += strchr("([{", operators[i][0]) != NULL;
            lexer->nesting -= strchr(")]}", operators[i][0]) != NULL && lexer->nesting > 0;
            add(lexer, TOKEN_OPERATOR, take(lexer, strlen(operators[i])));
            return true;
        }
    return false;
}

static void lex_string(struct lexer *lexer)
{
    const char quote = peek(lexer, 0);
    size_t len = 1;
    while (peek(lexer, len) && peek(lexer, len) != quote)
        len += peek(lexer, len) == '\\' && peek(lexer, len + 1) ? 2 : 1;
    if (peek(lexer, len) != quote) {
        jinja_fail(lexer->run, "a string without its end");
        return;
    }
    const struct slice whole = take(lexer, len + 1);
    add(lexer, TOKEN_STRING, jinja_unescape(lexer->run, slice_of(whole.data + 1, whole.len - 2)));
}

static void lex_number(struct lexer *lexer)
{
    size_t len = 0;
    while (isdigit((uint8_t)peek(lexer, len)))
        len++;
    const size_t whole = len;
    if (peek(lexer, len) == '.' && isdigit((uint8_t)peek(lexer, len + 1)))
        for (len++; isdigit((uint8_t)peek(lexer, len));)
            len++;
    const size_t sign = peek(lexer, len + 1) == '-' || peek(lexer, len + 1) == '+';
    if ((peek(lexer, len) | 0x20) == 'e' && isdigit((uint8_t)peek(lexer, len + 1 + sign)))
        for (len += 1 + sign; isdigit((uint8_t)peek(lexer, len));)
            len++;
    if (isalpha((uint8_t)peek(lexer, len)) || peek(lexer, len) == '_')
        jinja_fail(lexer->run, "a number that is not known here");
    add(lexer, len > whole ? TOKEN_REAL : TOKEN_INTEGER, take(lexer, len));
}

static void lex_word(struct lexer *lexer)
{
    size_t len = 0;
    while (isalnum((uint8_t)peek(lexer, len)) || peek(lexer, len) == '_')
        len++;
    if (len)
        add(lexer, TOKEN_NAME, take(lexer, len));
    else if (peek(lexer, 0) == '\'' || peek(lexer, 0) == '"')
        lex_string(lexer);
    else if (!lex_operator(lexer))
        jinja_fail(lexer->run, "a character that no expression has: byte 0x%02x", (uint8_t)peek(lexer, 0));
}

/* ---- tags --------------------------------------------------------------------------------------- */

/* Behind the end of a tag: "-" takes all blanks, a block's end its own line's. */
static void end_tag(struct lexer *lexer, char sign, bool is_print)
{
    if (sign == '-')
        skip_blanks(lexer);
    else if (sign != '+' && !is_print && peek(lexer, 0) == '\n')
        take(lexer, 1);
    lexer->is_line_starting = lexer->source.data[lexer->at - 1] == '\n';
}

/* Whether the tag ends here, with its sign; takes it then. */
static bool take_end(struct lexer *lexer, const char *end, char *sign)
{
    const char first = peek(lexer, 0);
    const bool has_sign = first == '-' || (first == '+' && end[0] != '}');
    *sign = has_sign ? first : '\0';
    if (peek(lexer, has_sign) != end[0] || peek(lexer, has_sign + 1u) != end[1])
        return false;
    take(lexer, has_sign + 2u);
    return true;
}

static void lex_tag(struct lexer *lexer, bool is_print)
{
    const char *end = is_print ? "}}" : "%}";
    char sign = '\0';
    add(lexer, is_print ? TOKEN_PRINT : TOKEN_BLOCK, slice_of("", 0));
    for (lexer->nesting = 0; lexer->run->code == 0;) {
        skip_blanks(lexer);
        if (lexer->at == lexer->source.len)
            jinja_fail(lexer->run, "a tag without its end, %s", end);
        else if (lexer->nesting == 0 && take_end(lexer, end, &sign))
            break;
        else if (isdigit((uint8_t)peek(lexer, 0)))
            lex_number(lexer);
        else
            lex_word(lexer);
    }
    add(lexer, is_print ? TOKEN_PRINT_END : TOKEN_BLOCK_END, slice_of("", 0));
    if (lexer->run->code == 0)
        end_tag(lexer, sign, is_print);
}

static void skip_comment(struct lexer *lexer)
{
    const uint8_t *end = memmem(rest(lexer).data, rest(lexer).len, "#}", 2);
    if (!end) {
        jinja_fail(lexer->run, "a comment without its end");
        return;
    }
    const char sign = end > rest(lexer).data ? (char)end[-1] : '\0';
    take(lexer, (size_t)(end - rest(lexer).data) + 2);
    end_tag(lexer, sign, false);
}

/* ---- text ----------------------------------------------------------------------------------------- */

/* Where the next tag begins, from here; the rest where there is none. */
static size_t until_tag(const struct lexer *lexer)
{
    const struct slice text = rest(lexer);
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.data[i] == '{' && strchr("{%#", text.data[i + 1]) && text.data[i + 1])
            return i;
    return text.len;
}

static bool is_blank(struct slice text) { return text_strip(text).len == 0; }

/* Without the blanks that the tag behind it takes. */
static struct slice trim_before_tag(const struct lexer *lexer, struct slice text, char kind, char sign)
{
    if (sign == '-')
        return text_strip_right(text);
    if (sign == '+' || kind == '{')
        return text;
    const uint8_t *newline = text.len ? memrchr(text.data, '\n', text.len) : NULL;
    const size_t from = newline ? (size_t)(newline - text.data) + 1 : 0;
    const bool is_line = newline || lexer->is_line_starting;
    return is_line && is_blank(slice_of(text.data + from, text.len - from)) ? slice_of(text.data, from) : text;
}

static void lex_tag_behind(struct lexer *lexer, char kind, char sign)
{
    take(lexer, 2 + (sign != '\0'));
    if (kind == '#')
        skip_comment(lexer);
    else
        lex_tag(lexer, kind == '{');
}

void jinja_lex(struct jinja_run *run, struct slice source, struct jinja_tokens *ret)
{
    struct lexer lexer = {.run = run, .tokens = ret, .source = source, .is_line_starting = true};
    run->line = 1;
    while (lexer.at < source.len && run->code == 0) {
        const size_t len = until_tag(&lexer);
        const bool has_tag = lexer.at + len < source.len;
        const char kind = peek(&lexer, len + 1), next = peek(&lexer, len + 2);
        const char sign = has_tag && (next == '-' || next == '+') ? next : '\0';
        const unsigned line = run->line;
        struct slice text = take(&lexer, len);
        if (has_tag)
            text = trim_before_tag(&lexer, text, kind, sign);
        if (text.len)
            add(&lexer, TOKEN_TEXT, text);
        if (text.len && ret->count)
            ret->list[ret->count - 1].line = line;
        if (has_tag)
            lex_tag_behind(&lexer, kind, sign);
    }
    add(&lexer, TOKEN_END, slice_of("", 0));
}
