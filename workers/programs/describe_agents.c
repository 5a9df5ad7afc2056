/* sluice-describe-agents - writes docs/agents.md: the tables of agents, forms and ends, and what the
 * code itself says to a model. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/formats/tool_format.h"

static const char intro[] =
    "# Agents\n\n"
    "Who drives the model over a task: `agent.kind` of [tasks.md](tasks.md). This page is made from the\n"
    "tables in `workers/agents/` by `sluice-describe-agents`, and every example of what a model sees is\n"
    "printed by the code that says it; a test compares the two.\n\n"
    "| agent | |\n|---|---|\n";

static const char tools_intro[] =
    "\n## `tools`: function calls\n\n"
    "The agent shows the tools of `agent.tools` ([tools.md](tools.md)) at the end of the system message\n"
    "and reads the calls from the model's text. A turn may hold several (at most 16), made one after the\n"
    "other; their results come next. The rollout ends with a call of `submit`, or with a reply\n"
    "without calls, which is the answer.\n\n"
    "Models are trained on one form of calls each. `agent.form` names it; `auto`, which is the default,\n"
    "takes the first row of the second table that is part of the model's name as the engine tells it,\n"
    "and `hermes` where none is. A part begins and ends where a word or a number does; `_` counts as `-`.\n\n"
    "| form | |\n|---|---|\n";

static const char roles_intro[] =
    "\n### In whose turns results are told\n\n"
    "A chat template may have turns of the role `tool`. Where the engine's has, and writes around them what\n"
    "the models of the form know (the mark of this table), each result is a turn of that role, without\n"
    "anything of the form's own; else all results of a reply are one turn of the user's, as the examples\n"
    "above have it. The template has such turns if bridges over them are exact, over several in a row too\n"
    "([tokens.md](tokens.md)).\n\n"
    "| form | mark |\n|---|---|\n";

static const char roles_rest[] =
    "\n* The templates of Qwen write results into a user's turn, within `<tool_response>`: the same text either\n"
    "  way. But Qwen 3's leaves out what was thought before the user's last words, and results told as the\n"
    "  tool's are none: a rollout that thinks stays one trace. And on vLLM and SGLang, where no text of ours\n"
    "  becomes a token of the mark's name, only the template writes that token.\n"
    "* `agent.tool_role` `user` keeps to the user's turns. `tool` insists on the other: where the template lacks\n"
    "  the mark each result has the form's own words around it, where it has no bridge for such turns a new\n"
    "  trace starts after each, and where it refuses them the outcome is `task`.\n"
    "* What the agent itself says, that a reply cannot be read for instance, is the user's always.\n"
    "* In the trajectory the turn's `role` says which it was. Messages of calls have the role `tool` either way.\n";

static const char reading[] =
    "\n### What is read, and what is not\n\n"
    "* Text around the calls, a code fence around JSON, blanks and line ends between tags do not matter.\n"
    "* What stands within `<think>` is no call. A block opens at the start of a line; where the prompt\n"
    "  opened it, the reply's first `</think>` at the end of a line closes it. A reply that ends within\n"
    "  one is told so.\n"
    "* In `qwen-coder` and `openhands` a value's type is what the tool's schema says: `7` is a number where\n"
    "  the schema wants one and a string where it does not. A string is kept byte for byte, but for the\n"
    "  line ends that belong to the tags: in `qwen-coder` one behind the start tag and one before the end\n"
    "  tag, in `openhands` both or none. There are no escapes: `</parameter>` ends a value wherever it\n"
    "  stands.\n"
    "* In `openhands` reading stops at the first `</function>`; what a model makes up behind it is in the\n"
    "  trajectory and nothing more. In a second call's place it is told that one is made at a time.\n"
    "* An end tag may be missing where the model ended its turn itself. Where the turn was cut off at\n"
    "  `sampling.max_tokens` such a call is not made.\n"
    "* Nothing is guessed: JSON with a trailing comma or single quotes, a tag that is not closed, a call in\n"
    "  another form are not made. The model is told the place, what is expected there, and an example,\n"
    "  and no call of that reply is made.\n"
    "* A call of an unknown tool, or with missing, unknown or unfit arguments, is answered in its result;\n"
    "  the others of the turn are made.\n\n"
    "So a reply that cannot be read is answered, here in each form:\n";

static const char ends_intro[] =
    "\n## What ends a rollout\n\n"
    "A rollout whose agent ended it has outcome `ok`. Otherwise `detail` of its trajectory starts with a\n"
    "word of this table. Outcome `agent` is the model's own doing: the trajectory is trainable, and what it\n"
    "left is scored, where that is known.\n\n"
    "| detail | outcome | agents | meaning |\n|---|---|---|---|\n";

static const char ends_rest[] =
    "| `time` | `agent` | all | `limits.run_s` is used up, and not within a model call that took much longer than any before it: that is the engine's fault, `infra` ([tasks.md](tasks.md#how-long-a-run-may-take)). |\n"
    "| `context` | `agent` | bash, tools, chat | The prompt fills the context (the engine's, or `limits.context_tokens`), or leaves no room in it; outcome `task` where the task's own messages do. |\n"
    "| the name of a limit, as `memory` | `agent` | bash, tools, replay | The sandbox used more than its limit and was ended, with its files: where `eval.command` would look at them there is no reward, and the trajectory is not trainable. |\n"
    "| `the files cannot be packed` | `agent` | all with a sandbox | They are beyond what a layer holds ([layers.md](layers.md)): likewise. |\n"
    "| `cancelled` | `cancelled` | all | As it says. |\n"
    "| anything else | `infra`, `task` | all | The engine, the node or the task's image failed: [faults.md](faults.md). |\n";

static const char bash_intro[] =
    "\n## `bash`: one command block a turn\n\n"
    "The form of mini-swe-agent. Each reply holds exactly one block; the command in it is run, and its exit\n"
    "status and output are the next turn. Where the task has no system message of its own, it is:\n";

static const char bash_rest[] =
    "\nA reply, and what follows:\n"
    "\n````text\nI look at what is there.\n\n```bash\nls\n```\n````\n"
    "\n````text\n<returncode>0</returncode>\n<output>\nadd.py\n</output>\n````\n\n"
    "* A block starts at a line `` ```bash ``, `` ```sh `` or `` ```mswea_bash_command `` and ends at a line\n"
    "  `` ``` ``. Other fences are text, and what stands within `<think>` does not count.\n"
    "* A reply with no block, or several, is a format error: nothing is run, and the model is told what was\n"
    "  expected, with an example.\n"
    "* The rollout ends when a command exits with 0 and the first line of its output is\n"
    "  `COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`; what follows that line is the answer, and the reply where\n"
    "  nothing does. It ends, too, with a reply that has the line `TASK_DONE` outside of its block.\n"
    "* A command that took longer than `limits.command_s` is stopped, which a line\n"
    "  `<exception>...</exception>` before the others says. Of more output than `limits.output_bytes` the\n"
    "  middle is left out. Unlike in mini-swe-agent the shell keeps its directory and its variables.\n";

static const char replay[] =
    "\n## `replay`: calls without a model\n\n"
    "The agent makes the calls of `agent.script`, one after the other, up to one of `submit`. It\n"
    "needs no engine; its trajectory has messages and no tokens.\n\n"
    "```json\n"
    "{\"task\": \"look\", \"agent\": {\"kind\": \"replay\", \"script\": [\n"
    "  {\"tool\": \"bash\", \"arguments\": {\"command\": \"uname -s\"}, \"result\": \"Linux\\n\", \"status\": 0},\n"
    "  {\"tool\": \"submit\", \"arguments\": {\"answer\": \"done\"}}]}}\n"
    "```\n\n"
    "`result` and `status` are what the call gave when it was recorded, and need not be there. Where the call\n"
    "gives something else now, the message behind it says in which line, and `detail` begins with `differs:`\n"
    "and says how many differ and which is the first; the outcome is `ok` all the same.\n\n"
    "A rollout is run again by its own calls, in a fresh sandbox: `agent.recorded` takes the `messages` of a\n"
    "trajectory as they are, of which those with a `tool` are the calls:\n\n"
    "```sh\n"
    "sluice show ROLLOUT --json | jq -c '{task: \"again\", agent: {recorded: .messages}}' >again.jsonl\n"
    "```\n\n"
    "Give it the task's `image`, `files` and `setup` too, where it has them.\n";

static const char limits[] =
    "\n## Limits\n\n"
    "| field | bounds |\n|---|---|\n"
    "| `agent.max_turns` | how often the model may speak |\n"
    "| `sampling.max_tokens` | tokens sampled in a turn |\n"
    "| `limits.sampled_tokens` | tokens sampled in all turns together |\n"
    "| `limits.context_tokens` | prompt and sampled tokens together, where the engine's own limit is higher |\n"
    "| `limits.run_s` | seconds of the rollout, model calls and tool calls together |\n"
    "| `limits.command_s` | seconds of one tool call |\n"
    "| `agent.max_format_errors` | replies in a row that cannot be acted on |\n"
    "| `agent.max_repeats` | repeats in a row of a call, or of two to four calls in turn, that give the same results; off unless it is given. `agent.on_repeat` says whether one more ends the rollout or the model is told once to do something else |\n";

static void need(bool good)
{
    if (!good)
        exit(1);
}

/* A block of text, between fences that it does not hold. */
static void put_block(const struct buffer *text)
{
    printf("\n````text\n%.*s\n````\n", SLICE_ARG(buffer_peek(text)));
}

static struct toolbox small_box(void)
{
    return (struct toolbox){.tools = {tool_find("think"), tool_find("submit")}, .count = 2};
}

static void put_form(const struct tool_format *format)
{
    const struct toolbox box = small_box();
    AUTO_BUFFER prompt = {0}, call = {0}, result = {0};
    char noted[] = "Noted.";
    need(format->describe(&box, &prompt) && tool_format_example(format, box.tools[0], &call));
    format->tell("think", &(struct tool_result){.text = noted, .len = strlen(noted)}, &result);
    printf("\n### `%s`\n\n%s. The system message ends with, where the tools are `think` and `submit`:\n",
           format->name, format->doc);
    put_block(&prompt);
    printf("\nA call, and its result in a user's turn:\n");
    put_block(&call);
    put_block(&result);
}

static void put_wrong(const struct tool_format *format)
{
    static const struct {
        const char *format, *text;
    } replies[] = {
        {"hermes", "<tool_call>\n{\"name\": \"think\", \"arguments\": {\"thought\": \"so\",}}\n</tool_call>"},
        {"qwen-coder", "<tool_call>\n<function=think>\n<parameter=thought>\nso\n</function>\n</tool_call>"},
        {"llama", "{'name': 'think', \"parameters\": {'thought': 'so'}}"},
        {"openhands", "<function=think>so</function>"},
    };
    const struct toolbox box = small_box();
    for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
        struct tool_reply reply;
        if (strcmp(replies[i].format, format->name) != 0)
            continue;
        tool_format_read(format, &box, replies[i].text, &reply);
        printf("\n````text\n%s\n````\n\n````text\n%s\n````\n", replies[i].text, reply.wrong);
        tool_reply_finish(&reply);
    }
}

static void put_tools(void)
{
    const struct tool_format *format;
    const char *part;
    fputs(tools_intro, stdout);
    for (size_t i = 0; (format = tool_format_at(i)); i++)
        printf("| `%s` | %s |\n", format->name, format->doc);
    printf("\n| part of the model's name | form |\n|---|---|\n");
    for (size_t i = 0; (format = tool_format_of_row(i, &part)); i++)
        printf("| `%s` | `%s` |\n", part, format->name);
    for (size_t i = 0; (format = tool_format_at(i)); i++)
        put_form(format);
    fputs(roles_intro, stdout);
    for (size_t i = 0; (format = tool_format_at(i)); i++)
        printf(format->tool_mark ? "| `%s` | `%s` |\n" : "| `%s` | none |\n", format->name,
               format->tool_mark);
    fputs(roles_rest, stdout);
    fputs(reading, stdout);
    for (size_t i = 0; (format = tool_format_at(i)); i++)
        put_wrong(format);
}

int main(void)
{
    fputs(intro, stdout);
    for (size_t i = 0; agent_at(i); i++)
        printf("| `%s` | %s |\n", agent_at(i)->name, agent_at(i)->doc);
    fputs(bash_intro, stdout);
    printf("\n````text\n%s\n````\n", agent_find("bash")->prompt);
    fputs(bash_rest, stdout);
    put_tools();
    fputs(replay, stdout);
    fputs(limits, stdout);
    fputs(ends_intro, stdout);
    for (size_t i = 0; i < END_COUNT; i++)
        printf("| `%s` | `%s` | %s | %s |\n", end_rows[i].word, outcome_wire(end_rows[i].outcome),
               end_rows[i].agents, end_rows[i].doc);
    fputs(ends_rest, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
