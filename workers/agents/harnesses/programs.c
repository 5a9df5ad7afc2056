#include "workers/agents/harnesses/programs.h"

#include <stdio.h>

#include "workers/inside/inside.h"

/*
 * Any model's name and any key will do: the listener is this rollout's alone. No proxy of the image's can be reached,
 * and the model is no further than the loopback.
 */
static const char variables[] =
    "model=\"http://$SLUICE_GRANT_MODEL\"\n"
    "export SLUICE_PROMPT=/run/sluice/" PROGRAM_PROMPT " SLUICE_MODEL_URL=\"$model\"\n"
    "export OPENAI_BASE_URL=\"$model/v1\" OPENAI_API_BASE=\"$model/v1\" OPENAI_API_KEY=sluice\n"
    "export ANTHROPIC_BASE_URL=\"$model\" ANTHROPIC_API_KEY=sluice\n"
    "export GOOGLE_GEMINI_BASE_URL=\"$model\" GEMINI_API_KEY=sluice\n"
    "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy npm_config_proxy npm_config_https_proxy\n"
    "export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost\n"
    "exec </dev/null\n";

/* Their own files stay out of the task's. */
static const char home[] = "export HOME=/tmp/harness-home && mkdir -p \"$HOME\" || exit\n";

static const struct program programs[] = {
    {"mini-swe-agent", "mini", mini_swe_agent_sh, &mini_swe_agent_sh_len},
    {"claude-code", "claude", claude_code_sh, &claude_code_sh_len},
    {"codex", "codex", codex_sh, &codex_sh_len},
    {"opencode", "opencode", opencode_sh, &opencode_sh_len},
    {"qwen-code", "qwen", qwen_code_sh, &qwen_code_sh_len},
    {"openhands", "openhands-python", openhands_sh, &openhands_sh_len},
    {"terminus-2", "terminus-python", terminus_2_sh, &terminus_2_sh_len},
    {"pi", "pi", pi_sh, &pi_sh_len},
};

_Static_assert(sizeof(programs) / sizeof(*programs) <= PROGRAMS_MAX, "whoever has one of each has the room");

const struct program *program_at(size_t i) { return i < sizeof(programs) / sizeof(*programs) ? &programs[i] : NULL; }

const struct program *program_find(struct slice name)
{
    for (size_t i = 0; program_at(i); i++)
        if (slice_is(name, programs[i].name))
            return &programs[i];
    return NULL;
}

void program_list(char *text, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; program_at(i) && len < size; i++)
        len += (size_t)snprintf(text + len, size - len, "%s%s", i ? ", " : "", programs[i].name);
}

/* Of who has it nowhere, what would help. */
static void write_search(const struct program *program, struct buffer *out)
{
    const char *name = program->name, *file = program->file;
    buffer_printf(out, "export PATH=\"/opt/harness/%s/bin:$PATH\"\n", name);
    buffer_printf(
        out,
        "type -P %s >/dev/null || { echo 'there is no %s in /opt/harness/%s/bin nor on the PATH: install it on "
        "the node of the run worker (sluice harness install %s) or in the image, or name its directory there "
        "(--harness %s=DIR)'; exit 127; }\n",
        file, file, name, name, name);
}

void program_write(const struct task *task, uint64_t context_tokens, struct buffer *out)
{
    const struct program *program = program_find(slice_from_str(task->agent_harness));
    buffer_printf(out, "export SLUICE_CONTEXT_TOKENS=%llu\n", (unsigned long long)context_tokens);
    buffer_append_str(out, variables);
    if (!program) {
        buffer_append_str(out, task->agent_command);
        return;
    }
    buffer_append_str(out, home);
    write_search(program, out);
    buffer_append(out, program->script, *program->script_len);
}

void program_write_prompt(const struct task *task, struct buffer *out)
{
    for (size_t i = 0; i < task->message_count; i++) {
        if (strcmp(task->messages[i].role, "assistant") == 0)
            continue;
        buffer_append_str(out, out->len > 0 ? "\n\n" : "");
        buffer_append_str(out, task->messages[i].content);
    }
}
