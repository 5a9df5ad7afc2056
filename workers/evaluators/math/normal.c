#include "workers/evaluators/math/normal.h"

#include <ctype.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

struct writer {
    struct buffer *out;
    bool blank;    /* blanks were read since the last byte written */
    bool argument; /* a command stands before: braces that follow belong to it */
    int depth;
};

static bool normalize(struct slice text, struct writer *writer);

static char last_byte(const struct writer *writer)
{
    return writer->out->len ? (char)writer->out->data[writer->out->len - 1] : '\0';
}

static void put(struct writer *writer, const char *text, size_t len)
{
    if (len == 0)
        return;
    bool digits = isdigit((unsigned char)last_byte(writer)) && isdigit((unsigned char)text[0]);
    if (writer->blank && digits)
        buffer_append(writer->out, " ", 1);
    writer->blank = false;
    buffer_append(writer->out, text, len);
}

static void put_char(struct writer *writer, char c) { put(writer, &c, 1); }

/* ---- reading ------------------------------------------------------------------------------ */

static struct slice slice_after(struct slice text, size_t at) { return slice_of(text.data + at, text.len - at); }

static size_t skip_blanks(struct slice text)
{
    size_t at = 0;
    while (at < text.len && isspace(text.data[at]))
        at++;
    return at;
}

/* The name after a backslash: letters, or one other byte. */
static size_t name_length(struct slice text)
{
    size_t len = 0;
    while (len < text.len && isalpha(text.data[len]))
        len++;
    return len ? len : text.len > 0;
}

/* text starts with `open`: the bytes up to and with its `close`; 0 when it is never closed. */
static size_t group_length(struct slice text, char open, char close)
{
    int depth = 0;
    for (size_t at = 0; at < text.len; at++) {
        char c = (char)text.data[at];
        if (c == '\\')
            at++;
        else if (c == open)
            depth++;
        else if (c == close && --depth == 0)
            return at + 1;
    }
    return 0;
}

/* A command's argument: {...}, or one command, or one byte. Returns how much it took; 0: none. */
static size_t read_argument(struct slice text, struct slice *ret)
{
    size_t at = skip_blanks(text);
    if (at == text.len)
        return 0;
    struct slice rest = slice_after(text, at);
    size_t len = 1;
    if (rest.data[0] == '{') {
        len = group_length(rest, '{', '}');
        if (len == 0)
            return 0;
        *ret = slice_of(rest.data + 1, len - 2);
        return at + len;
    }
    if (rest.data[0] == '\\')
        len += name_length(slice_after(rest, 1));
    *ret = slice_of(rest.data, len);
    return at + len;
}

/* ---- arguments ---------------------------------------------------------------------------- */

/* An argument's own normal form; the caller frees it. */
static char *normal_argument(const struct writer *writer, struct slice argument)
{
    AUTO_BUFFER out = {0};
    struct writer inner = {.out = &out, .depth = writer->depth + 1};
    return normalize(argument, &inner) ? buffer_take_str(&out) : NULL;
}

/* Whether a numerator stands without parentheses: no sum or quotient outside braces. */
static bool is_term(const char *text)
{
    int depth = 0;
    for (const char *at = text; *at; at++) {
        depth += (*at == '{' || *at == '(') - (*at == '}' || *at == ')');
        bool is_operator = *at == '+' || *at == '-' || *at == '/' || *at == ',';
        if (depth == 0 && is_operator && at > text)
            return false;
    }
    return *text != '\0';
}

/* Whether a denominator does: one number, one letter, or one command with its argument. */
static bool is_atom(const char *text)
{
    size_t number = strspn(text, "0123456789.");
    if (number)
        return text[number] == '\0';
    if (text[0] != '\\')
        return text[0] && !text[1] && isalpha((unsigned char)text[0]);
    size_t at = 1;
    while (isalpha((unsigned char)text[at]))
        at++;
    struct slice rest = slice_from_str(text + at);
    return rest.len == 0 || (rest.data[0] == '{' && group_length(rest, '{', '}') == rest.len);
}

static void put_part(struct writer *writer, const char *text, bool alone)
{
    if (!alone)
        put_char(writer, '(');
    put(writer, text, strlen(text));
    if (!alone)
        put_char(writer, ')');
}

static size_t put_fraction(struct writer *writer, struct slice text)
{
    struct slice above, below;
    size_t first = read_argument(text, &above);
    size_t second = first ? read_argument(slice_after(text, first), &below) : 0;
    AUTO_FREE char *top = second ? normal_argument(writer, above) : NULL;
    AUTO_FREE char *bottom = top ? normal_argument(writer, below) : NULL;
    if (!bottom)
        return 0;
    math_drop_thousands(top);
    math_drop_thousands(bottom);
    writer->blank = true; /* 2\frac13 is not 21/3 */
    put_part(writer, top, is_term(top));
    put_char(writer, '/');
    put_part(writer, bottom, is_atom(bottom));
    writer->blank = true;
    return first + second;
}

static size_t put_root(struct writer *writer, struct slice text)
{
    size_t at = skip_blanks(text), degree = 0;
    bool has_degree = at < text.len && text.data[at] == '[';
    if (has_degree)
        degree = group_length(slice_after(text, at), '[', ']');
    if (has_degree && !degree) /* passed over, each of thousands would be looked for to the end */
        return 0;
    struct slice argument;
    size_t len = read_argument(slice_after(text, degree ? at + degree : 0), &argument);
    AUTO_FREE char *inside = len ? normal_argument(writer, argument) : NULL;
    if (!inside)
        return 0;
    put(writer, "\\sqrt", 5);
    put(writer, (const char *)text.data + at, degree);
    put_char(writer, '{');
    put(writer, inside, strlen(inside));
    put_char(writer, '}');
    return degree ? at + degree + len : len;
}

static size_t put_text(struct writer *writer, struct slice text)
{
    struct slice argument;
    size_t len = read_argument(text, &argument);
    AUTO_FREE char *inside = len ? normal_argument(writer, argument) : NULL;
    if (!inside)
        return 0;
    if (strcmp(inside, "and") == 0 || strcmp(inside, "or") == 0) {
        put_char(writer, ',');
        return len;
    }
    put_char(writer, MATH_TEXT_OPEN);
    put(writer, inside, strlen(inside));
    put_char(writer, MATH_TEXT_CLOSE);
    return len;
}

static size_t put_content(struct writer *writer, struct slice text)
{
    struct slice argument;
    size_t len = read_argument(text, &argument);
    AUTO_FREE char *inside = len ? normal_argument(writer, argument) : NULL;
    if (!inside)
        return 0;
    put(writer, inside, strlen(inside));
    return len;
}

/* ---- commands ----------------------------------------------------------------------------- */

struct command {
    const char *name;
    const char *instead;                                      /* written for it; or */
    size_t (*put)(struct writer *writer, struct slice after); /* bytes it took; 0: failed */
};

static const char set_open[] = {MATH_SET_OPEN, 0}, set_close[] = {MATH_SET_CLOSE, 0};

/* clang-format off */
static const struct command commands[] = {
    {"frac", .put = put_fraction},  {"dfrac", .put = put_fraction},
    {"tfrac", .put = put_fraction}, {"cfrac", .put = put_fraction},
    {"sqrt", .put = put_root},      {"text", .put = put_text},
    {"textbf", .put = put_text},    {"textit", .put = put_text},
    {"textrm", .put = put_text},    {"textnormal", .put = put_text},
    {"mbox", .put = put_text},      {"hbox", .put = put_text},
    {"mathrm", .put = put_text},    {"mathsf", .put = put_text},
    {"mathbf", .put = put_content}, {"mathit", .put = put_content},
    {"boldsymbol", .put = put_content}, {"bm", .put = put_content},
    {"operatorname", .put = put_content}, {"boxed", .put = put_content},
    {"fbox", .put = put_content},
    {"left", ""},  {"right", ""}, {"big", ""},  {"Big", ""},  {"bigl", ""}, {"bigr", ""},
    {"Bigl", ""},  {"Bigr", ""},  {"quad", ""}, {"qquad", ""}, {"displaystyle", ""},
    {"textstyle", ""}, {"degree", ""}, {"(", ""}, {")", ""},  {"[", ""},    {"]", ""},
    {",", ""},     {"!", ""},     {";", ""},    {":", ""},    {" ", " "},   {">", ""},
    {"$", ""},     {"%", "%"},    {"#", "#"},   {"_", "_"},   {"&", "&"},
    {"{", set_open}, {"}", set_close}, {"lbrace", set_open}, {"rbrace", set_close},
    {"times", "*"}, {"cdot", "*"}, {"ast", "*"}, {"div", "/"},
    {"leq", "\\le"}, {"geq", "\\ge"}, {"neq", "\\ne"},
    {"lvert", "|"}, {"rvert", "|"}, {"vert", "|"},
};
/* clang-format on */

/* clang-format off */
/* The same for bytes of UTF-8 that people type. */
static const struct command signs[] = {
    {"\u2212", "-"}, {"\u2013", "-"}, {"\u00d7", "*"}, {"\u00b7", "*"}, {"\u22c5", "*"},
    {"\u00f7", "/"}, {"\u00b0", ""},  {"\u03c0", "\\pi"}, {"\u221e", "\\infty"},
    {"\u2264", "\\le"}, {"\u2265", "\\ge"}, {"\u2260", "\\ne"}, {"\u00a0", " "},
    {"\u2009", " "}, {"\u202f", " "}, {"\u20ac", ""}, {"\u00a3", ""},
};
/* clang-format on */

static void put_instead(struct writer *writer, const char *text)
{
    if (text[0] == ' ')
        writer->blank = true;
    else
        put(writer, text, strlen(text));
}

/* text starts with a backslash. Bytes taken; 0: failed. */
static size_t put_command(struct writer *writer, struct slice text)
{
    size_t len = name_length(slice_after(text, 1));
    struct slice name = slice_of(text.data + 1, len), after = slice_after(text, 1 + len);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!slice_is(name, commands[i].name))
            continue;
        if (commands[i].put) {
            size_t taken = commands[i].put(writer, after);
            return taken ? 1 + len + taken : 0;
        }
        put_instead(writer, commands[i].instead);
        return 1 + len;
    }
    put(writer, (const char *)text.data, 1 + len);
    writer->argument = len > 0 && isalpha(text.data[1]);
    return 1 + len;
}

static size_t put_sign(struct writer *writer, struct slice text)
{
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
        size_t len = strlen(signs[i].name);
        if (len <= text.len && memcmp(text.data, signs[i].name, len) == 0) {
            put_instead(writer, signs[i].instead);
            return len;
        }
    }
    put(writer, (const char *)text.data, 1);
    return 1;
}

/* {...}: the braces stay after a command and around more than one byte of an exponent. */
static size_t put_group(struct writer *writer, struct slice text, bool is_argument)
{
    struct slice argument;
    size_t len = read_argument(text, &argument);
    AUTO_FREE char *inside = len ? normal_argument(writer, argument) : NULL;
    if (!inside)
        return 0;
    char before = last_byte(writer);
    bool keep = is_argument || ((before == '^' || before == '_') && strlen(inside) != 1);
    if (keep)
        put_char(writer, '{');
    put(writer, inside, strlen(inside));
    if (keep)
        put_char(writer, '}');
    return len;
}

/* ^\circ and ^{\circ} are degrees, and go. */
static size_t put_power(struct writer *writer, struct slice text)
{
    struct slice argument;
    size_t len = read_argument(slice_after(text, 1), &argument);
    if (len && slice_is(text_trim(argument), "\\circ"))
        return 1 + len;
    put_char(writer, '^');
    return 1;
}

static size_t put_next(struct writer *writer, struct slice text, bool is_argument)
{
    unsigned char c = text.data[0];
    if (c == '\\')
        return put_command(writer, text);
    if (c == '{')
        return put_group(writer, text, is_argument);
    if (c == '^')
        return put_power(writer, text);
    if (c >= 0x80)
        return put_sign(writer, text);
    if (isspace(c) || c == '~')
        writer->blank = true;
    else if (c > MATH_SET_CLOSE && c != '$' && c != '}')
        put_char(writer, (char)c);
    return 1;
}

static bool normalize(struct slice text, struct writer *writer)
{
    if (writer->depth > MATH_DEPTH_MAX)
        return false;
    while (text.len) {
        bool is_argument = writer->argument;
        writer->argument = false;
        size_t taken = put_next(writer, text, is_argument);
        if (taken == 0) /* half a command: to go on from here would cost quadratic time */
            return false;
        text = slice_after(text, taken);
    }
    return !writer->out->failed;
}

char *math_normalize(struct slice text)
{
    AUTO_BUFFER out = {0};
    struct writer writer = {.out = &out};
    if (!normalize(text_trim(text), &writer))
        return NULL;
    while (out.len && (out.data[out.len - 1] == '.' || out.data[out.len - 1] == ','))
        out.len--;
    return buffer_take_str(&out);
}

void math_drop_thousands(char *text)
{
    char *at = text + strspn(text, "+-");
    size_t lead = strspn(at, "0123456789");
    char mark = at[lead];
    if (lead < 1 || lead > 3 || (mark != ',' && mark != ' '))
        return;
    char *end = at + lead, *to = end;
    while (*end == mark && strspn(end + 1, "0123456789") == 3)
        end += 4;
    if (*end == mark || *end == '/' || end == to)
        return;
    for (const char *from = to; from < end; from++)
        if (*from != mark)
            *to++ = *from;
    memmove(to, end, strlen(end) + 1);
}
