/* task.c - `sluice task`: tasks out of folders, and whether tasks are sound; both are modules of the Python package. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/python.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"

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

static int run_task(const struct invocation *in)
{
    const char *word = in->argument_count ? in->arguments[0] : "";
    struct python_call call = {.module = NULL};
    for (size_t i = 0; i < ROWS(pages); i++)
        if (strcmp(word, pages[i].option) == 0) {
            pages[i].print(&in->command->line, stdout);
            return EXITS_OK;
        }
    if (strcmp(word, "import") == 0)
        call = (struct python_call){.module = "sluice.importers", .arguments = {"harbor"}, .count = 1};
    else if (strcmp(word, "check") == 0)
        call.module = "sluice.checking";
    else
        return cli_usage(in->command,
                         *word ? "there is no verb '%s': import or check" : "a verb is missing%s: import or check",
                         word);
    for (size_t i = 1; i < in->argument_count; i++)
        if (!python_add(&call, in->arguments[i]))
            return EXITS_USAGE;
    return python_exec(&call);
}

const struct command command_task = {
    COMMAND_LINE("task"),
    .line.arguments = "import|check ...",
    .line.brief = "Makes tasks of Harbor's folders; tells whether tasks are sound (both by the Python package)",
    .line.doc =
        "'sluice task import DIRECTORY' writes what 'sluice submit DIRECTORY' would submit. 'sluice task check "
        "TASKS' has\n"
        "each task run by a service: its solution twice, which must get the full reward, and an agent that does "
        "nothing,\n"
        "which must get less; it prints a table of what is wrong, and exits with 1 if anything is.\n"
        "docs/tasks/harbor.md says more; 'sluice task check --help' has the options.\n",
    .line.example = "sluice task import datasets/mine -o tasks.jsonl\n"
                    "sluice task check datasets/mine --network-grant pip\n",
    .passes_on = true,
    .run = run_task,
};
