#include "workers/dockerfile/parse.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "workers/dockerfile/words.h"

struct parse {
    struct slice text; /* what has not been read */
    unsigned line;     /* of what was read last */
    struct dockerfile *into;
    struct fail *fail;
};

int dockerfile_refuse(struct fail *fail, unsigned line, const char *format, ...)
{
    char words[sizeof(fail->text) - 32];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    return fail_set(fail, -EINVAL, "line %u: %s", line, words);
}

void dockerfile_words_finish(char **words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(words[i]);
    free(words);
}

void dockerfile_finish(struct dockerfile *dockerfile)
{
    for (size_t i = 0; i < dockerfile->count; i++) {
        struct dockerfile_instruction *one = &dockerfile->each[i];
        dockerfile_words_finish(one->flags, one->flag_count);
        dockerfile_words_finish(one->words, one->word_count);
        for (size_t k = 0; k < one->heredoc_count; k++) {
            free(one->heredocs[k].name);
            free(one->heredocs[k].content);
        }
        free(one->name);
        free(one->rest);
    }
    free(dockerfile->each);
    *dockerfile = (struct dockerfile){0};
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* The next line, without its end; false: there is none. */
static bool next_line(struct parse *parse, struct slice *ret)
{
    if (parse->text.len == 0)
        return false;
    const uint8_t *end = memchr(parse->text.data, '\n', parse->text.len);
    size_t len = end ? (size_t)(end - parse->text.data) : parse->text.len;
    *ret = slice_of(parse->text.data, len > 0 && parse->text.data[len - 1] == '\r' ? len - 1 : len);
    const size_t used = len + (end != NULL);
    parse->text = slice_of(parse->text.data + used, parse->text.len - used);
    parse->line++;
    return true;
}

static bool is_comment(struct slice line)
{
    line = text_trim(line);
    return line.len > 0 && line.data[0] == '#';
}

/* Whether it goes on in the next line, and where it ends then. */
static bool goes_on(struct slice line, char escape, size_t *ret_len)
{
    size_t len = line.len;
    while (len > 0 && (line.data[len - 1] == ' ' || line.data[len - 1] == '\t'))
        len--;
    *ret_len = line.len;
    if (len == 0 || line.data[len - 1] != (uint8_t)escape)
        return false;
    *ret_len = len - 1;
    return true;
}

/* One instruction's lines as one; comments and empty lines between are passed over. */
static int join_lines(struct parse *parse, struct slice first, struct buffer *ret)
{
    size_t len;
    bool more = goes_on(first, parse->into->escape, &len);
    buffer_append(ret, first.data, len);
    while (more) {
        struct slice line;
        if (!next_line(parse, &line))
            break;
        if (is_comment(line) || text_trim(line).len == 0)
            continue;
        more = goes_on(line, parse->into->escape, &len);
        buffer_append(ret, line.data, len);
    }
    buffer_append(ret, "", 1);
    return ret->failed ? fail_memory(parse->fail) : 0;
}

/* ---- directives -------------------------------------------------------------------------------- */

/* "# escape=`" and "# syntax=...", before all else. */
static int read_directives(struct parse *parse)
{
    for (;;) {
        const struct parse before = *parse;
        struct slice line;
        char name[16], value[8];
        if (!next_line(parse, &line))
            return 0;
        AUTO_FREE char *text = strndup((const char *)line.data, line.len);
        if (!text)
            return fail_memory(parse->fail);
        if (sscanf(text, " # %15[a-zA-Z] = %7s", name, value) != 2 ||
            (strcasecmp(name, "escape") != 0 && strcasecmp(name, "syntax") != 0 && strcasecmp(name, "check") != 0)) {
            *parse = before;
            return 0;
        }
        if (strcasecmp(name, "escape") != 0)
            continue;
        if (strcmp(value, "\\") != 0 && strcmp(value, "`") != 0)
            return dockerfile_refuse(parse->fail, parse->line, "escape must be \\ or `");
        parse->into->escape = value[0];
    }
}

/* ---- words ---------------------------------------------------------------------------------------- */

static int add_word(char ***words, size_t *count, const char *text, size_t len)
{
    if (*count == DOCKERFILE_WORDS_MAX)
        return -E2BIG;
    char **more = reallocarray(*words, *count + 1, sizeof(**words));
    if (!more)
        return -ENOMEM;
    *words = more;
    more[*count] = strndup(text, len);
    return more[*count] ? (++*count, 0) : -ENOMEM;
}

static int refuse_words(const struct parse *parse, unsigned line, int code)
{
    return code == -ENOMEM ? fail_memory(parse->fail)
                           : dockerfile_refuse(parse->fail, line, "more than %d words", DOCKERFILE_WORDS_MAX);
}

static const char *skip_blanks(const char *at) { return at + strspn(at, " \t"); }

static int read_flags(struct parse *parse, struct dockerfile_instruction *one, const char **at)
{
    int code = 0;
    while (code == 0 && strncmp(*at, "--", 2) == 0) {
        const size_t len = word_length(*at, parse->into->escape);
        code = add_word(&one->flags, &one->flag_count, *at, len);
        *at = skip_blanks(*at + len);
    }
    return code < 0 ? refuse_words(parse, one->line, code) : 0;
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* ["a", "b"]: a list of strings; what is no such list, and so what is nested, is the other form. */
static int read_json(struct parse *parse, struct dockerfile_instruction *one)
{
    static const char *const having[] = {"RUN", "COPY", "ADD", "SHELL", "CMD", "ENTRYPOINT", "VOLUME"};
    const bool may_be = one->rest[0] == '[' && is_one_of(one->name, having, sizeof(having) / sizeof(having[0])) &&
                        text_is_shallow(slice_from_str(one->rest), 1);
    json_t *list = may_be ? json_loads(one->rest, 0, NULL) : NULL, *item;
    size_t i;
    int code = 0;
    bool is_list = json_is_array(list);
    json_array_foreach(list, i, item) is_list = is_list && json_is_string(item);
    one->is_json = is_list;
    if (is_list)
        json_array_foreach(list, i, item) if (code == 0)
            code = add_word(&one->words, &one->word_count, json_string_value(item), json_string_length(item));
    json_decref(list);
    return code < 0 ? refuse_words(parse, one->line, code) : 0;
}

static int read_words(struct parse *parse, struct dockerfile_instruction *one)
{
    int code = read_json(parse, one);
    for (const char *at = one->rest; code == 0 && !one->is_json && *(at = skip_blanks(at));) {
        const size_t len = word_length(at, parse->into->escape);
        code = add_word(&one->words, &one->word_count, at, len);
        at += len;
    }
    return code < 0 && code != parse->fail->code ? refuse_words(parse, one->line, code) : code;
}

/* ---- heredocs -------------------------------------------------------------------------------------- */

static bool has_heredocs(const struct dockerfile_instruction *one)
{
    static const char *const having[] = {"RUN", "COPY", "ADD"};
    return !one->is_json && is_one_of(one->name, having, sizeof(having) / sizeof(having[0]));
}

/* <<NAME, <<-NAME, <<"NAME", 3<<NAME. */
static bool read_heredoc_word(const char *word, bool *strips, bool *is_quoted, char **ret_name)
{
    word += strspn(word, "0123456789");
    if (strncmp(word, "<<", 2) != 0 || word[2] == '<')
        return false;
    word += 2;
    *strips = *word == '-';
    word += *strips;
    const char quote = *word == '"' || *word == '\'' ? *word : 0;
    word += quote != 0;
    size_t len = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    *is_quoted = quote != 0;
    if (len == 0 || (quote ? word[len] != quote || word[len + 1] : word[len] && !strchr(";|&)>", word[len])))
        return false;
    *ret_name = strndup(word, len);
    return *ret_name != NULL;
}

static int read_content(struct parse *parse, unsigned line, const char *name, bool strips, char **ret)
{
    AUTO_BUFFER content = {0};
    struct slice text;
    while (next_line(parse, &text)) {
        while (strips && text.len > 0 && text.data[0] == '\t')
            text = slice_of(text.data + 1, text.len - 1);
        if (slice_is(text, name)) {
            *ret = buffer_take_str(&content);
            return *ret ? 0 : fail_memory(parse->fail);
        }
        buffer_append(&content, text.data, text.len);
        buffer_append(&content, "\n", 1);
    }
    return dockerfile_refuse(parse->fail, line, "the heredoc %s has no end: a line with %s alone", name, name);
}

static int read_heredocs(struct parse *parse, struct dockerfile_instruction *one)
{
    for (size_t i = 0; i < one->word_count && has_heredocs(one); i++) {
        bool strips, is_quoted;
        AUTO_FREE char *name = NULL;
        if (!read_heredoc_word(one->words[i], &strips, &is_quoted, &name))
            continue;
        if (one->heredoc_count == DOCKERFILE_HEREDOCS_MAX)
            return dockerfile_refuse(parse->fail, one->line, "more than %d heredocs", DOCKERFILE_HEREDOCS_MAX);
        struct dockerfile_heredoc *heredoc = &one->heredocs[one->heredoc_count];
        int code = read_content(parse, one->line, name, strips, &heredoc->content);
        if (code < 0)
            return code;
        heredoc->name = take_ptr(&name);
        heredoc->is_expanded = !is_quoted;
        one->heredoc_count++;
    }
    return 0;
}

/* ---- instructions ------------------------------------------------------------------------------------ */

static const char *const known[] = {"FROM",       "RUN",    "COPY",       "ADD",         "ENV",       "WORKDIR",
                                    "ARG",        "USER",   "LABEL",      "EXPOSE",      "CMD",       "SHELL",
                                    "ENTRYPOINT", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER"};

static int check_name(const struct parse *parse, const struct dockerfile_instruction *one)
{
    struct nearest nearest = {.wanted = slice_from_str(one->name)};
    char hint[NEAREST_TEXT_SIZE];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], one->name) == 0)
            return 0;
        nearest_offer_str(&nearest, known[i]);
    }
    if (strcmp(one->name, "ONBUILD") == 0)
        return dockerfile_refuse(parse->fail, one->line,
                                 "ONBUILD is not supported: write what it says after the FROM that it is for");
    return dockerfile_refuse(parse->fail, one->line, "there is no instruction %.40s%s", one->name,
                             nearest_text(&nearest, "", hint));
}

static int read_instruction(struct parse *parse, const char *text, unsigned line)
{
    struct dockerfile *into = parse->into;
    if (into->count == DOCKERFILE_INSTRUCTIONS_MAX)
        return dockerfile_refuse(parse->fail, line, "more than %d instructions", DOCKERFILE_INSTRUCTIONS_MAX);
    struct dockerfile_instruction *more = reallocarray(into->each, into->count + 1, sizeof(*more));
    if (!more)
        return fail_memory(parse->fail);
    into->each = more;
    struct dockerfile_instruction *one = &more[into->count++];
    *one = (struct dockerfile_instruction){.line = line};
    text += strspn(text, " \t");
    size_t len = strcspn(text, " \t");
    one->name = strndup(text, len);
    for (char *c = one->name; c && *c; c++)
        *c = (char)toupper((unsigned char)*c);
    const char *at = skip_blanks(text + len);
    int code = one->name ? check_name(parse, one) : fail_memory(parse->fail);
    if (code == 0)
        code = read_flags(parse, one, &at);
    if (code < 0)
        return code;
    const struct slice rest = text_trim_right(slice_from_str(at));
    one->rest = strndup(at, rest.len);
    code = one->rest ? read_words(parse, one) : fail_memory(parse->fail);
    if (code == 0 && one->word_count == 0 && !one->is_json)
        code = dockerfile_refuse(parse->fail, line, "%s says nothing", one->name);
    return code < 0 ? code : read_heredocs(parse, one);
}

int dockerfile_parse(struct slice text, struct dockerfile *ret, struct fail *fail)
{
    struct slice line;
    *ret = (struct dockerfile){.escape = '\\'};
    struct parse parse = {.text = text_without_mark(text), .into = ret, .fail = fail};
    if (memchr(text.data ? (const void *)text.data : "", '\0', text.len))
        return fail_set(fail, -EINVAL, "a Dockerfile holds no NUL");
    int code = read_directives(&parse);
    while (code == 0 && next_line(&parse, &line)) {
        AUTO_BUFFER whole = {0};
        const unsigned begins = parse.line;
        if (is_comment(line) || text_trim(line).len == 0)
            continue;
        code = join_lines(&parse, line, &whole);
        if (code == 0)
            code = read_instruction(&parse, (const char *)whole.data, begins);
    }
    if (code == 0 && ret->count == 0)
        code = fail_set(fail, -EINVAL, "it has no instructions");
    return code;
}
