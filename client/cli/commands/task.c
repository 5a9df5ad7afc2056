/* task.c - `sluice task`: tasks out of folders and rows, and whether they are sound: modules of the Python package. */
#include "client/cli/command.h"
#include "client/cli/programs/modules.h"

static int run_import(const struct invocation *in) { return module_exec("sluice.importers", in, 1); }

static int run_check(const struct invocation *in) { return module_exec("sluice.checking", in, 1); }

static const struct cmdline_verb verbs[] = {
    {"import", "DIRECTORY|FORM ...", run_import},
    {"check", "TASKS ...", run_check},
};

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
    .run = modules_run,
};
