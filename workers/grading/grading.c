#include "workers/grading/grading.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "schemas/task/task.h"

#define BOM "\xef\xbb\xbf" /* which some editors put before the first row */

/* ---- the options of a choice ------------------------------------------------------------------ */

/* False: it is no option, or not the first of its letter. */
static bool set_option(struct choice_options *options, char letter, const char *text)
{
    if (letter < 'A' || letter > 'Z' || !*text || options->texts[letter - 'A'])
        return false;
    options->texts[letter - 'A'] = text;
    options->count++;
    return true;
}

static bool read_options(const struct texts *said, struct choice_options *ret)
{
    for (size_t i = 0; i < said->count; i++)
        if (said->items[i][0] == '\0' || said->items[i][1] != '=' ||
            !set_option(ret, said->items[i][0], said->items[i] + 2))
            return false;
    return true;
}

static bool read_json_options(const json_t *said, struct choice_options *ret)
{
    const char *letter;
    json_t *text;
    json_object_foreach((json_t *)(uintptr_t)said, letter, text)
    {
        if (!json_is_string(text) || letter[0] == '\0' || letter[1] != '\0' ||
            !set_option(ret, letter[0], json_string_value(text)))
            return false;
    }
    return !said || json_is_object(said);
}

bool grading_read(const struct grading_options *options, const char *kind, struct grade_options *ret,
                  const char **ret_why)
{
    *ret = (struct grade_options){.relative = options->tolerance, .absolute = options->tolerance_absolute};
    *ret_why = NULL;
    if (options->task || options->eval_log || options->patch || options->id)
        *ret_why = "--task, --id, --eval-log and --patch go with swe";
    else if (!grade_kind_parse(kind, &ret->kind))
        *ret_why =
            "it judges math, choice or exact; sluice grade --task FILE has any evaluator judge what an agent left";
    else if (!extract_parse(options->extract, &ret->extract))
        *ret_why = "--extract is one of auto, box, hashes, answer, number, letter and all";
    else if (!normalize_parse(options->normalize, &ret->normalize))
        *ret_why = "--normalize is one of none, blanks, case and punctuation";
    else if (options->option.count && ret->kind != GRADE_CHOICE)
        *ret_why = "--option goes with choice";
    else if (options->option.count && options->rows)
        *ret_why = "each of --rows has its own `options`: leave --option out";
    else if (!read_options(&options->option, &ret->options))
        *ret_why = "--option is LETTER=TEXT, A to Z, each once";
    else if (options->rows ? options->answer.count || options->text : !options->answer.count || !options->text)
        *ret_why = "it wants --answer and --text, or --rows in their place";
    else if (!options->rows)
        *ret_why = grade_refuse(ret, options->answer.items, options->answer.count);
    return !*ret_why;
}

/* ---- one verdict ------------------------------------------------------------------------------ */

static bool put_json(const struct grade *grade, FILE *out)
{
    json_t *line = json_pack("{s:b, s:s?, s:s}", "right", (int)grade->is_right, "answer", grade->answer, "why",
                             grade->why);
    bool good = line && json_dumpf(line, out, JSON_COMPACT) == 0 && fputc('\n', out) != EOF;
    json_decref(line);
    return good;
}

static enum grading_status judge(const struct grade_options *how, struct slice text, const char *const *accepted,
                                 size_t count, bool json, FILE *out)
{
    struct grade grade;
    grade_text(how, text, accepted, count, &grade);
    bool right = grade.is_right;
    bool good = json ? put_json(&grade, out) : fprintf(out, "%s: %s\n", right ? "right" : "wrong", grade.why) > 0;
    grade_finish(&grade);
    return !good ? GRADING_UNREAD : right ? GRADING_RIGHT : GRADING_WRONG;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

struct row {
    json_t *object;
    const char *accepted[TASK_ANSWERS_MAX];
    size_t count;
    struct slice text;
    struct choice_options options;
};

/* NULL, or why it is no row. */
static const char *read_row(const struct grade_options *how, const char *line, size_t len, struct row *ret)
{
    ret->object = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    json_t *text = json_object_get(ret->object, "text"), *answer = json_object_get(ret->object, "answer");
    json_t *answers = json_object_get(ret->object, "answers");
    if (!json_is_object(ret->object))
        return "it is not a JSON object";
    if (!json_is_string(text))
        return "it has no text";
    ret->text = slice_of(json_string_value(text), json_string_length(text));
    if (how->kind == GRADE_CHOICE && !read_json_options(json_object_get(ret->object, "options"), &ret->options))
        return "its options are not an object of letters, A to Z, and texts";
    if (json_is_string(answer) && !answers) {
        ret->accepted[ret->count++] = json_string_value(answer);
        return NULL;
    }
    if (answer || !json_is_array(answers) || json_array_size(answers) > TASK_ANSWERS_MAX)
        return "it has neither answer, a string, nor answers, a list of up to 64 of them";
    for (size_t i = 0; i < json_array_size(answers); i++)
        if (!(ret->accepted[ret->count++] = json_string_value(json_array_get(answers, i))))
            return "one of its answers is not a string";
    return NULL;
}

static enum grading_status judge_row(const struct grade_options *how, const char *line, size_t len, size_t number,
                                     FILE *out)
{
    struct row row = {.object = NULL};
    enum grading_status status = GRADING_UNREAD;
    struct grade_options of_row = *how;
    const char *why = len > GRADING_LINE_MAX ? "it is longer than 16 MiB" : read_row(how, line, len, &row);
    of_row.options = row.options;
    if (!why)
        why = grade_refuse(&of_row, row.accepted, row.count);
    if (why) {
        fprintf(stderr, "sluice-grade: row %zu: %s\n", number, why);
        fprintf(out, "{\"error\":\"%s\"}\n", why); /* none of them has a character to escape */
    } else
        status = judge(&of_row, row.text, row.accepted, row.count, true, out);
    json_decref(row.object);
    return status;
}

static enum grading_status judge_rows(const struct grade_options *how, const char *path, FILE *in, FILE *out)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0, number = 0;
    enum grading_status worst = GRADING_RIGHT;
    for (ssize_t len; (len = getline(&line, &size, in)) > 0;) {
        const size_t mark = number++ == 0 && strncmp(line, BOM, strlen(BOM)) == 0 ? strlen(BOM) : 0;
        if (line[mark] == '\n')
            continue;
        enum grading_status status = judge_row(how, line + mark, (size_t)len - mark, number, out);
        worst = status > worst ? status : worst;
    }
    if (!ferror(in))
        return worst;
    fprintf(stderr, "sluice-grade: %s: %s\n", path, strerror(errno));
    return GRADING_UNREAD;
}

enum grading_status grading_run(const struct grading_options *options, const struct grade_options *how, FILE *out)
{
    if (!options->rows)
        return judge(how, slice_from_str(options->text), options->answer.items, options->answer.count, options->json,
                     out);
    bool is_stdin = strcmp(options->rows, "-") == 0;
    AUTO_FCLOSE FILE *file = is_stdin ? NULL : fopen(options->rows, "re");
    if (!is_stdin && !file) {
        fprintf(stderr, "sluice-grade: %s: %s\n", options->rows, strerror(errno));
        return GRADING_UNREAD;
    }
    return judge_rows(how, options->rows, is_stdin ? stdin : file, out);
}
