/* help.c - --help and pages of the docs, from the tables. */
#include "common/cmdline/help.h"

#include <string.h>

#include "common/cmdline/cmdline.h"
#include "common/cmdline/verbs.h"

enum { INDENT = 26, WIDTH = 110 };

const char cmdline_units[] = "A TIME is a number with its unit: 500ms, 90s, 10m, 1h30m, 2d. A SIZE "
                             "is one, too: 512MiB, 64M (the same), 8GiB, 1000B.\n";

const struct option cmdline_own[] = {
    {"help", OPTION_FLAG, offsetof(struct cmdline_values, help), NULL, "Shows this."},
    {"version", OPTION_FLAG, offsetof(struct cmdline_values, version), NULL, "Shows the version."},
    {"help-markdown", OPTION_FLAG, offsetof(struct cmdline_values, markdown)},
    {"help-man", OPTION_FLAG, offsetof(struct cmdline_values, manual)},
    {"help-completion", OPTION_FLAG, offsetof(struct cmdline_values, completion)},
};

/* ---- what a row says ------------------------------------------------------------------------- */

void option_head(const struct option *option, char ret[OPTION_WORDS_SIZE])
{
    char name[OPTION_NAME_SIZE];
    option_name(option, name);
    snprintf(ret, OPTION_WORDS_SIZE, "--%s%s%s%s", name,
             option->bare_ms ? "[="
             : option->value ? " "
                             : "",
             option->value ? option->value : "", option->bare_ms ? "]" : "");
}

const char *option_verbs(const struct option *option, char ret[OPTION_WORDS_SIZE])
{
    size_t len = 0;
    for (const char *c = option->of ? option->of : ""; *c && len < OPTION_WORDS_SIZE - 4; c++) {
        if (*c == ' ')
            ret[len++] = ',';
        ret[len++] = *c;
    }
    strcpy(ret + len, option->of ? ": " : "");
    return ret;
}

static bool has_bounds(const struct option *option)
{
    return option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION || option->kind == OPTION_SIZE ||
           (option->kind == OPTION_REAL && option->max);
}

const char *option_default(const struct option *option, char ret[OPTION_WORDS_SIZE])
{
    const bool has_preset = option->kind == OPTION_WORD ||
                            (has_bounds(option) && option->preset >= option->min && option->preset <= option->max);
    if (option->standard)
        return option->standard;
    if (option->kind == OPTION_REAL)
        snprintf(ret, OPTION_WORDS_SIZE, "%g", option->real);
    else if (has_preset)
        option_format(option, option->preset, ret, OPTION_WORDS_SIZE);
    else
        return option->kind == OPTION_TEXT ? option->text : NULL;
    return ret;
}

/* Words for numbers that never end; nothing where every number will do. */
const char *option_bounds(const struct option *option, char ret[OPTION_WORDS_SIZE])
{
    char min[32], max[32];
    const bool is_endless = option->max >= DURATION_FOREVER;
    ret[0] = '\0';
    if (!has_bounds(option) || (is_endless && option->min == 0))
        return ret;
    option_format(option, option->min, min, sizeof(min));
    option_format(option, option->max, max, sizeof(max));
    if (is_endless)
        snprintf(ret, OPTION_WORDS_SIZE, " Takes %s or more.", min);
    else
        snprintf(ret, OPTION_WORDS_SIZE, " Takes %s to %s.", min, max);
    return ret;
}

const char *option_after(const struct option *option)
{
    return option->kind == OPTION_LIST ? " May be repeated." : option->required ? " Required." : "";
}

/* ---- --help ----------------------------------------------------------------------------------- */

struct words {
    FILE *out;
    size_t column;
    bool space; /* before what comes next */
};

/* In lines that begin at INDENT. */
static void print_words(struct words *words, const char *text)
{
    while (*text) {
        const size_t spaces = strspn(text, " "), len = strcspn(text + spaces, " ");
        words->space = (words->space || spaces) && words->column > INDENT;
        if (words->space && words->column + 1 + len > WIDTH) {
            fprintf(words->out, "\n%*s", INDENT, "");
            words->column = INDENT;
            words->space = false;
        }
        if (len) {
            fprintf(words->out, "%s%.*s", words->space ? " " : "", (int)len, text + spaces);
            words->column += words->space + len;
            words->space = false;
        }
        text += spaces + len;
    }
}

static void print_option(const struct option *option, FILE *out)
{
    char head[OPTION_WORDS_SIZE], standard[OPTION_WORDS_SIZE], bounds[OPTION_WORDS_SIZE], verbs[OPTION_WORDS_SIZE];
    struct words words = {out, INDENT, false};
    option_head(option, head);
    if (strlen(head) > INDENT - 4)
        fprintf(out, "  %s\n%*s", head, INDENT, "");
    else
        fprintf(out, "  %-*s", INDENT - 2, head);
    print_words(&words, option_verbs(option, verbs));
    print_words(&words, option->doc);
    print_words(&words, option_bounds(option, bounds));
    print_words(&words, option_after(option));
    const char *preset = option_default(option, standard);
    if (preset) {
        print_words(&words, " Default: ");
        print_words(&words, preset);
        print_words(&words, ".");
    }
    fputc('\n', out);
}

void cmdline_indented(const char *lines, FILE *out)
{
    while (*lines) {
        const size_t len = strcspn(lines, "\n");
        fprintf(out, "  %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

static bool has_options(const struct cmdline *line) { return line->tables[0].count > 0; }

void cmdline_synopsis(const struct cmdline *line, FILE *out)
{
    char arguments[CMDLINE_ARGUMENTS_SIZE];
    cmdline_arguments(line, arguments);
    fprintf(out, "%s%s%s%s%s%s", line->program, line->command ? " " : "", line->command ? line->command : "",
            *arguments ? " " : "", arguments, has_options(line) ? " [OPTIONS]" : "");
}

static void print_tables(const struct cmdline *line, FILE *out)
{
    for (size_t t = 0; t < CMDLINE_TABLES; t++) {
        const struct option_table *table = &line->tables[t];
        if (t == 0 || table->title)
            fprintf(out, "\n%s\n", table->title ? table->title : "options");
        for (size_t i = 0; i < table->count; i++)
            print_option(&table->rows[i], out);
    }
    for (size_t i = 0; i < CMDLINE_OWN; i++)
        if (cmdline_own[i].doc)
            print_option(&cmdline_own[i], out);
}

void cmdline_help(const struct cmdline *line, FILE *out)
{
    fputs("usage: ", out);
    cmdline_synopsis(line, out);
    fprintf(out, "\n\n%s.\n", line->brief);
    if (*line->doc)
        fprintf(out, "\n%s", line->doc);
    print_tables(line, out);
    if (line->more)
        line->more(out);
    if (line->status_count)
        fputs("\nexit status\n", out);
    for (size_t i = 0; i < line->status_count; i++)
        fprintf(out, "  %-4d%s.\n", line->statuses[i].status, line->statuses[i].meaning);
    fputs("\nfor example\n", out);
    cmdline_indented(line->example, out);
}

/* ---- pages ------------------------------------------------------------------------------------- */

void cmdline_cell(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text, out);
    }
}

void options_markdown(const struct option *rows, size_t count, FILE *out)
{
    fputs("| option | meaning | default |\n|---|---|---|\n", out);
    for (size_t i = 0; i < count; i++) {
        char head[OPTION_WORDS_SIZE], standard[OPTION_WORDS_SIZE], bounds[OPTION_WORDS_SIZE], verbs[OPTION_WORDS_SIZE];
        const char *preset = option_default(&rows[i], standard);
        option_head(&rows[i], head);
        fputs("| `", out);
        cmdline_cell(head, out);
        fprintf(out, "` | %s", option_verbs(&rows[i], verbs));
        cmdline_cell(rows[i].doc, out);
        fprintf(out, "%s%s |", option_bounds(&rows[i], bounds), option_after(&rows[i]));
        fprintf(out, preset ? " %s |\n" : " |\n", preset);
    }
}

void cmdline_markdown(const struct cmdline *line, FILE *out)
{
    if (line->before_markdown)
        line->before_markdown(out);
    fprintf(out, "\n## %s%s%s\n\n```\n", line->program, line->command ? " " : "", line->command ? line->command : "");
    cmdline_synopsis(line, out);
    fprintf(out, "\n```\n\n%s.\n", line->brief);
    if (*line->doc)
        fprintf(out, "\n%s", line->doc);
    for (size_t t = 0; t < CMDLINE_TABLES; t++)
        if (line->tables[t].count && (t == 0 || line->tables[t].title)) {
            fprintf(out, t ? "\n%s:\n\n" : "\n", line->tables[t].title);
            options_markdown(line->tables[t].rows, line->tables[t].count, out);
        }
    if (line->status_count)
        fputs("\n| exit status | when |\n|---|---|\n", out);
    for (size_t i = 0; i < line->status_count; i++)
        fprintf(out, "| %d | %s. |\n", line->statuses[i].status, line->statuses[i].meaning);
    fprintf(out, "\n```sh\n%s```\n", line->example);
}
