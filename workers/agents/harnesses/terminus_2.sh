export LITELLM_LOCAL_MODEL_COST_MAP=True
cat >"$HOME/run.py" <<'END' || exit
import asyncio
import os
from pathlib import Path

from harbor.agents.terminus_2.terminus_2 import Terminus2
from harbor.environments.base import ExecResult
from harbor.models.agent.context import AgentContext


class Here:
    """What Terminus asks of an environment, where it is in it itself."""

    session_id, default_user = "here", None

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        made = await asyncio.create_subprocess_exec("bash", "-c", command, cwd=cwd, env={**os.environ, **(env or {})},
                                                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        out, err = await asyncio.wait_for(made.communicate(), timeout_sec)
        return ExecResult(stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=made.returncode)


async def main():
    limits = {"max_input_tokens": int(os.environ["SLUICE_CONTEXT_TOKENS"]), "max_output_tokens": 4096}
    agent = Terminus2(logs_dir=Path(os.environ["HOME"]), model_name="openai/model", api_base=os.environ["OPENAI_BASE_URL"], model_info=limits,
                      record_terminal_session=False)
    await agent.setup(Here())
    await agent.run(Path(os.environ["SLUICE_PROMPT"]).read_text(), Here(), AgentContext())


asyncio.run(main())
END
exec terminus-python "$HOME/run.py"
