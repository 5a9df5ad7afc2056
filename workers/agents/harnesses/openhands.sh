export OPENHANDS_SUPPRESS_BANNER=1 LITELLM_LOCAL_MODEL_COST_MAP=True
cat >"$HOME/run.py" <<'END' || exit
import os

from openhands.sdk import LLM, Conversation
from openhands.tools.preset.default import get_default_agent

llm = LLM(model="openai/model", base_url=os.environ["OPENAI_BASE_URL"], api_key="sluice", api_mode="chat", reasoning_effort="none",
          max_input_tokens=int(os.environ["SLUICE_CONTEXT_TOKENS"]), num_retries=2)
with open(os.environ["SLUICE_PROMPT"], encoding="utf-8") as words:
    prompt = words.read()
conversation = Conversation(agent=get_default_agent(llm, cli_mode=True), workspace=os.getcwd(), max_iteration_per_run=1_000_000)
conversation.send_message(prompt)
conversation.run()
conversation.close()
END
exec openhands-python "$HOME/run.py"
