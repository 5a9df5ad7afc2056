"""A trainer's own generate as an engine of Sluice (docs/trainers/bridge.md).

    async def generate(ids, sampling):                  # verl's, SkyRL's, Tinker's, a torch model's ...
        return sampled_ids, logprobs, "stop", "step-7"

    async with Bridge(generate, tokenizer=tokenizer, max_model_len=8192, logprobs_mode="processed") as engine:
        await client.engine_add(engine.url)
"""

from .bridge import Bridge
from .sampled import BridgeError, Sampled

__all__ = ["Bridge", "BridgeError", "Sampled"]
