export OPENCODE_DISABLE_MODELS_FETCH=1 OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_FAKE_VCS=git
export OPENCODE_CONFIG="$HOME/opencode.json" && cat >"$OPENCODE_CONFIG" <<END || exit
{"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "$OPENAI_BASE_URL", "apiKey": "sluice"},
  "models": {"model": {"tool_call": true, "limit": {"context": $SLUICE_CONTEXT_TOKENS, "output": 4096}}}}},
 "model": "local/model", "small_model": "local/model", "agent": {"title": {"disable": true}},
 "autoupdate": false, "share": "disabled"}
END
exec opencode run --format json -m local/model "$(cat "$SLUICE_PROMPT")"
