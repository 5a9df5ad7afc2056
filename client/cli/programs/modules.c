#include "client/cli/programs/modules.h"

#include <string.h>

#include "client/cli/connect.h"
#include "client/cli/programs/python.h"
#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"
#include "common/cmdline/verbs.h"

static const struct {
    const char *option;
    void (*print)(const struct cmdline *line, FILE *out);
} pages[] = {
    {"--help", cmdline_help},
    {"-h", cmdline_help},
    {"--help-man", cmdline_manual},
    {"--help-completion", cmdline_completion},
};

int module_exec(const char *module, const struct invocation *in, size_t skip)
{
    struct python_call call = {.module = module};
    for (size_t i = skip; i < in->argument_count; i++)
        if (!python_add(&call, in->arguments[i]))
            return EXITS_USAGE;
    return python_exec(&call);
}

int modules_run(const struct invocation *in)
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
