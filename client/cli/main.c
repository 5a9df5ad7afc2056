/* sluice - the command line: finds the command, reads its options, runs it. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/connect.h"
#include "client/cli/pages.h"
#include "common/base/cleanup.h"
#include "common/base/nearest.h"
#include "common/cmdline/help.h"

static const struct command *const commands[] = {
    &command_up,      &command_task,   &command_submit, &command_session, &command_watch,    &command_show,
    &command_logs,    &command_list,   &command_status, &command_top,     &command_trace,    &command_export,
    &command_metrics, &command_ack,    &command_cancel, &command_engine,  &command_policy,   &command_sampler,
    &command_drain,   &command_backup, &command_keys,   &command_broker,  &command_worker,   &command_gateway,
    &command_doctor,  &command_image,  &command_verify, &command_grade,   &command_simulate, &command_harness,
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ROWS(commands); i++)
        if (strcmp(commands[i]->line.command, name) == 0 ||
            (commands[i]->old_name && strcmp(commands[i]->old_name, name) == 0))
            return commands[i];
    return NULL;
}

static int refuse_command(const char *word)
{
    struct nearest nearest = {.wanted = slice_from_str(word)};
    char hint[NEAREST_TEXT_SIZE];
    for (size_t i = 0; i < ROWS(commands); i++)
        nearest_offer_str(&nearest, commands[i]->line.command);
    if (word[0] == '-')
        cli_say("'%s' is not a command: options come after the command (see sluice --help)", word);
    else
        cli_say("there is no command '%s'%s (see sluice --help)", word, nearest_text(&nearest, "", hint));
    return EXITS_USAGE;
}

/* What is not a command; -1 if it is none of these either. `after`: the next word, or NULL. */
static int run_top_option(const char *word, const char *after)
{
    const struct command *about = after ? find_command(after) : NULL;
    if (strcmp(word, "help") == 0 && about)
        cmdline_help(&about->line, stdout);
    else if (strcmp(word, "help") == 0 && after)
        return refuse_command(after);
    else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        help_overview(commands, ROWS(commands), stdout);
    else if (strcmp(word, "--help-markdown") == 0)
        help_markdown(commands, ROWS(commands), stdout);
    else if (strcmp(word, "--help-man") == 0)
        help_manual(commands, ROWS(commands), stdout);
    else if (strcmp(word, "--help-completion") == 0)
        help_completion(commands, ROWS(commands), stdout);
    else if (strcmp(word, "--version") == 0)
        printf("sluice %s\n", SLUICE_VERSION);
    else
        return -1;
    return EXITS_OK;
}

static int run_command(const struct command *command, int argc, char **argv)
{
    if (command->passes_on) {
        struct invocation in = {.command = command, .arguments = argv, .argument_count = (size_t)argc};
        return command->run(&in);
    }
    AUTO_FREE void *options = calloc(1, command->options_size + 1);
    struct invocation in = {.command = command, .options = options};
    struct cmdline_values values = {.into = {options, &in}};
    int status = EXITS_FAILED;
    if (!options)
        cli_say("out of memory");
    else
        status = cmdline_begin(&command->line, argc, argv, &values);
    in.arguments = values.arguments + (values.verb ? 1 : 0);
    in.argument_count = values.argument_count - (values.verb ? 1 : 0);
    if (status < 0)
        status = values.verb ? values.verb->run(&in) : command->run(&in);
    cmdline_finish(&values);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help_overview(commands, ROWS(commands), stderr);
        return EXITS_USAGE;
    }
    int status = run_top_option(argv[1], argv[2]);
    if (status < 0) {
        const struct command *command = find_command(argv[1]);
        if (!command)
            return refuse_command(argv[1]);
        status = run_command(command, argc - 2, argv + 2);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_say("not everything could be written to stdout");
        status = status == EXITS_OK ? EXITS_FAILED : status;
    }
    return status;
}
