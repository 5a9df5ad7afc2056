/* sluice-describe-tools - writes docs/tools.md: what the rows of the table of tools say. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cmdline/help.h"
#include "workers/tools/tool.h"
#include "workers/tools/tools.h"

static const char intro[] = "# Tools\n\n"
                            "The tools that a task may enable for its agent. "
                            "`sluice-describe-tools` makes this page from the rows in\n"
                            "`workers/tools/`; a test compares the two. The texts on a tool and "
                            "its arguments are those that the model is\n"
                            "shown and that calls are checked against.\n\n"
                            "A task names its agent's tools in `agent.tools`, for `agent.kind` "
                            "`tools` (the model calls them) and\n"
                            "`replay` (`agent.script` does):\n\n"
                            "```json\n"
                            "{\"task\": \"fix\", \"prompt\": \"Make the tests pass.\", \"agent\": "
                            "{\"kind\": \"tools\", \"tools\": "
                            "[\"bash\", \"edit\", \"submit\"]}}\n"
                            "```\n\n"
                            "An invalid call is answered with a sentence that explains the error, "
                            "and the rollout continues.\n"
                            "`limits.command_s` bounds each call, `limits.output_bytes` its "
                            "output: beyond that the beginning and the end are\n"
                            "kept, and a line in between counts the bytes left out.\n";

static const char search[] =
    "\nHow a model calls them, and how calls that cannot be parsed are answered, is described in\n"
    "[agents.md](agents.md).\n\n"
    "## What a command can do to its shell\n\n"
    "A command's output is shown whatever the command does to `/run/sluice/out`, to `umask` or to "
    "the shell's\n"
    "descriptors; a command may change variables such as `PWD`, aliases and functions freely. If "
    "bash itself stops\n"
    "accepting commands (`exit`, `set -r`, a function named `builtin`, `ulimit -n 5`), the result "
    "ends with a line\n"
    "that reports it, and a new shell starts at once in the same directory, without the variables, "
    "functions and\n"
    "aliases. Background jobs that fill `/run/sluice/out` (64 MiB) silence later commands; the "
    "result reports that\n"
    "too, and `restart` ends it.\n\n"
    "## Searching the web\n\n"
    "`search` sends its requests from the worker, never from a sandbox. It is off unless the "
    "worker has a server\n"
    "configured:\n\n"
    "```sh\n"
    "sluice-worker run --search tavily=https://api.tavily.com --search-key /etc/sluice/tavily.key\n"
    "sluice-worker run --search searxng=http://10.0.0.7:8080\n"
    "```\n\n"
    "`sluice up` has the same options. The key is the first line of the file, or "
    "`SLUICE_SEARCH_KEY` in the\n"
    "environment; it is sent in one header and never stored. A SearXNG server must allow the "
    "format json in its\n"
    "settings. A task that names `search` on a worker without a search server ends with outcome "
    "`infra`: another\n"
    "worker may have one, so the run is tried 8 times, which takes a minute. (A missing grant ends "
    "as `task` at once:\n"
    "all workers of a stage must have the same grants.)\n";

static const char *const type_words[] = {"string", "integer", "true or false", "list of integers"};

static void put_words(const char *words)
{
    putchar('`');
    for (; *words; words++)
        *words == '|' ? fputs("`, `", stdout) : putchar(*words);
    putchar('`');
}

static void put_limits(const struct tool_argument *argument)
{
    static const char *const units[] = {" characters", "", "", " elements"};
    if (argument->words)
        put_words(argument->words);
    else if (argument->max > 0 && argument->min == argument->max)
        printf("%.15g%s", argument->min, units[argument->type]);
    else if (argument->max > 0)
        printf("%.15g to %.15g%s", argument->min, argument->max, units[argument->type]);
}

static void put_tool(const struct tool *tool)
{
    printf("\n## `%s`\n\n%s\n\n| argument | type | | limits | meaning |\n|---|---|---|---|---|\n", tool->name,
           tool->doc);
    for (const struct tool_argument *at = tool->arguments; at->name; at++) {
        printf("| `%s` | %s | %s | ", at->name, type_words[at->type], at->required ? "required" : "");
        put_limits(at);
        printf(" | ");
        cmdline_cell(at->doc, stdout);
        puts(" |");
    }
}

int main(void)
{
    fputs(intro, stdout);
    for (size_t i = 0; tool_at(i); i++)
        put_tool(tool_at(i));
    fputs(search, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
