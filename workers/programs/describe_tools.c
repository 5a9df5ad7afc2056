/* sluice-describe-tools - writes docs/tools.md: what the rows of the table of tools say. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "workers/tools/tool.h"

static const char intro[] =
    "# Tools\n\n"
    "What an agent can be given to work with. This page is made from the rows in `workers/tools/` by\n"
    "`sluice-describe-tools`; a test compares the two. What stands here about a tool and its arguments is\n"
    "what the model is shown, and what a call is checked against.\n\n"
    "A task names its agent's tools in `agent.tools`, for `agent.kind` `tools` (the model calls them) and\n"
    "`replay` (`agent.script` does):\n\n"
    "```json\n"
    "{\"task\": \"fix\", \"prompt\": \"Make the tests pass.\", \"agent\": {\"kind\": \"tools\", \"tools\": "
    "[\"bash\", \"edit\", \"submit\"]}}\n"
    "```\n\n"
    "A call that does not fit is answered with a sentence that says what is wrong, and the rollout goes\n"
    "on. `limits.command_s` bounds each call, `limits.output_bytes` what it shows: of more, the beginning\n"
    "and the end are kept, and a line in between says how many bytes were left out.\n";

static const char search[] =
    "\nHow a model calls them, and what it is told of a call that cannot be read, stands in\n"
    "[agents.md](agents.md).\n\n"
    "## What a command can do to its shell\n\n"
    "A command's output is shown whatever the command does to `/run/sluice/out`, to `umask` or to the descriptors of\n"
    "the shell, and variables such as `PWD`, aliases and functions are the command's own. Where bash itself no longer\n"
    "takes commands (`exit`, `set -r`, a function named `builtin`, `ulimit -n 5`), the result ends with a line that says\n"
    "so, and a new shell runs in the same directory at once; variables, functions and aliases are gone then. Background\n"
    "jobs that fill `/run/sluice/out` (64 MiB) silence later commands; the result says that too, and `restart` ends it.\n\n"
    "## Searching the web\n\n"
    "`search` asks from the worker, never from a sandbox, and is off unless the worker is told where:\n\n"
    "```sh\n"
    "sluice-worker run --search tavily=https://api.tavily.com --search-key /etc/sluice/tavily.key\n"
    "sluice-worker run --search searxng=http://10.0.0.7:8080\n"
    "```\n\n"
    "`sluice up` takes the same. The key is the first line of the file, or `SLUICE_SEARCH_KEY` in the\n"
    "environment; it is sent in one header and never written anywhere. A SearXNG server must allow the\n"
    "format json in its settings. A task that names `search` on a worker without one ends with outcome\n"
    "`infra`: another worker may have one, so the run is tried 8 times, which takes a minute. (A grant that a worker\n"
    "lacks ends as `task` at once: grants are to be the same on all workers of a stage.)\n";

static const char *const type_words[] = {"string", "integer", "true or false", "list of integers"};

/* In a table a '|' would end the cell. */
static void put_text(const char *text)
{
    for (; *text; text++)
        *text == '|' ? fputs("\\|", stdout) : putchar(*text);
}

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
    printf("\n## `%s`\n\n%s\n\n| argument | type | | limits | meaning |\n|---|---|---|---|---|\n",
           tool->name, tool->doc);
    for (const struct tool_argument *at = tool->arguments; at->name; at++) {
        printf("| `%s` | %s | %s | ", at->name, type_words[at->type],
               at->required ? "required" : "");
        put_limits(at);
        printf(" | ");
        put_text(at->doc);
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
