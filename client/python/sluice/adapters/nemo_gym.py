"""NeMo Gym, and so NeMo RL: an agent server whose runs are Sluice's rollouts (docs/trainers/nemo_gym.md).

    # responses_api_agents/sluice_agent/app.py
    from sluice.adapters.nemo_gym import SluiceAgent

    if __name__ == "__main__":
        SluiceAgent.run_webserver()
"""

from __future__ import annotations

from typing import Any, Optional

from .parts.responses import verified
from .parts.shared import shared_rollouts
from .parts.versions import require
from .tasks import task_of

require("sluice.adapters.nemo_gym", "nemo-gym", "0.5", "0.6", "nemo_gym.base_responses_api_agent")
from fastapi import Body, HTTPException  # noqa: E402
from nemo_gym.base_resources_server import BaseRunRequest, BaseVerifyResponse  # noqa: E402
from nemo_gym.base_responses_api_agent import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent  # noqa: E402
from nemo_gym.openai_utils import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming  # noqa: E402
from pydantic import ConfigDict  # noqa: E402


class SluiceAgentConfig(BaseResponsesAPIAgentConfig):  # type: ignore[misc]
    """stream: this server's alone. broker: FRONT's URL; None: $SLUICE_BROKER. tries: of a run that sampled nothing."""

    stream: str = "nemo_gym"
    broker: Optional[str] = None
    tries: int = 3


class SluiceRunRequest(BaseRunRequest):  # type: ignore[misc]
    """A row: its task stands beside responses_create_params."""

    model_config = ConfigDict(extra="allow")


class SluiceVerifyResponse(BaseVerifyResponse):  # type: ignore[misc]
    """With mask_sample, and what ended the rollout."""

    model_config = ConfigDict(extra="allow")


class SluiceAgent(SimpleResponsesAPIAgent):  # type: ignore[misc]
    """Answers /run with one rollout of the row's task; it needs no resources server."""

    config: SluiceAgentConfig

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming = Body()) -> NeMoGymResponse:
        raise HTTPException(501, "a rollout of Sluice is a whole run: call /run")

    async def run(self, body: SluiceRunRequest = Body()) -> SluiceVerifyResponse:
        row = body.model_dump()
        task, rollouts = task_of(row), shared_rollouts(self.config.stream, self.config.broker, {})
        for _ in range(self.config.tries):
            trajectory = (await rollouts.run(task))[0]
            if trajectory.traces:
                params: Any = row["responses_create_params"]
                return SluiceVerifyResponse(**verified(trajectory, params))
        raise HTTPException(500, f"{trajectory.rollout} sampled nothing, {self.config.tries} times: {trajectory.detail}")
