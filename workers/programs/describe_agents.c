/* sluice-describe-agents - writes docs/agents.md: the tables of agents, forms and ends, and what the
 * code itself says to a model. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/ends.h"
#include "workers/agents/formats/models.h"
#include "workers/agents/formats/tool_format.h"
#include "workers/agents/kinds/agents.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"

static const char intro[] = "# Agents\n\n"
                            "An agent drives the model through a task: `agent.kind` of "
                            "[tasks.md](tasks.md). `sluice-describe-agents` makes\n"
                            "this page from the tables in `workers/agents/`, and prints each "
                            "example of what a model sees by the code that\n"
                            "sends it; a test compares the two.\n\n"
                            "| agent | |\n|---|---|\n";

static const char tools_intro[] =
    "\n## `tools`: function calls\n\n"
    "The agent shows the tools of `agent.tools` ([tools.md](tools.md)) at the end of the system "
    "message and reads the\n"
    "calls from the model's text. A turn may hold up to 16 calls, which run one after the other; "
    "their results form\n"
    "the next turn. The rollout ends with a call of `submit`, or with a reply without calls, which "
    "is the answer.\n\n"
    "Each model is trained on one form of calls. `agent.form` names it; `auto`, the default, "
    "selects the first row of\n"
    "the second table that is part of the model's name as the engine reports it, else `hermes`. A "
    "part begins and\n"
    "ends where a word or a number does; `_` counts as `-`.\n\n"
    "| form | |\n|---|---|\n";

static const char roles_intro[] = "\n### In whose turns results are told\n\n"
                                  "A chat template may have turns of the role `tool`. If the "
                                  "engine's template has them, and renders them the way\n"
                                  "the form's models expect (with the mark of this table), each "
                                  "result is a turn of that role, without any text of\n"
                                  "the form's own. Otherwise all results of a reply are one user "
                                  "turn, as in the examples above. The template\n"
                                  "counts as having such turns if bridges over them are exact, "
                                  "over several in a row too ([tokens.md](tokens.md)).\n\n"
                                  "| form | mark |\n|---|---|\n";

static const char roles_rest[] = "\n* Qwen's templates render results in a user turn, within "
                                 "`<tool_response>`: the text is the same either way.\n"
                                 "  Qwen 3's template drops reasoning before the last user "
                                 "message; tool turns are not user messages, so a\n"
                                 "  reasoning rollout stays one trace. On vLLM and SGLang no text "
                                 "of ours becomes the mark's special token; only\n"
                                 "  the template writes that token.\n"
                                 "* `agent.tool_role` `user` forces user turns. `tool` forces tool "
                                 "turns: if the template lacks the mark, the\n"
                                 "  form's own words enclose each result; if it has no bridge for "
                                 "such turns, a new trace starts after each; if it\n"
                                 "  refuses them, the outcome is `task`.\n"
                                 "* The agent's own messages, such as the report of a reply that "
                                 "cannot be parsed, always have the role `user`.\n"
                                 "* The turn's `role` in the trajectory records the choice. "
                                 "Messages of calls have the role `tool` either way.\n";

static const char reading[] =
    "\n### What is read, and what is not\n\n"
    "* Text around the calls, a code fence around JSON, blanks and line ends between tags do not "
    "matter.\n"
    "* Text within `<think>` is never a call. A block opens at the start of a line; if the prompt "
    "opened it, the\n"
    "  reply's first `</think>` at the end of a line closes it. A reply that ends within a block "
    "is reported to the\n"
    "  model.\n"
    "* In `qwen-coder` and `openhands` the tool's schema determines a value's type: `7` is a "
    "number where the schema\n"
    "  wants one, else a string. A string is kept byte for byte, except for the line ends that "
    "belong to the tags: in\n"
    "  `qwen-coder` one after the start tag and one before the end tag, in `openhands` both or "
    "none. There are no\n"
    "  escapes: `</parameter>` ends a value wherever it stands.\n"
    "* In `openhands` parsing stops at the first `</function>`; text behind it is recorded in the "
    "trajectory and\n"
    "  otherwise ignored. For a second call the model is told that one call is made at a time.\n"
    "* An end tag may be missing if the model ended its turn itself. If the turn was cut off at\n"
    "  `sampling.max_tokens`, such a call is not made.\n"
    "* Malformed calls are never repaired: trailing commas, single quotes, unclosed tags and calls "
    "in another form\n"
    "  are rejected. The model is told the place, what is expected there, and an example; no call "
    "of that reply is\n"
    "  made.\n"
    "* The result of a call to an unknown tool, or with missing, unknown or invalid arguments, "
    "reports the error; the\n"
    "  turn's other calls are made.\n\n"
    "The answer to a reply that cannot be parsed, in each form:\n";

static const char ends_intro[] = "\n## What ends a rollout\n\n"
                                 "A rollout that its agent ended has outcome `ok`. Otherwise "
                                 "`detail` of its trajectory starts with a word of this\n"
                                 "table. Outcome `agent` is the model's responsibility: the "
                                 "trajectory is trainable, and its files are scored if\n"
                                 "they are known.\n\n"
                                 "| detail | outcome | agents | meaning |\n|---|---|---|---|\n";

static const char ends_rest[] =
    "| `time` | `agent` | all | `limits.run_s` is used up, but not within a model call that took "
    "much longer than any before it, which is the engine's fault, `infra` "
    "([tasks.md](tasks.md#how-long-a-run-may-take)). |\n"
    "| `context` | `agent` | bash, tools, chat | The prompt fills the context (the engine's, or "
    "`limits.context_tokens`), or leaves no space for a reply; outcome `task` if the task's own "
    "messages do. |\n"
    "| the name of a limit, as `memory` | `agent` | bash, tools, replay, oracle | The sandbox exceeded the "
    "limit and was killed, and its files are lost: if `eval.command` needs them there is no "
    "reward, and the trajectory is not trainable. |\n"
    "| `the files cannot be packed` | `agent` | all with a sandbox | The files exceed what a layer "
    "holds ([layers.md](contributing/layers.md)): likewise. |\n"
    "| `cancelled` | `cancelled` | all | The rollout was cancelled. |\n"
    "| anything else | `infra`, `task` | all | The engine, the node or the task's image failed: "
    "[faults.md](contributing/faults.md). |\n";

static const char bash_intro[] =
    "\n## `bash`: one command block a turn\n\n"
    "The form of mini-swe-agent. Each reply holds exactly one block; its command is run, and the "
    "exit status and\n"
    "output are the next turn. If the task has no system message of its own, it is:\n";

static const char bash_rest[] =
    "\nA reply, and what follows:\n"
    "\n````text\nI look at what is there.\n\n```bash\nls\n```\n````\n"
    "\n````text\n<returncode>0</returncode>\n<output>\nadd.py\n</output>\n````\n\n"
    "* A block starts at a line `` ```bash ``, `` ```sh `` or `` ```mswea_bash_command `` and ends "
    "at a line\n"
    "  `` ``` ``. Other fences are text, and blocks within `<think>` are ignored.\n"
    "* A reply with no block, or several, is a format error: nothing is run, and the model is "
    "shown the expected\n"
    "  form, with an example.\n"
    "* The rollout ends when a command exits with 0 and the first line of its output is\n"
    "  `COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`; the text after that line is the answer, or the "
    "reply if there is\n"
    "  none. A reply that has the line `TASK_DONE` outside of its block ends the rollout too.\n"
    "* A command that exceeds `limits.command_s` is stopped; a line `<exception>...</exception>` "
    "before the others\n"
    "  reports it. The middle of output beyond `limits.output_bytes` is left out. Unlike in "
    "mini-swe-agent the shell\n"
    "  keeps its directory and its variables.\n";

static const char replay[] =
    "\n## `replay`: calls without a model\n\n"
    "The agent makes the calls of `agent.script` one after the other, up to a call of `submit`. It "
    "needs no engine;\n"
    "its trajectory has messages and no tokens.\n\n"
    "```json\n"
    "{\"task\": \"look\", \"agent\": {\"kind\": \"replay\", \"script\": [\n"
    "  {\"tool\": \"bash\", \"arguments\": {\"command\": \"uname -s\"}, \"result\": \"Linux\\n\", "
    "\"status\": 0},\n"
    "  {\"tool\": \"submit\", \"arguments\": {\"answer\": \"done\"}}]}}\n"
    "```\n\n"
    "`result` and `status` are the recorded result and exit status of the call; both are optional. "
    "If the call's\n"
    "result differs now, the next message names the line, and `detail` begins with `differs:`, the "
    "number of\n"
    "differing calls and the first of them; the outcome is still `ok`.\n\n"
    "To replay a rollout in a fresh sandbox, pass the `messages` of its trajectory unchanged as "
    "`agent.recorded`;\n"
    "those with a `tool` are the calls:\n\n"
    "```sh\n"
    "sluice show ROLLOUT --json | jq -c '{task: \"again\", agent: {recorded: .messages}}' "
    ">again.jsonl\n"
    "```\n\n"
    "Add the task's `image`, `files` and `setup`, if it has them.\n";

static const char oracle[] =
    "\n## `oracle` and `none`: is the task sound?\n\n"
    "`oracle` does what the task's `solution` says ([tasks.md](tasks.md#solutions)), `none` does nothing. Neither "
    "needs an\n"
    "engine. A sound task gives the first its full reward and the second less.\n";

static const char limits[] =
    "\n## Limits\n\n"
    "| field | bounds |\n|---|---|\n"
    "| `agent.max_turns` | model turns |\n"
    "| `sampling.max_tokens` | tokens sampled in a turn |\n"
    "| `limits.sampled_tokens` | tokens sampled in all turns together |\n"
    "| `limits.context_tokens` | prompt and sampled tokens together, where the engine's own limit "
    "is higher |\n"
    "| `limits.run_s` | seconds of the rollout, model calls and tool calls together |\n"
    "| `limits.command_s` | seconds of one tool call |\n"
    "| `agent.max_format_errors` | consecutive replies that fail to parse or to name a valid call "
    "|\n"
    "| `agent.max_repeats` | consecutive repeats of a call, or of a cycle of two to four calls, "
    "with the same results; off by default. `agent.on_repeat` selects whether one more ends the "
    "rollout or the model is told once to do something else |\n";

static void need(bool good)
{
    if (!good)
        exit(1);
}

/* A block of text, between fences that it does not hold. */
static void put_block(const struct buffer *text) { printf("\n````text\n%.*s\n````\n", SLICE_ARG(buffer_peek(text))); }

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
    printf("\n### `%s`\n\n%s. The system message ends with, where the tools are `think` and "
           "`submit`:\n",
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
        printf(format->tool_mark ? "| `%s` | `%s` |\n" : "| `%s` | none |\n", format->name, format->tool_mark);
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
    fputs(oracle, stdout);
    fputs(limits, stdout);
    fputs(ends_intro, stdout);
    for (size_t i = 0; i < END_COUNT; i++)
        printf("| `%s` | `%s` | %s | %s |\n", end_rows[i].word, outcome_wire(end_rows[i].outcome), end_rows[i].agents,
               end_rows[i].doc);
    fputs(ends_rest, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
