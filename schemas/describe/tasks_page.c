#include "schemas/describe/tasks_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "schemas/describe/answers_section.h"
#include "schemas/describe/cells.h"
#include "schemas/describe/solution_section.h"
#include "schemas/task/json/task_table.h"

static const char tasks_intro[] =
    "# Tasks\n\n"
    "A task is one JSON object: in a `.jsonl` file, one line each. This page is made from\n"
    "`schemas/task/task.def` by `sluice-describe tasks-md`; a test compares the two.\n\n"
    "The smallest task:\n\n"
    "```json\n{\"task\": \"sum\", \"prompt\": \"What is 1+1? Answer in \\\\boxed{}.\", \"eval\": {\"kind\": \"math\", "
    "\"answer\": \"2\"}}\n```\n\n"
    "A task with a shell, files, set-up and an evaluator:\n\n"
    "```json\n"
    "{\n"
    "  \"task\": \"fix-add\",\n"
    "  \"prompt\": \"add.py is broken. Make `python3 add.py 1 2` print 3.\",\n"
    "  \"files\": [\n"
    "    {\"path\": \"add.py\", \"text\": \"import sys\\nprint(sys.argv[1] + sys.argv[2])\\n\"},\n"
    "    {\"path\": \"/workspace/bin/check\", \"base64\": \"IyEvYmluL3NoCg==\", \"mode\": "
    "\"0755\"}\n"
    "  ],\n"
    "  \"setup\": [\"git init -q .\", \"git add .\"],\n"
    "  \"agent\": {\"kind\": \"bash\", \"max_turns\": 10},\n"
    "  \"sampling\": {\"temperature\": 1.0, \"max_tokens\": 512},\n"
    "  \"eval\": {\n"
    "    \"kind\": \"command\",\n"
    "    \"command\": \"python3 -I /eval/test.py\",\n"
    "    \"reward_file\": \"/tmp/reward\",\n"
    "    \"files\": {\"/eval/test.py\": \"import subprocess\\nout = subprocess.run(['python3', "
    "'add.py', '20', '22'], capture_output=True).stdout\\nwith open('/tmp/reward', 'w') as "
    "file:\\n    "
    "print(1 if out == b'42\\\\n' else 0, file=file)\\n\"}\n"
    "  },\n"
    "  \"limits\": {\"run_s\": 300, \"command_s\": 20},\n"
    "  \"samples\": 8,\n"
    "  \"metadata\": {\"source\": \"docs\"}\n"
    "}\n"
    "```\n\n"
    "A field that is not in the tables below is rejected, not ignored. A task is at most 1 MiB of "
    "JSON, with at most\n"
    "65,536 values and member names, and objects and lists within one another 64 levels deep.\n";

static const char tasks_notes[] =
    "\n## Files and set-up\n\n"
    "`init` writes `files` and runs `setup` once for a group. The resulting files are a layer, "
    "from which each of the\n"
    "group's rollouts starts. A command of `setup` that fails ends the group with outcome `task`. "
    "Files may be a list\n"
    "of objects, or one object of path and text:\n\n"
    "```json\n{\"task\": \"t\", \"prompt\": \"Read it.\", \"files\": {\"notes.txt\": "
    "\"hello\\n\"}}\n```\n\n"
    "Paths are absolute inside the sandbox or relative to `/workspace`. Text is written as UTF-8; "
    "bytes\n"
    "that are not go in as `base64`.\n\n"
    "The image `host` is read-only, except for `/workspace`, `/tmp`, `/var`, `/home`, `/root`, "
    "`/srv` and `/mnt`. A\n"
    "file, or a command of `setup`, that writes elsewhere ends the group with outcome `task` and "
    "\"Read-only file\n"
    "system\". `pip install` needs a virtual environment there, because Debian's Python refuses to "
    "install beside its\n"
    "own packages. An image of the task's own is writable everywhere ([images.md](images.md)), "
    "except on the tiers\n"
    "`apptainer` and `landlock`.\n\n"
    "## How long a run may take\n\n"
    "Choose `limits.run_s` well above the time of the longest answer: `sampling.max_tokens` "
    "divided by the tokens\n"
    "that one rollout gets each second from a *busy* engine, times the turns you expect, and the "
    "time of the tool\n"
    "calls. A worker sees an answer only when it is complete. A run whose time ends within its "
    "first model call, or\n"
    "within a call that took much longer than any before it (four times as long, and 1 s), is "
    "therefore blamed on the\n"
    "engine: outcome `infra`, and the run is tried up to 8 times (`--infra-budget`). A `run_s` "
    "that is too short thus\n"
    "costs eight runs and yields no reward. A run whose time ends between calls, or in a tool "
    "call, ends with outcome\n"
    "`agent` and is scored.\n\n"
    "For example, an engine samples 25 tokens a second for each of its 64 rollouts. With "
    "`max_tokens` 1024, one\n"
    "answer takes up to 41 s; ten turns with commands of 5 s take up to 460 s. The default of 600 "
    "s fits. With\n"
    "`max_tokens` 8192 one answer takes up to 330 s, and `run_s` should be at least 3600.\n\n"
    "## Scoring\n\n"
    "| `eval.kind` | reward |\n|---|---|\n"
    "| `command` | `eval.command` runs in a fresh sandbox that holds the image, the files of init "
    "and of the agent, and `eval.files`, which the agent never saw. Exit status 0 and a number in "
    "`eval.reward_file` are the reward; without one, the exit status decides "
    "([below](#reward-file-or-exit-status)). Anything else is a broken evaluator: outcome `task`, "
    "no reward. |\n"
    "| `swe` | 1.0 when the agent's changes to a repository, applied in a fresh sandbox, make its tests pass as "
    "SWE-bench "
    "asks for it, else 0.0 ([swe.md](tasks/swe.md)). |\n"
    "| `verifier` | What `eval.command`, or `/tests/test.sh`, leaves in `reward.json` or `reward.txt`, as Harbor's "
    "tasks do "
    "([verifier.md](tasks/verifier.md)). |\n"
    "| `math` | 1.0 when the answer in the agent's last words equals `eval.answer` as mathematics, else 0.0 "
    "([below](#math-choice-and-exact)). |\n"
    "| `choice` | 1.0 when the agent chose exactly the letter, or the set of letters, of `eval.answer`, else 0.0. |\n"
    "| `exact` | 1.0 when the answer is the text of `eval.answer`, but for what `eval.normalize` lets pass, else 0.0. "
    "|\n"
    "| `code` | The program in the last fenced block of the answer (or `eval.source`) runs on `eval.tests`, each in a "
    "process of its "
    "own: 1.0 when all pass, or the fraction ([below](#programs)). |\n"
    "| `judge` | What a model says of it: the mean of `eval.judge.criteria` by weight, or whether it says the same as "
    "`eval.judge.reference` ([judges.md](tasks/judges.md)). |\n"
    "| a handler's | What the handler returns ([handlers.md](handlers.md)). |\n"
    "| `none` | No evaluation: the trajectory is trainable and has no reward; the trainer scores "
    "it. |\n\n"
    "A field that belongs to another `eval.kind` or `agent.kind` is rejected if it is an "
    "instruction (`eval.command`,\n"
    "`eval.answer`, `agent.script`, `agent.form`, `agent.tool_role`); so an `eval.command` without "
    "`eval.kind` is\n"
    "reported. Budgets that a kind does not use (`agent.max_turns`, `agent.max_repeats`, "
    "`agent.on_repeat`,\n"
    "`agent.max_format_errors`, `sampling`) are accepted and change nothing.\n\n"
    "`command` does not score a run whose files are lost, because a limit killed its sandbox or "
    "because they cannot\n"
    "be packed: its outcome is `agent`, it has no reward and is not trainable. The other kinds "
    "need no files.\n\n"
    "### Reward file or exit status\n\n"
    "**Use `eval.reward_file`.** An exit status does not distinguish a script that found the agent "
    "wrong from one\n"
    "that broke: both exit with 1. A script that writes its number last, after its verdict, writes "
    "none if it breaks,\n"
    "and then there is no reward. In bash: `[[ $(<answer.txt) == hello ]]; echo $(($? == 0)) > "
    "/tmp/reward`. That\n"
    "maps every status but 0 to reward 0, so after a program other than bash itself, list the "
    "statuses that mean it:\n"
    "`cmp -s a b; case $? in 0) echo 1;; [12]) echo 0;; esac > /tmp/reward`. (An empty file is a "
    "broken evaluator,\n"
    "too.)\n\n"
    "Without a reward file, exit status 0 is 1.0 and the other statuses of `eval.verdict_statuses` "
    "(default 1) are\n"
    "0.0. `grep` and `cmp` exit with 2 if a file is missing, and `pytest` if tests cannot be "
    "imported: where the\n"
    "agent is to blame for that, set `\"verdict_statuses\": [0, 1, 2]`. Any other end is a broken "
    "evaluator, which the\n"
    "detail names:\n\n"
    "| end | what it is |\n|---|---|\n"
    "| a status that `verdict_statuses` does not name; a signal, a timeout, a limit | broken |\n"
    "| 126, 127, 128 + n | broken: a program that cannot be executed, a command that was not "
    "found, signal n in what it ran |\n"
    "| 2, and bash's `syntax error` on standard error | broken |\n"
    "| `python3: No module named ...` as the last line of standard error | broken |\n"
    "| a traceback of Python on standard error, the last one | broken, whatever follows it but "
    "`FAILED (` of unittest, where all its frames are of `eval.files`, of the system (`/usr`, "
    "`/lib`, `/bin`, `/sbin`, `/opt`) or of no file; 0.0 where one is of another file, since that "
    "may be the agent's code that failed, and where the exception is `AssertionError`, as a bare "
    "`assert` gives it |\n\n"
    "So if the agent removes what the grader imports, or its code writes a traceback to the "
    "grader's standard error,\n"
    "the evaluator counts as broken and there is no reward.\n\n"
    "**Agent code that the grader runs** has the same user in the same sandbox. It can read "
    "`/eval`, write the reward\n"
    "file (at any time while it lives), kill the grader or keep it waiting: then the reward is "
    "wrong, or there is\n"
    "none. The example above assumes agents that are not hostile;\n"
    "[sandbox.md](sandbox.md#what-an-evaluator-can-trust) describes the defences against one that "
    "is.\n\n"
    "## Shaping\n\n"
    "`shaping` changes the evaluator's reward by the rollout's length, as DAPO does (arXiv 2503.14476). "
    "The trajectory has\n"
    "both numbers: `reward` is shaped, `raw_reward` is the evaluator's. Without a reward there is none "
    "afterwards either.\n"
    "The length is the number of tokens that the policy sampled, in all turns and traces; tools' output "
    "does not count.\n\n"
    "* **Overlong penalty** (soft punishment): nothing up to `max_tokens - buffer_tokens`; from there it "
    "grows by a straight\n"
    "  line, to all of `penalty` at `max_tokens` and beyond. DAPO's own: `{\"max_tokens\": 20480, "
    "\"buffer_tokens\": 4096}`.\n"
    "* **Overlong filtering**: with `\"truncated\": \"filter\"` a rollout that a limit on tokens cut off "
    "([trajectory.md](trajectory.md#how-the-agent-ended))\n"
    "  has `trainable` false. It keeps its reward, which still counts for the others of its group.\n\n"
    "`max_tokens` and the limits that cut a rollout off (`sampling.max_tokens`, "
    "`limits.sampled_tokens`) are independent: give\n"
    "the same number to both where the penalty is to be whole when the rollout is cut.\n\n"
    "### Programs\n\n"
    "`code` runs Python 3 of the image. A test may take `eval.test_s` seconds of CPU time and write 16 MiB; all that "
    "it started is "
    "killed\n"
    "at its end. A program that goes over a limit of the sandbox (`limits.memory_mib`, `limits.processes`), or uses up "
    "`limits.eval_s`,\n"
    "the time of all tests, has failed, and so have the tests after that one. Each test is in the trajectory's "
    "`tests`, with "
    "the reason of a\nfailure.\n\n"
    "With `inputs` and `outputs` the outputs never enter the sandbox: a program cannot know what is expected. Numbers "
    "are compared\n"
    "as decimals, not as floating point; a tuple is a list, a set a sorted list, and an output that stands alone in a "
    "list may be "
    "given\n"
    "without it. In `outputs` a text is a JSON value where it can be read as one; whole numbers beyond 64 bits are "
    "written as "
    "texts.\n\n"
    "Of what the agent left, the program of `eval.source` alone is where its tests run: no module, data file or "
    "setting "
    "beside it.\n\n"
    "**`asserts` run where the program runs.** It can read them, give back an object that equals everything, or say "
    "that they "
    "passed.\n"
    "Use them where the agent is not trained to find that out, and `inputs` and `outputs` otherwise.\n\n"
    "## Samples\n\n"
    "A submit makes one group of n rollouts, named `<group>/0` to `<group>/<n-1>`. `samples` is n "
    "where the submit\n"
    "sets none. With a `sampling.seed`, sample k is sampled with seed + k.\n\n"
    "## When a task is refused\n\n"
    "`sluice submit` checks every line before it submits anything and prints `FILE:LINE: FIELD: "
    "REASON`. The broker\n"
    "checks again: its refusal has the reason `bad-task` ([messages.md](contributing/messages.md#refusals)), a "
    "`field` that is\n"
    "`task.` and the path below, and a sentence about the error. The Python client checks every task, too, "
    "before it submits\n"
    "any: `BadTask` names each that is none by its index, `tasks[2]: FIELD: REASON`.\n\n"
    "| task | path | sentence |\n|---|---|---|\n";

static const char *const refused_tasks[] = {
    "{\"task\": \"t\"}",
    "{\"task\": \"t\", \"prompt\": \"p\", \"agent\": {\"toolz\": []}}",
    "{\"task\": \"t\", \"prompt\": \"p\", \"limits\": {\"run_s\": \"9\"}}",
    "{\"task\": \"t\", \"prompt\": \"p\", \"samples\": 0}",
    "{\"task\": \"t\", \"prompt\": \"p\", \"image\": \"debian:12\"}",
    "{\"task\": \"t\", \"prompt\": \"p\", \"files\": [{\"path\": \"../x\", \"text\": \"\"}]}",
};

/* As the parser refuses them. */
static bool put_refused_tasks(void)
{
    for (size_t i = 0; i < sizeof(refused_tasks) / sizeof(refused_tasks[0]); i++) {
        struct refusal no = {0};
        struct task *task = task_parse(slice_from_str(refused_tasks[i]), &no);
        if (task) {
            task_destroy(task);
            return false;
        }
        printf("| `%s` | `%s` | %s |\n", refused_tasks[i], no.field, no.text);
    }
    return true;
}

static const char *task_type_words(enum task_type type)
{
    static const char *const words[TASK_TYPE_COUNT] = {
        [TASK_OBJECT] = "object",
        [TASK_NAME] = "name",
        [TASK_TEXT] = "string",
        [TASK_PATH] = "path",
        [TASK_PLACE] = "path",
        [TASK_IMAGE] = "string",
        [TASK_DIRECTORY] = "path",
        [TASK_USER] = "string",
        [TASK_VARIABLES] = "object",
        [TASK_WORD] = "word",
        [TASK_OPEN_WORD] = "word or name",
        [TASK_HANDLER_NAME] = "string",
        [TASK_HANDLERS] = "list",
        [TASK_TESTS] = "object",
        [TASK_UINT] = "integer",
        [TASK_INT] = "integer",
        [TASK_REAL] = "number",
        [TASK_PROMPT] = "string",
        [TASK_MESSAGES] = "list",
        [TASK_FILES] = "list",
        [TASK_EVAL_FILES] = "list",
        [TASK_SOLUTION_FILES] = "list",
        [TASK_SOLUTION_COMMANDS] = "list of strings",
        [TASK_FILE_TEXT] = "string",
        [TASK_FILE_BASE64] = "string",
        [TASK_SOURCE] = "path",
        [TASK_FILE_SOURCE] = "path",
        [TASK_FILE_MODE] = "string",
        [TASK_SETUP] = "list of strings",
        [TASK_STEPS] = "list",
        [TASK_FILE_LIST] = "list",
        [TASK_COMMANDS] = "list of strings",
        [TASK_REWARDS] = "number or object",
        [TASK_JUDGE_FILES] = "list of paths",
        [TASK_CRITERIA] = "list",
        [TASK_CHOICES] = "list of strings",
        [TASK_TOOLS] = "list of strings",
        [TASK_TRAIN] = "list of strings",
        [TASK_SCRIPT] = "list",
        [TASK_RECORDED] = "list",
        [TASK_ARGUMENTS] = "object",
        [TASK_GRANTS] = "list of strings",
        [TASK_INIT_GRANTS] = "list of strings",
        [TASK_BUILD_GRANTS] = "list of strings",
        [TASK_EVAL_GRANTS] = "list of strings",
        [TASK_STATUSES] = "list of integers",
        [TASK_ANSWERS] = "list of strings",
        [TASK_OPTIONS] = "object",
        [TASK_FAIL_TO_PASS] = "list of strings",
        [TASK_PASS_TO_PASS] = "list of strings",
        [TASK_PROTECTED] = "list of strings",
        [TASK_EXPECTED_TESTS] = "object",
        [TASK_HIDDEN] = "list of strings",
        [TASK_ARTIFACTS] = "list",
        [TASK_EXCLUDE] = "list of strings",
        [TASK_COLLECT] = "list",
        [TASK_METADATA] = "object",
    };
    return words[type];
}

static const char *task_unit(const struct task_row *row)
{
    switch (row->type) {
    case TASK_UINT:
    case TASK_INT:
    case TASK_REAL: return "";
    case TASK_MESSAGES:
    case TASK_FILES:
    case TASK_EVAL_FILES:
    case TASK_SOLUTION_FILES:
    case TASK_SOLUTION_COMMANDS:
    case TASK_SETUP:
    case TASK_STEPS:
    case TASK_FILE_LIST:
    case TASK_COMMANDS:
    case TASK_REWARDS:
    case TASK_SCRIPT:
    case TASK_RECORDED:
    case TASK_GRANTS:
    case TASK_INIT_GRANTS:
    case TASK_BUILD_GRANTS:
    case TASK_EVAL_GRANTS:
    case TASK_VARIABLES:
    case TASK_STATUSES:
    case TASK_ANSWERS:
    case TASK_OPTIONS:
    case TASK_FAIL_TO_PASS:
    case TASK_PASS_TO_PASS:
    case TASK_PROTECTED:
    case TASK_EXPECTED_TESTS:
    case TASK_HIDDEN:
    case TASK_ARTIFACTS:
    case TASK_EXCLUDE:
    case TASK_COLLECT:
    case TASK_HANDLERS:
    case TASK_TESTS:
    case TASK_JUDGE_FILES:
    case TASK_CRITERIA:
    case TASK_CHOICES:
    case TASK_TOOLS: return " elements";
    default: return " bytes";
    }
}

/* "a|b" as `a`, `b`: a bar would end the table's cell. */
static void put_words(const char *words)
{
    printf(" `");
    for (; *words; words++)
        *words == '|' ? fputs("`, `", stdout) : putchar(*words);
    printf("` ");
}

static void put_limits(const struct task_row *row)
{
    if (row->words)
        put_words(row->words);
    else if (row->max > 0)
        printf(" %.15g to %.15g%s ", row->min, row->max, task_unit(row));
    else
        printf(" ");
}

static void put_task_row(const struct task_row *row)
{
    printf("| `%s` | %s | ", row->path, task_type_words(row->type));
    if (row->required)
        printf("required");
    else if (row->default_value)
        printf("`%s`", row->default_value);
    printf(" |");
    put_limits(row);
    put_last_cell(row->doc);
}

static void put_section(const char *title, const char *parent)
{
    printf("\n## %s\n\n| field | type | default | limits | meaning |\n|---|---|---|---|---|\n", title);
    for (size_t i = 0; i < task_row_count; i++)
        if (task_row_is_in(&task_rows[i], parent))
            put_task_row(&task_rows[i]);
}

bool describe_tasks_md(void)
{
    fputs(tasks_intro, stdout);
    put_section("The task", "");
    put_section("A message of `messages`", "messages[]");
    put_section("A file of `files`, `eval.files`, `solution.files` and those of steps", "files[]");
    put_section("A step of `steps`", "steps[]");
    for (size_t i = 0; i < task_row_count; i++)
        if (task_rows[i].type == TASK_OBJECT) {
            char title[64];
            snprintf(title, sizeof(title), "`%s`", task_rows[i].path);
            put_section(title, task_rows[i].path);
        }
    put_section("A call of `agent.script`", "agent.script[]");
    put_section("A message of `agent.recorded`", "agent.recorded[]");
    put_section("An element of `eval.artifacts`", "eval.artifacts[]");
    put_section("A command of `eval.collect`", "eval.collect[]");
    put_section("A criterion of `eval.judge.criteria`", "eval.judge.criteria[]");
    fputs(solution_section, stdout);
    fputs(answers_section, stdout);
    fputs(tasks_notes, stdout);
    return put_refused_tasks();
}
