#include "common/cmdline/cmdline.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/sanitize.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"
#include "common/cmdline/portable.h"
#include "common/cmdline/verbs.h"

struct reading {
    const struct cmdline *line;
    struct cmdline_values *values;
    const struct option **given; /* in their order */
    size_t given_count;
    char **at, **end;
    struct fail *fail;
};

/* Where an option is known, and the struct that its value goes into; `nearest` is offered all that do not match. */
static const struct option *find(const struct reading *reading, struct nearest *nearest, void **ret_into)
{
    const struct option_table tables[] = {
        reading->line->tables[0], reading->line->tables[1], {NULL, cmdline_own, CMDLINE_OWN}};
    void *const intos[] = {reading->values->into[0], reading->values->into[1], reading->values};
    for (size_t t = 0; t < ROWS(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            if (option_is(&tables[t].rows[i], (const char *)nearest->wanted.data, nearest->wanted.len)) {
                *ret_into = intos[t];
                return &tables[t].rows[i];
            }
            nearest_offer_str(nearest, tables[t].rows[i].name);
        }
    return NULL;
}

static int refuse_unknown(const struct reading *reading, const struct nearest *nearest)
{
    const struct slice name = nearest->wanted;
    char hint[NEAREST_TEXT_SIZE];
    nearest_text(nearest, "--", hint);
    for (char *c = hint; *c; c++)
        *c = *c == '_' ? '-' : *c; /* as options are written */
    return fail_set(reading->fail, -EINVAL, "there is no option --%.*s%s", name.len > 100 ? 100 : (int)name.len,
                    (const char *)name.data, hint);
}

/* One "--name", "--name=value" or "--name value"; `at` moves past it. */
static int take_option(struct reading *reading)
{
    const char *name = *reading->at++ + 2, *equals = strchr(name, '=');
    const size_t name_len = equals ? (size_t)(equals - name) : strlen(name);
    void *into;
    struct nearest nearest = {.wanted = slice_of(name, name_len)};
    const struct option *option = find(reading, &nearest, &into);
    if (!option)
        return refuse_unknown(reading, &nearest);
    reading->given[reading->given_count++] = option;
    if (option->kind == OPTION_FLAG && equals)
        return fail_set(reading->fail, -EINVAL, "--%.*s takes no value", (int)name_len, name);
    if (option->kind == OPTION_FLAG)
        return option_set(option, into, "", reading->fail);
    if (!equals && option->bare_ms) {
        *(uint64_t *)((char *)into + option->offset) = option->bare_ms;
        return 0;
    }
    if (!equals && reading->at == reading->end)
        return fail_set(reading->fail, -EINVAL, "--%.*s wants %s", (int)name_len, name, option->value);
    return option_set(option, into, equals ? equals + 1 : *reading->at++, reading->fail);
}

static int take_all(struct reading *reading)
{
    struct cmdline_values *values = reading->values;
    bool only_arguments = false;
    for (int error = 0; reading->at < reading->end;) {
        const char *word = *reading->at;
        if (!only_arguments && strcmp(word, "--") == 0) {
            only_arguments = true;
            reading->at++;
        } else if (!only_arguments && strncmp(word, "--", 2) == 0) {
            if ((error = take_option(reading)))
                return error;
        } else if (!only_arguments && strcmp(word, "-h") == 0) {
            values->help = true;
            reading->at++;
        } else if (!only_arguments && word[0] == '-' && isalpha((unsigned char)word[1])) {
            return fail_set(reading->fail, -EINVAL, "there is no option %.100s: options begin with --", word);
        } else {
            values->arguments[values->argument_count++] = *reading->at++;
        }
    }
    return 0;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Of "HOST [PORT]" 1 and 2. */
static void count_words(const char *words, size_t *ret_min, size_t *ret_max)
{
    *ret_min = *ret_max = 0;
    for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        *ret_min += *at != '[';
        ++*ret_max;
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static bool has_word(const char *words, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = words; len && (at = strstr(at, word)); at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

static int check_given(const struct reading *reading)
{
    const char *first = reading->values->argument_count ? reading->values->arguments[0] : "";
    for (size_t i = 0; i < reading->given_count; i++) {
        const struct option *option = reading->given[i];
        char name[OPTION_NAME_SIZE];
        option_name(option, name);
        if (option->of && !has_word(option->of, first))
            return fail_set(reading->fail, -EINVAL, "--%s is not for %.100s", name, first);
    }
    return 0;
}

static int check_most(const struct reading *reading, size_t max)
{
    if (reading->values->argument_count <= max)
        return 0;
    return fail_set(reading->fail, -EINVAL, "'%.200s' is one argument too many", reading->values->arguments[max]);
}

static int check_verb(const struct reading *reading)
{
    struct cmdline_values *values = reading->values;
    size_t min, max;
    values->verb = cmdline_verb(reading->line, values->arguments[0], reading->fail);
    if (!values->verb)
        return -EINVAL;
    count_words(values->verb->arguments, &min, &max);
    if (values->argument_count - 1 < min)
        return fail_set(reading->fail, -EINVAL, "%s wants %s", values->verb->name, values->verb->arguments);
    return check_most(reading, max + 1);
}

static int check_arguments(const struct reading *reading)
{
    const struct cmdline *line = reading->line;
    if (line->verb_count)
        return check_verb(reading);
    if (reading->values->argument_count < line->arguments_min)
        return fail_set(reading->fail, -EINVAL,
                        strstr(line->arguments, " | ") ? "say which of these: %s" : "%s is missing", line->arguments);
    return check_most(reading, line->arguments_max);
}

static int check_complete(const struct reading *reading)
{
    const struct cmdline *line = reading->line;
    for (size_t i = 0; i < line->tables[0].count; i++) {
        const struct option *option = &line->tables[0].rows[i];
        char name[OPTION_NAME_SIZE];
        option_name(option, name);
        if (option->required && !*(const char **)((char *)reading->values->into[0] + option->offset))
            return fail_set(reading->fail, -EINVAL, "--%s %s is missing", name, option->value);
    }
    const int error = check_arguments(reading);
    return error ? error : check_given(reading);
}

static void preset(const struct cmdline *line, struct cmdline_values *values)
{
    for (size_t t = 0; t < CMDLINE_TABLES; t++)
        for (size_t i = 0; i < line->tables[t].count; i++)
            option_preset(&line->tables[t].rows[i], values->into[t]);
}

static bool wants_page(const struct cmdline_values *values)
{
    return values->help || values->version || values->markdown || values->manual || values->completion;
}

int cmdline_parse(const struct cmdline *line, int argc, char **argv, struct cmdline_values *values, struct fail *fail)
{
    *values = (struct cmdline_values){.into = {values->into[0], values->into[1]}};
    values->arguments = calloc((size_t)argc + 1, sizeof(*values->arguments));
    const struct option **given = calloc((size_t)argc + 1, sizeof(*given));
    struct reading reading = {line, values, given, 0, argv, argv + argc, fail};
    int error = values->arguments && given ? 0 : fail_memory(fail);
    if (error == 0) {
        preset(line, values);
        error = take_all(&reading);
    }
    if (error == 0 && !wants_page(values))
        error = check_complete(&reading);
    free(given);
    return error;
}

void cmdline_finish(struct cmdline_values *values)
{
    free(values->arguments);
    *values = (struct cmdline_values){0};
}

/* ---- as a program begins --------------------------------------------------------------------- */

int cmdline_vwrong(const struct cmdline *line, const char *format, va_list args)
{
    fflush(stdout);
    fprintf(stderr, "%s: ", line->program);
    sanitize_vprint(stderr, format, args);
    fprintf(stderr, " (see %s%s%s --help)\n", line->program, line->command ? " " : "",
            line->command ? line->command : "");
    return CMDLINE_WRONG;
}

int cmdline_wrong(const struct cmdline *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cmdline_vwrong(line, format, args);
    va_end(args);
    return CMDLINE_WRONG;
}

int cmdline_begin(const struct cmdline *line, int argc, char **argv, struct cmdline_values *values)
{
    struct fail fail;
    portable_begin();
    int error = cmdline_parse(line, argc, argv, values, &fail);
    if (error == -ENOMEM) {
        fprintf(stderr, "%s: %s\n", line->program, fail.text);
        return CMDLINE_FAILED;
    }
    if (error)
        return cmdline_wrong(line, "%s", fail.text);
    if (values->help)
        cmdline_help(line, stdout);
    else if (values->version)
        printf("%s %s\n", line->program, SLUICE_CMDLINE_VERSION);
    else if (values->markdown)
        cmdline_markdown(line, stdout);
    else if (values->manual)
        cmdline_manual(line, stdout);
    else if (values->completion)
        cmdline_completion(line, stdout);
    else
        return -1;
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : CMDLINE_FAILED;
}
