export PI_CODING_AGENT_DIR="$HOME/pi" PI_OFFLINE=1 PI_TELEMETRY=0 PI_SKIP_VERSION_CHECK=1
mkdir -p "$PI_CODING_AGENT_DIR" && cat >"$PI_CODING_AGENT_DIR/models.json" <<END || exit
{"providers": {"sluice": {"baseUrl": "$OPENAI_BASE_URL", "api": "openai-completions", "apiKey": "sluice",
  "models": [{"id": "model", "contextWindow": $SLUICE_CONTEXT_TOKENS, "maxTokens": 4096}]}}}
END
exec pi --print --mode json --provider sluice --model model --no-session -- "$(cat "$SLUICE_PROMPT")"
