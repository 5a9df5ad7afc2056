/* help.c - `sluice --help`, `sluice COMMAND --help` and docs/cli.md, all from the tables. */
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/duration.h"

static const char overview[] =
    "Sluice runs rollouts of multi-turn LLM agents: tasks in, token-exact trajectories with\n"
    "rewards out.\n";

static const char first_steps[] =
    "sluice up --llm http://127.0.0.1:8080              # broker and workers, on this machine\n"
    "sluice submit tasks.jsonl --stream train --wait    # in another terminal\n";

static const char exit_words[] =
    "Exit status: 0 done; 1 failed, with a sentence on stderr; 2 the command line is wrong.\n"
    "`submit --wait` exits 3 if some rollouts ended that a trainer must not learn from; `status`\n"
    "exits 4 if the service is degraded, 5 if it is down.\n"
    "\n"
    "A TIME is a number with its unit: 500ms, 90s, 10m, 1h30m, 2d.\n";

/* How an option is written: "--name VALUE". */
static void name_option(const struct option *option, char *ret, size_t size)
{
    snprintf(ret, size, "--%s%s%s%s", option->name,
             option->bare_ms ? "[=" : option->value ? " " : "",
             option->value ? option->value : "", option->bare_ms ? "]" : "");
}

/* Its default as one would write it; false when there is none to tell. */
static bool format_preset(const struct option *option, char *ret, size_t size)
{
    if (!option->preset || option->preset == OPTION_NOT_GIVEN)
        return false;
    if (option->kind == OPTION_DURATION)
        duration_format(option->preset, ret, size);
    else
        snprintf(ret, size, "%llu", (unsigned long long)option->preset);
    return option->kind == OPTION_DURATION || option->kind == OPTION_NUMBER;
}

static void print_synopsis(const struct command *command, FILE *out)
{
    fprintf(out, "sluice %s%s%s%s", command->name, *command->arguments ? " " : "",
            command->arguments, command->option_count ? " [OPTIONS]" : "");
}

static void print_option(const struct option *option, FILE *out)
{
    char name[64], preset[32];
    name_option(option, name, sizeof(name));
    fprintf(out, "  %-20s %s", name, option->doc);
    if (format_preset(option, preset, sizeof(preset)))
        fprintf(out, " Default: %s.", preset);
    fprintf(out, "%s%s\n", option->kind == OPTION_LIST ? " May be repeated." : "",
            option->required ? " Required." : "");
}

static void print_indented(const char *lines, FILE *out)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");
        fprintf(out, "  %.*s\n", (int)len, lines);
        lines += len + (lines[len] == '\n');
    }
}

void help_overview(FILE *out)
{
    fprintf(out, "usage: sluice COMMAND ...\n\n%s\ncommands\n", overview);
    for (size_t i = 0; i < command_count; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->brief);
    fprintf(out, "\nto begin\n");
    print_indented(first_steps, out);
    fprintf(out, "\n'sluice COMMAND --help' says more. --broker URL, or SLUICE_BROKER, names the broker.\n%s",
            exit_words);
}

void help_command(const struct command *command, FILE *out)
{
    fputs("usage: ", out);
    print_synopsis(command, out);
    fprintf(out, "\n\n%s.\n", command->brief);
    if (*command->doc)
        fprintf(out, "\n%s", command->doc);
    fprintf(out, "\noptions\n");
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], out);
    for (size_t i = 0; i < common_option_count; i++)
        print_option(&common_options[i], out);
    fprintf(out, "\nfor example\n");
    print_indented(command->example, out);
}

/* ---- docs/cli.md ------------------------------------------------------------------------ */

static void mark_option(const struct option *option, FILE *out)
{
    char name[64], preset[32];
    name_option(option, name, sizeof(name));
    fprintf(out, "| `%s` | %s%s%s |", name, option->doc,
            option->kind == OPTION_LIST ? " May be repeated." : "",
            option->required ? " Required." : "");
    if (format_preset(option, preset, sizeof(preset)))
        fprintf(out, " %s |\n", preset);
    else
        fprintf(out, " |\n");
}

static void mark_command(const struct command *command, FILE *out)
{
    fprintf(out, "\n## sluice %s\n\n```\n", command->name);
    print_synopsis(command, out);
    fprintf(out, "\n```\n\n%s.\n", command->brief);
    if (*command->doc)
        fprintf(out, "\n%s", command->doc);
    if (command->option_count)
        fprintf(out, "\n| option | meaning | default |\n|---|---|---|\n");
    for (size_t i = 0; i < command->option_count; i++)
        mark_option(&command->options[i], out);
    fprintf(out, "\n```sh\n%s```\n", command->example);
}

void help_markdown(FILE *out)
{
    fprintf(out,
            "# The command line\n\n<!-- Made by `sluice --help-markdown`; a test compares. -->\n\n"
            "%s\n```sh\n%s```\n\n%s\nEvery command has these too:\n\n"
            "| option | meaning | default |\n|---|---|---|\n",
            overview, first_steps, exit_words);
    for (size_t i = 0; i < common_option_count; i++)
        mark_option(&common_options[i], out);
    for (size_t i = 0; i < command_count; i++)
        mark_command(commands[i], out);
}
