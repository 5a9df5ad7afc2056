#include "client/cli/grade/grade.h"

#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/grade/grade_read.h"
#include "client/cli/grade/grade_run.h"
#include "client/cli/programs/siblings.h"
#include "common/base/text.h"

#define ANSWERS "math|choice|exact"
#define KINDS ANSWERS "|command|verifier|code|swe|judge"

static const struct option options[] = {
    {"task", OPTION_TEXT, offsetof(struct grade_options, task), "FILE",
     "A task, or several, one JSON object a line, as `sluice submit` takes them; - is stdin.", .required = true},
    {"id", OPTION_LIST, offsetof(struct grade_options, ids), "NAME", "Which of its tasks.", .standard = "all"},
    {"files", OPTION_LIST, offsetof(struct grade_options, files), "[PATH=]DIR",
     "What the agent left: the content of a directory, copied over the task's own files into the working directory, or "
     "to PATH inside; or one file."},
    {"text", OPTION_TEXT, offsetof(struct grade_options, text), "TEXT", "The agent's last words."},
    {"rows", OPTION_TEXT, offsetof(struct grade_options, rows), "FILE",
     "In place of --files and --text: a JSON object on each line, with `task`, where there are several, `files` (as "
     "--files, or a list of such) and `text`; - is stdin. The verdicts are lines of JSON then."},
    {"solution", OPTION_FLAG, offsetof(struct grade_options, solution), NULL,
     "What the task's own solution leaves is graded."},
    {"nothing", OPTION_FLAG, offsetof(struct grade_options, nothing), NULL,
     "What an agent leaves that does nothing is graded."},
    {"full-reward", OPTION_REAL, offsetof(struct grade_options, full_reward), "X",
     "The exit status is 0 where no reward is below this.", .real = 1},
    {"json", OPTION_FLAG, offsetof(struct grade_options, json), NULL,
     "Prints each verdict as one line of JSON: \"task\", \"outcome\", \"reward\" (null: none), \"raw_reward\", "
     "\"parts\", "
     "\"metrics\", \"tests\", \"why\"."},
    {"engine", OPTION_LIST, offsetof(struct grade_options, engines), "URL",
     "An engine that judges, for the evaluator judge.", .old_name = "llm"},
    {"handler", OPTION_LIST, offsetof(struct grade_options, handlers), "NAME=COMMAND",
     "A handler, whose evaluators tasks may name: mine='python3 -m sluice.handlers mine.py'."},
    {"images", OPTION_LIST, offsetof(struct grade_options, images), "DIR",
     "Tasks may name the images in this directory, or this one image.", .standard = "host"},
    {"image-name", OPTION_LIST, offsetof(struct grade_options, image_names), "NAME=PATH",
     "What Dockerfiles of tasks call NAME is the image at PATH.", .standard = "images of that name in --images"},
    {"task-dir", OPTION_LIST, offsetof(struct grade_options, task_dirs), "DIR",
     "Tasks may take files from this directory, by files[].source.", .standard = "none"},
    {"grant", OPTION_LIST, offsetof(struct grade_options, grants), "NAME=TO",
     "What tasks may reach by that name: unix:/path/of/a/socket or tcp:HOST:PORT."},
    {"sandbox", OPTION_TEXT, offsetof(struct grade_options, sandbox), "TIER",
     "How sandboxes are made: a tier that sluice doctor names.", .standard = "the best that this machine allows"},
    {"data", OPTION_TEXT, offsetof(struct grade_options, data), "DIR",
     "Where unpacked images and layers of Dockerfiles stay for the next time.", .standard = "nothing stays"},
    {"log", OPTION_TEXT, offsetof(struct grade_options, log), "FILE",
     "Where what workers and handlers say is appended.", .standard = "nowhere"},
};

static const struct cmdline_status statuses[] = {
    {GRADE_FULL, "every reward is full; the answer is right"},
    {GRADE_LESS, "a reward is less; an answer is wrong"},
    {GRADE_USAGE, "the command line is wrong"},
    {GRADE_NO_VERDICT, "something has no verdict: its evaluator broke, or it could not be read"},
};

/* ---- by a task ------------------------------------------------------------------------------------- */

static const char *wrong_use(const struct grade_options *told)
{
    const bool is_given = told->files.count || told->text;
    const int ways = is_given + (told->rows != NULL) + told->solution + told->nothing;
    if (ways == 0)
        return "what is graded: --files DIR, --text TEXT, --rows FILE, --solution or --nothing";
    if (ways > 1)
        return "--files and --text, --rows, --solution and --nothing are graded apart: say one of them";
    if (told->rows && told->ids.count)
        return "rows say by `task` which task is theirs: leave --id out";
    if (told->rows && strcmp(told->rows, "-") == 0 && strcmp(told->task, "-") == 0)
        return "--task and --rows cannot both be stdin";
    return NULL;
}

/* A kind is said to be sure. */
static bool has_kind(const struct grade_jobs *jobs, const char *kind)
{
    bool same = true;
    for (size_t i = 0; i < jobs->count && kind && same; i++) {
        json_t *task = jobs->each[i].json ? json_loads(jobs->each[i].json, JSON_ALLOW_NUL, NULL) : NULL;
        const char *is = json_string_value(json_object_get(json_object_get(task, "eval"), "kind"));
        same = !task || (is && strcmp(is, kind) == 0);
        if (!same)
            cli_say("the evaluator of %s is %s, not %s", jobs->each[i].task, is ? is : "none", kind);
        json_decref(task);
    }
    return same;
}

static int run_by_task(const struct invocation *in)
{
    const struct grade_options *told = in->options;
    struct grade_jobs jobs = {0};
    const char *why = wrong_use(told);
    if (in->broker || in->key)
        return cli_usage(in->command, "it starts a service of its own: leave --broker and --key out");
    if (why)
        return cli_usage(in->command, "%s", why);
    int status = GRADE_NO_VERDICT;
    if (grade_read(&jobs, told) && has_kind(&jobs, in->arguments[0]))
        status = (int)grade_run(&jobs);
    grade_jobs_finish(&jobs);
    return status;
}

/* ---- which of the two -------------------------------------------------------------------------------- */

static bool has_word(const struct invocation *in, const char *words)
{
    for (size_t i = 0; i < in->argument_count; i++)
        if (text_is_one_of(in->arguments[i], words))
            return true;
    return false;
}

static bool has_option(const struct invocation *in, const char *option)
{
    const size_t len = strlen(option);
    for (size_t i = 0; i < in->argument_count; i++)
        if (strncmp(in->arguments[i], option, len) == 0 && (!in->arguments[i][len] || in->arguments[i][len] == '='))
            return true;
    return false;
}

/* What sluice-grade judges: an answer alone, or what tests have printed already. */
static bool needs_no_service(const struct invocation *in)
{
    return has_option(in, "--eval-log") || (!has_option(in, "--task") && has_word(in, ANSWERS));
}

static int run_grade(const struct invocation *in)
{
    struct grade_options told = {0};
    struct invocation by_task = {.command = in->command, .options = &told};
    struct cmdline_values values = {.into = {&told, &by_task}};
    if (needs_no_service(in))
        return exec_sibling(in, "sluice-grade", "workers");
    if (!in->argument_count)
        return cli_usage(in->command, "say --task FILE, or " ANSWERS " with --answer and --text");
    int status = cmdline_begin(&in->command->line, (int)in->argument_count, in->arguments, &values);
    by_task.arguments = values.arguments;
    by_task.argument_count = values.argument_count;
    if (status < 0 && values.argument_count && !text_is_one_of(values.arguments[0], KINDS) && !told.handlers.count)
        status = cli_usage(in->command, "'%s' is not an evaluator: " KINDS, values.arguments[0]);
    if (status < 0)
        status = run_by_task(&by_task);
    cmdline_finish(&values);
    return status;
}

const struct command command_grade = {
    COMMAND_LINE("grade"),
    .line.arguments = "[KIND]",
    .line.arguments_max = 1,
    .line.brief = "Judges answers, and what agents left, as evaluators do, without a service",
    .line.doc =
        "'sluice grade --task FILE' has a task's own evaluator judge what an agent left: its files, its last words, "
        "or\n"
        "what the task's solution leaves. Broker, workers and sandboxes are made for it and gone afterwards; --files\n"
        "are read and never changed. Of each verdict it prints reward, parts, metrics, tests and why, a line each.\n"
        "docs/tasks/grade.md says more.\n"
        "\n"
        "'sluice grade " ANSWERS " --answer TEXT --text TEXT' judges an answer alone (the program sluice-grade);\n"
        "'sluice grade math --help' has its options (also --rows, --extract, --normalize, --tolerance and\n"
        "the absolute one, --tolerance-absolute).\n"
        "\n"
        "'sluice grade swe --task FILE --eval-log FILE' judges what tests have printed already, without image and\n"
        "sandbox; --patch FILE is the change that was tested (the program sluice-grade, too).\n",
    .line.example = "sluice grade --task task.json --files workspace\n"
                    "sluice grade --task tasks.jsonl --solution\n"
                    "sluice grade --task tasks.jsonl --rows left.jsonl > verdicts.jsonl\n"
                    "sluice grade swe --task task.json --eval-log test_output.txt --patch model.patch\n"
                    "sluice grade math --answer '\\frac12' --text 'so it is \\boxed{0.5}'\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .line.statuses = statuses,
    .line.status_count = ROWS(statuses),
    .passes_on = true,
    .run = run_grade,
};
