/* pages.c - `sluice --help` and docs/cli.md, from the tables. */
#include "client/cli/pages.h"

#include "common/cmdline/help.h"
#include "common/cmdline/manual.h"

static const char overview[] =
    "Sluice runs rollouts of multi-turn LLM agents: tasks in, token-exact trajectories with\n"
    "rewards out.\n";

static const char first_steps[] =
    "sluice up --engine http://127.0.0.1:8080           # broker and workers, on this machine\n"
    "sluice submit tasks.jsonl --stream train --wait    # in another terminal\n";

static const char exit_words[] =
    "Exit status: 0 done; 1 failed, with a sentence on stderr; 2 the command line is wrong; 3 there is no whole\n"
    "answer: `submit --wait` had rollouts that a trainer must not learn from, or `grade`, `verify` or `task check`\n"
    "came to no verdict. `status` exits 4 if the service is degraded, 5 if it is down. `doctor` and `engine check`\n"
    "exit 2 also where there can be no sandbox, or no engine that is exact.\n";

void help_overview(const struct command *const *commands, size_t count, FILE *out)
{
    fprintf(out, "usage: sluice COMMAND ...\n\n%s\ncommands\n", overview);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->line.command, commands[i]->line.brief);
    fprintf(out, "\nto begin\n");
    cmdline_indented(first_steps, out);
    fprintf(out,
            "\n'sluice COMMAND --help' says more. --broker URL, or SLUICE_BROKER, names the "
            "broker.\n%s\n%s",
            exit_words, cmdline_units);
}

void help_markdown(const struct command *const *commands, size_t count, FILE *out)
{
    fprintf(out,
            "# The command line\n\n<!-- Made by `sluice --help-markdown`; a test compares. -->\n\n"
            "%s\n```sh\n%s```\n\n%s\n%s\nEvery command has `--help` and these:\n\n",
            overview, first_steps, exit_words, cmdline_units);
    options_markdown(common_options, COMMON_OPTIONS, out);
    for (size_t i = 0; i < count; i++)
        cmdline_markdown(&commands[i]->line, out);
}

static void put_commands(const struct command *const *commands, size_t count, FILE *out)
{
    manual_section("commands", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, ".TP\n\\fBsluice\\-%s\\fR(1)\n", commands[i]->line.command);
        manual_text(commands[i]->line.brief, out);
    }
}

void help_manual(const struct command *const *commands, size_t count, FILE *out)
{
    manual_head("sluice", "runs rollouts of multi-turn LLM agents", out);
    manual_section("synopsis", out);
    manual_text("sluice COMMAND ...", out);
    manual_section("description", out);
    manual_text(overview, out);
    manual_text("\n'sluice COMMAND --help' says more. --broker URL, or SLUICE_BROKER, names the broker.\n", out);
    put_commands(commands, count, out);
    manual_section("exit status", out);
    manual_text(exit_words, out);
    manual_section("units", out);
    manual_text(cmdline_units, out);
    manual_section("examples", out);
    manual_lines(first_steps, out);
}

void help_completion(const struct command *const *commands, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s\tcommand\t\t%s\n", commands[i]->line.command, commands[i]->line.brief);
}
