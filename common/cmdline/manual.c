#include "common/cmdline/manual.h"

#include <stdlib.h>
#include <string.h>

#include "common/cmdline/help.h"
#include "common/cmdline/verbs.h"

/* ---- man(7) ---------------------------------------------------------------------------------- */

/* One character; a - is a minus, so that it can be copied, and what would be a request at a
 * line's beginning is text. */
static void put_char(char c, bool begins_line, FILE *out)
{
    if (begins_line && (c == '.' || c == '\''))
        fputs("\\&", out);
    if (c == '\\')
        fputs("\\e", out);
    else if (c == '-')
        fputs("\\-", out);
    else
        fputc(c, out);
}

static void put_words(const char *text, FILE *out)
{
    for (const char *at = text; *at; at++)
        put_char(*at, at == text || at[-1] == '\n', out);
}

static void put_request(const char *request, const char *words, FILE *out)
{
    fprintf(out, "%s\n", request);
    put_words(words, out);
    fputc('\n', out);
}

void manual_head(const char *name, const char *brief, FILE *out)
{
    fputs(".TH ", out);
    for (const char *at = name; *at; at++)
        fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, out);
    fputs(" 1 \"\" \"sluice " SLUICE_CMDLINE_VERSION "\" \"Sluice\"\n.SH NAME\n", out);
    put_words(name, out);
    fputs(" \\- ", out);
    put_words(brief, out);
    fputc('\n', out);
}

void manual_section(const char *title, FILE *out)
{
    fputs(".SH ", out);
    for (const char *at = title; *at; at++)
        fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, out);
    fputc('\n', out);
}

void manual_text(const char *text, FILE *out)
{
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        if (len == 0)
            fputs(".PP", out);
        else if (*at == ' ' && at != text)
            fputs(".br\n", out);
        for (size_t i = 0; i < len; i++)
            put_char(at[i], i == 0, out);
        fputc('\n', out);
        at += len + (at[len] == '\n');
    }
}

void manual_lines(const char *lines, FILE *out)
{
    fputs(".EX\n", out);
    put_words(lines, out);
    fputs(".EE\n", out);
}

static void put_option(const struct option *option, FILE *out)
{
    char head[OPTION_WORDS_SIZE], standard[OPTION_WORDS_SIZE], bounds[OPTION_WORDS_SIZE], verbs[OPTION_WORDS_SIZE];
    const char *preset = option_default(option, standard);
    option_head(option, head);
    put_request(".TP", head, out);
    put_words(option_verbs(option, verbs), out);
    put_words(option->doc, out);
    put_words(option_bounds(option, bounds), out);
    put_words(option_after(option), out);
    if (preset) {
        fputs(" Default: ", out);
        put_words(preset, out);
        fputc('.', out);
    }
    fputc('\n', out);
}

static void put_options(const struct cmdline *line, FILE *out)
{
    for (size_t t = 0; t < CMDLINE_TABLES; t++) {
        const struct option_table *table = &line->tables[t];
        if (table->title)
            put_request(".SS", table->title, out);
        for (size_t i = 0; i < table->count; i++)
            put_option(&table->rows[i], out);
    }
    for (size_t i = 0; i < CMDLINE_OWN; i++)
        if (cmdline_own[i].doc)
            put_option(&cmdline_own[i], out);
}

/* What --help shows beside the options, laid out as there. */
static void put_more(const struct cmdline *line, FILE *out)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = line->more ? open_memstream(&text, &size) : NULL;
    if (!memory)
        return;
    line->more(memory);
    if (fclose(memory) == 0) {
        manual_section("more", out);
        manual_lines(text, out);
    }
    free(text);
}

void cmdline_manual(const struct cmdline *line, FILE *out)
{
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", line->program, line->command ? "-" : "", line->command ? line->command : "");
    manual_head(name, line->brief, out);
    manual_section("synopsis", out);
    cmdline_synopsis(line, out);
    fputc('\n', out);
    if (*line->doc) {
        manual_section("description", out);
        manual_text(line->doc, out);
    }
    manual_section("options", out);
    put_options(line, out);
    put_more(line, out);
    if (line->status_count)
        manual_section("exit status", out);
    for (size_t i = 0; i < line->status_count; i++) {
        fprintf(out, ".TP\n%d\n", line->statuses[i].status);
        put_words(line->statuses[i].meaning, out);
        fputs(".\n", out);
    }
    manual_section("examples", out);
    manual_lines(line->example, out);
    manual_section("see also", out);
    fputs(line->command ? "sluice(1)\n" : "sluice(1), sluice\\-up(1)\n", out);
}

/* ---- completion ------------------------------------------------------------------------------- */

static const char *kind_of_value(const struct option *option)
{
    if (option->kind == OPTION_FLAG)
        return "none";
    if (option->kind == OPTION_WORD)
        return "word";
    if (strcmp(option->value, "DIR") == 0)
        return "directory";
    return strcmp(option->value, "FILE") == 0 ? "file" : "text";
}

static void put_completion(const struct option *option, FILE *out)
{
    char name[OPTION_NAME_SIZE];
    option_name(option, name);
    fprintf(out, "--%s\t%s\t%s\t%s\n", name, kind_of_value(option), option->kind == OPTION_WORD ? option->value : "",
            option->doc);
}

/* Of "add URL | list", or "init|run|eval", the words add and list. */
static void put_choices(const char *arguments, FILE *out)
{
    const char *between = strstr(arguments, " | ") ? " | " : "|";
    for (const char *at = strstr(arguments, between) ? arguments : NULL; at;) {
        const size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        if (len)
            fprintf(out, "%.*s\tchoice\t\t\n", (int)len, at);
        at = strstr(at, between);
        at = at ? at + strlen(between) : NULL;
    }
}

void cmdline_completion(const struct cmdline *line, FILE *out)
{
    char arguments[CMDLINE_ARGUMENTS_SIZE];
    put_choices(cmdline_arguments(line, arguments), out);
    for (size_t t = 0; t < CMDLINE_TABLES; t++)
        for (size_t i = 0; i < line->tables[t].count; i++)
            put_completion(&line->tables[t].rows[i], out);
    for (size_t i = 0; i < CMDLINE_OWN; i++)
        if (cmdline_own[i].doc)
            put_completion(&cmdline_own[i], out);
}
