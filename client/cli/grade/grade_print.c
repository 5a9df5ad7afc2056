#include "client/cli/grade/grade_print.h"

#include <string.h>

#include "client/json/json.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

enum { TESTS_SHOWN = 8, MESSAGE_SHOWN = 120 };

/* ---- for people ------------------------------------------------------------------------------------- */

/* As one line: blanks and line ends are one blank. */
static void print_words(FILE *out, const char *text)
{
    AUTO_FREE char *line = strdup(text);
    char *at = line;
    if (!line)
        return;
    for (const char *from = text + strspn(text, " \t\r\n"); *from;) {
        const size_t blanks = strspn(from, " \t\r\n");
        if (blanks && from[blanks])
            *at++ = ' ';
        from += blanks;
        if (*from && !blanks)
            *at++ = *from++;
    }
    *at = '\0';
    sanitize_print(out, "%s\n", line);
}

/* To six digits: more is for programs. */
static void print_number(FILE *out, const char *before, double number) { fprintf(out, "%s%.6g", before, number); }

static void print_verdict(FILE *out, const struct grade_job *job, const struct sluice_trajectory *t)
{
    sanitize_print(out, "verdict  %s: ", job->task);
    if (t->has_reward) {
        print_number(out, "reward ", t->reward);
        if (t->raw_reward != t->reward) {
            print_number(out, " (before shaping ", t->raw_reward);
            putc(')', out);
        }
    } else
        fputs("no reward", out);
    sanitize_print(out, "%s%s\n", strcmp(t->outcome, "ok") == 0 ? "" : ", outcome ",
                   strcmp(t->outcome, "ok") == 0 ? "" : t->outcome);
}

static void print_parts(FILE *out, const struct sluice_trajectory *t)
{
    for (size_t i = 0; i < t->part_count; i++) {
        sanitize_print(out, "%s%s", i ? ", " : "parts    ", t->parts[i].name);
        print_number(out, " ", t->parts[i].value);
        if (t->parts[i].weight != 1) {
            print_number(out, " (weight ", t->parts[i].weight);
            putc(')', out);
        }
    }
    fputs(t->part_count ? "\n" : "", out);
    for (size_t i = 0; i < t->metric_count; i++) {
        sanitize_print(out, "%s%s", i ? ", " : "metrics  ", t->metrics[i].name);
        print_number(out, " ", t->metrics[i].value);
    }
    fputs(t->metric_count ? "\n" : "", out);
}

static void print_test(FILE *out, const struct sluice_test *test, bool is_first)
{
    AUTO_FREE char *line = test->message ? strndup(test->message, strcspn(test->message, "\n")) : NULL;
    sanitize_print(out, "%s%s", is_first ? "; not passed: " : ", ", test->name);
    if (line && *line)
        sanitize_print(out, " (%.*s)", MESSAGE_SHOWN, line);
}

static void print_tests(FILE *out, const struct sluice_tests *tests)
{
    size_t shown = 0, more = 0;
    if (!tests)
        return;
    fprintf(out, "tests    %llu passed, %llu failed, %llu with errors, %llu skipped", (unsigned long long)tests->passed,
            (unsigned long long)tests->failed, (unsigned long long)tests->error, (unsigned long long)tests->skipped);
    for (size_t i = 0; i < tests->list_count; i++) {
        const char *status = tests->list[i].status;
        if (strcmp(status, "failed") != 0 && strcmp(status, "error") != 0)
            continue;
        if (shown == TESTS_SHOWN)
            more++;
        else
            print_test(out, &tests->list[i], shown++ == 0);
    }
    if (more)
        fprintf(out, " and %zu more", more);
    fputs("\n", out);
}

static void print_text(FILE *out, const struct grade_job *job, const struct sluice_trajectory *t)
{
    print_verdict(out, job, t);
    print_parts(out, t);
    print_tests(out, t->tests);
    if (t->eval_sandbox)
        sanitize_print(out, "sandbox  %s\n", t->eval_sandbox);
    fputs("why      ", out);
    print_words(out, *t->detail ? t->detail : "nothing was said");
}

/* ---- for programs ----------------------------------------------------------------------------------- */

static void begin_json(FILE *out, const struct grade_job *job)
{
    putc('{', out);
    if (job->row)
        fprintf(out, "\"row\": %zu, ", job->row);
    fputs("\"task\": ", out);
    if (job->task)
        json_text(out, job->task);
    else
        fputs("null", out);
}

static void print_json(FILE *out, const struct grade_job *job, const struct sluice_trajectory *t)
{
    begin_json(out, job);
    json_verdict(out, t);
    fputs(", \"why\": ", out);
    json_text(out, t->detail);
    fputs("}\n", out);
}

/* ---- both --------------------------------------------------------------------------------------------- */

static bool is_json(const struct grade_options *options) { return options->json || options->rows; }

bool grade_print(struct grade_job *job, const struct sluice_trajectory *trajectory, const struct grade_options *options)
{
    size_t size;
    FILE *out = open_memstream(&job->printed, &size);
    job->has_ended = true;
    job->status = !trajectory->has_reward                      ? GRADE_NO_VERDICT
                  : trajectory->reward >= options->full_reward ? GRADE_FULL
                                                               : GRADE_LESS;
    if (!out)
        return false;
    if (is_json(options))
        print_json(out, job, trajectory);
    else
        print_text(out, job, trajectory);
    return fclose(out) == 0;
}

bool grade_print_refused(struct grade_job *job)
{
    size_t size;
    FILE *out = open_memstream(&job->printed, &size);
    job->has_ended = true;
    job->status = GRADE_NO_VERDICT;
    if (!out)
        return false;
    begin_json(out, job);
    fputs(", \"error\": ", out);
    json_text(out, job->why);
    fputs("}\n", out);
    return fclose(out) == 0;
}
