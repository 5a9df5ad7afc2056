/* task.c - `sluice task`: tasks out of folders and rows, and whether they are sound: modules of the Python package. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/programs/python.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"
#include "common/cmdline/verbs.h"

/* What the command itself answers; all else goes to the modules. */
static const struct {
    const char *option;
    void (*print)(const struct cmdline *line, FILE *out);
} pages[] = {
    {"--help", cmdline_help},
    {"-h", cmdline_help},
    {"--help-man", cmdline_manual},
    {"--help-completion", cmdline_completion},
};

/* Everything after the verb is the module's. */
static int run_module(const char *module, const struct invocation *in)
{
    struct python_call call = {.module = module};
    for (size_t i = 1; i < in->argument_count; i++)
        if (!python_add(&call, in->arguments[i]))
            return EXITS_USAGE;
    return python_exec(&call);
}

static int run_import(const struct invocation *in) { return run_module("sluice.importers", in); }

static int run_check(const struct invocation *in) { return run_module("sluice.checking", in); }

static const struct cmdline_verb verbs[] = {
    {"import", "DIRECTORY|FORM ...", run_import},
    {"check", "TASKS ...", run_check},
};

static int run_task(const struct invocation *in)
{
    const char *word = in->argument_count ? in->arguments[0] : NULL;
    struct fail fail;
    for (size_t i = 0; i < ROWS(pages); i++)
        if (word && strcmp(word, pages[i].option) == 0) {
            pages[i].print(&in->command->line, stdout);
            return EXITS_OK;
        }
    const struct cmdline_verb *verb = cmdline_verb(&in->command->line, word, &fail);
    return verb ? verb->run(in) : cli_usage(in->command, "%s", fail.text);
}

const struct command command_task = {
    COMMAND_LINE("task"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Makes tasks of Harbor's folders and of data sets' rows; tells whether tasks are sound",
    .line.doc =
        "'import DIRECTORY' writes the tasks that 'sluice submit DIRECTORY' would submit (docs/tasks/harbor.md).\n"
        "'import FORM FILE' makes a task of each row of a data set; 'import --list' prints the forms\n"
        "(docs/tasks/importers.md). 'check' has each task run by a service: its solution twice, which must get\n"
        "the full reward, and an agent that does nothing, which must get less. It prints a table of what is wrong.\n"
        "Both are of the Python package. Their options: 'sluice task import --help' (of rows), 'sluice task import\n"
        "harbor --help' (of folders), 'sluice task check --help'.\n",
    .line.example = "sluice task import datasets/mine -o tasks.jsonl\n"
                    "sluice task import humaneval HumanEval.jsonl.gz -o tasks.jsonl\n"
                    "sluice task check datasets/mine --network-grant pip\n",
    .passes_on = true,
    .run = run_task,
};
