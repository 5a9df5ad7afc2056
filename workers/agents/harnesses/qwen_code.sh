export OPENAI_MODEL=model
exec qwen --auth-type openai --yolo -p "$(cat "$SLUICE_PROMPT")"
