#include "workers/agents/proxy/programs.h"

#include <string.h>

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

static const struct program {
    const char *name;
    const char *script;
} programs[] = {
    {"mini-swe-agent",
     "export MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors MSWEA_SILENT_STARTUP=true "
     "LITELLM_LOCAL_MODEL_COST_MAP=True\n"
     "exec mini -m openai/model -t \"$(cat \"$SLUICE_PROMPT\")\" --yolo --exit-immediately --cost-limit 0\n"},
    {"claude-code", "export CLAUDE_CONFIG_DIR=\"$HOME/claude\" IS_SANDBOX=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 "
                    "DISABLE_AUTOUPDATER=1 CLAUDE_CODE_ATTRIBUTION_HEADER=0\n"
                    "export ANTHROPIC_DEFAULT_SONNET_MODEL=model ANTHROPIC_DEFAULT_OPUS_MODEL=model "
                    "ANTHROPIC_DEFAULT_HAIKU_MODEL=model CLAUDE_CODE_SUBAGENT_MODEL=model\n"
                    "exec claude -p --bare --output-format json --dangerously-skip-permissions --model model "
                    "\"$(cat \"$SLUICE_PROMPT\")\"\n"},
    {"codex",
     "export CODEX_HOME=\"$HOME/codex\" && mkdir -p \"$CODEX_HOME\" && cat >\"$CODEX_HOME/config.toml\" <<EOF || exit\n"
     "model = \"model\"\n"
     "model_provider = \"sluice\"\n"
     "model_context_window = $SLUICE_CONTEXT_TOKENS\n"
     "approval_policy = \"never\"\n"
     "sandbox_mode = \"danger-full-access\"\n"
     "web_search = \"disabled\"\n"
     "check_for_update_on_startup = false\n"
     "[model_providers.sluice]\n"
     "name = \"sluice\"\n"
     "base_url = \"$OPENAI_BASE_URL\"\n"
     "env_key = \"OPENAI_API_KEY\"\n"
     "wire_api = \"responses\"\n"
     "[analytics]\n"
     "enabled = false\n"
     "[agents]\n"
     "enabled = false\n"
     "[history]\n"
     "persistence = \"none\"\n"
     "EOF\n"
     "exec codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -- "
     "\"$(cat \"$SLUICE_PROMPT\")\"\n"},
    {"opencode",
     "export OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_FAKE_VCS=git "
     "OPENCODE_CONFIG=\"$HOME/opencode.json\" && cat >\"$OPENCODE_CONFIG\" <<EOF || exit\n"
     "{\"provider\": {\"local\": {\"npm\": \"@ai-sdk/openai-compatible\", \"options\": {\"baseURL\": "
     "\"$OPENAI_BASE_URL\", \"apiKey\": \"sluice\"},\n"
     " \"models\": {\"model\": {\"tool_call\": true, \"limit\": {\"context\": $SLUICE_CONTEXT_TOKENS, "
     "\"output\": 4096}}}}},\n"
     " \"model\": \"local/model\", \"small_model\": \"local/model\", \"agent\": {\"title\": {\"disable\": true}},\n"
     " \"autoupdate\": false, \"share\": \"disabled\"}\n"
     "EOF\n"
     "exec opencode run --format json -m local/model \"$(cat \"$SLUICE_PROMPT\")\"\n"},
    {"qwen-code", "export OPENAI_MODEL=model\n"
                  "exec qwen --auth-type openai --yolo -p \"$(cat \"$SLUICE_PROMPT\")\"\n"},
};

static const struct program *find(const char *name)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    return NULL;
}

void program_write(const struct task *task, uint64_t context_tokens, struct buffer *out)
{
    const struct program *program = find(task->agent_harness);
    buffer_printf(out, "export SLUICE_CONTEXT_TOKENS=%llu\n", (unsigned long long)context_tokens);
    buffer_append_str(out, variables);
    if (program) {
        buffer_append_str(out, home);
        buffer_printf(out, "export PATH=\"/opt/harness/%s/bin:$PATH\"\n", program->name);
    }
    buffer_append_str(out, program ? program->script : task->agent_command);
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
