export MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors MSWEA_SILENT_STARTUP=true LITELLM_LOCAL_MODEL_COST_MAP=True
exec mini -m openai/model -t "$(cat "$SLUICE_PROMPT")" --yolo --exit-immediately --cost-limit 0
