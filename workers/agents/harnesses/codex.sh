export CODEX_HOME="$HOME/codex" && mkdir -p "$CODEX_HOME" && cat >"$CODEX_HOME/config.toml" <<END || exit
model = "model"
model_provider = "sluice"
model_context_window = $SLUICE_CONTEXT_TOKENS
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false
[model_providers.sluice]
name = "sluice"
base_url = "$OPENAI_BASE_URL"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
[analytics]
enabled = false
[agents]
enabled = false
[history]
persistence = "none"
END
exec codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -- "$(cat "$SLUICE_PROMPT")"
