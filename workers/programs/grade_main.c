/* sluice-grade: is an answer the accepted one, as the evaluators of answers see it? (workers/grading/) */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "common/cmdline/cmdline.h"
#include "workers/grading/grading.h"
#include "workers/grading/grading_swe.h"

static const struct option rows[] = {
#define OPTION(...) OPTION_ROW(struct grading_options, __VA_ARGS__)
#include "workers/grading/options.def"
#undef OPTION
};

static const struct cmdline_status statuses[] = {
    {GRADING_RIGHT, "the answer is right; of rows, all are; the task is resolved"},
    {GRADING_WRONG, "an answer is wrong; the task is not resolved"},
    {GRADING_USAGE, "the command line is wrong"},
    {GRADING_UNREAD, "a row, or the file, could not be read, or says nothing of tests"},
};

static const struct cmdline line = {
    .program = "sluice-grade",
    .arguments = "math|choice|exact|swe",
    .arguments_min = 1,
    .arguments_max = 1,
    .brief = "Judges answers as the evaluators math, choice and exact do, and logs of tests as swe does",
    .doc = "Takes the answer out of a text, compares it with the accepted ones, and says in one line whether it is "
           "right and\n"
           "why; of swe, whether what tests printed resolves a task. The rules are those of docs/tasks.md and\n"
           "docs/tasks/swe.md. Needs no broker and no sandbox.\n",
    .example = "sluice grade math --answer '\\frac12' --text 'so it is \\boxed{0.5}'\n"
               "sluice grade choice --rows answers.jsonl > verdicts.jsonl\n"
               "sluice grade swe --task task.json --eval-log test_output.txt --patch model.patch\n",
    .tables = {{.rows = rows, .count = ROWS(rows)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
};

/* -1 to go on. */
static int begin(int argc, char **argv, struct grading_options *ret, struct grade_options *ret_how, bool *ret_is_swe)
{
    struct cmdline_values values = {.into = {ret}};
    const char *why;
    int status = cmdline_begin(&line, argc, argv, &values);
    *ret_is_swe = status < 0 && strcmp(values.arguments[0], "swe") == 0;
    if (status < 0 &&
        !(*ret_is_swe ? grading_swe_read(ret, &why) : grading_read(ret, values.arguments[0], ret_how, &why)))
        status = cmdline_wrong(&line, "%s", why);
    cmdline_finish(&values);
    return status;
}

int main(int argc, char **argv)
{
    struct grading_options options = {0};
    struct grade_options how;
    signal(SIGPIPE, SIG_IGN);
    log_open("grade", LOG_WARN, LOG_TEXT);
    bool is_swe = false;
    int status = begin(argc - 1, argv + 1, &options, &how, &is_swe);
    log_open("grade", LOG_WARN, (enum log_format)options.log_format);
    if (status >= 0)
        return status;
    status = (int)(is_swe ? grading_swe(&options, stdout) : grading_run(&options, &how, stdout));
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sluice-grade: not everything could be written to stdout\n");
        status = GRADING_UNREAD;
    }
    return status;
}
