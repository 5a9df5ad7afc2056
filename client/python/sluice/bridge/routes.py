"""What a bridge answers: vLLM's routes, as far as run workers use them (docs/engines.md).

Forms of vLLM 0.32.0: /version, /v1/models, /health, /metrics, /tokenize, /detokenize, /inference/v1/generate,
/v1/completions. Beside them an answer that samples says of which distribution its log-probabilities are
(logprobs.mode), which of a function no measurement tells.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Awaitable, Callable, Dict, List, NamedTuple, Optional

from . import http, sampled
from .gate import Gate
from .text import Text

log = logging.getLogger("sluice.bridge")

NEUTRAL = {"presence_penalty": 0, "frequency_penalty": 0, "repetition_penalty": 1, "n": 1, "min_tokens": 0,
           "ignore_eos": False}
BOUNDS = {"temperature": (0.0, 1e6, 1.0), "top_p": (0.0, 1.0, 1.0), "min_p": (0.0, 1.0, 0.0)}  # least, most, default


class Served(NamedTuple):
    """What a bridge is made of."""

    generate: Callable[[List[int], sampled.Settings], Awaitable[Any]]
    score: Optional[Callable[[List[int]], Awaitable[Any]]]
    text: Text
    model: str
    max_model_len: int
    logprobs_mode: str
    rules: sampled.Rules


def whole(name: str, value: Any, least: int, most: int = 2**63 - 1) -> int:
    if not sampled.is_id(value) or not least <= value <= most:
        raise http.Unfit(400, f"{name} wants a whole number from {least} to {most}")
    return int(value)


def flag(asked: Dict[str, Any], name: str, default: bool) -> bool:
    value = asked.get(name, default)
    if not isinstance(value, bool):
        raise http.Unfit(400, f"{name} wants true or false")
    return value


def ids_of(asked: Dict[str, Any], name: str, vocabulary: Optional[int]) -> List[int]:
    ids = asked.get(name)
    if not isinstance(ids, list) or not all(sampled.is_id(id) and id >= 0 for id in ids):
        raise http.Unfit(400, f"{name} wants a list of token ids")
    beyond = next((id for id in ids if vocabulary is not None and id >= vocabulary), None)
    if beyond is not None:
        raise http.Unfit(400, f"token id {beyond} is out of the vocabulary of {vocabulary}")
    return ids


def settings_of(asked: Dict[str, Any]) -> sampled.Settings:
    """What the function is given: as vLLM's SamplingParams, each said. Unfit: what it could not keep to."""
    for name, neutral in NEUTRAL.items():
        if asked.get(name, neutral) != neutral:
            raise http.Unfit(400, f"{name} is {neutral} in a bridge, whose function is not told of it")
    if asked.get("stream", False) is not False or asked.get("stop"):
        raise http.Unfit(400, "a bridge does not stream, and stops at stop_token_ids alone")
    settings: sampled.Settings = {"max_tokens": whole("max_tokens", asked.get("max_tokens"), 1)}
    for name, (least, most, default) in BOUNDS.items():
        value = asked.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise http.Unfit(400, f"{name} wants a number from {least:g} to {most:g}")
        settings[name] = float(value)
    settings["top_k"] = whole("top_k", asked.get("top_k", -1), -1) or -1
    settings["stop_token_ids"] = ids_of(asked, "stop_token_ids", None) if asked.get("stop_token_ids") else []
    if asked.get("seed") is not None:
        settings["seed"] = whole("seed", asked["seed"], 0)
    return settings


class Routes:
    """Answers requests."""

    def __init__(self, served: Served, gate: Gate) -> None:
        self._served, self._gate, self._began_s = served, gate, time.time()
        self.error: Optional[sampled.BridgeError] = None  # the first

    async def handle(self, request: http.Request) -> http.Answer:
        get, post = GET.get(request.path), POST.get(request.path)
        if get is None and post is None:
            return http.refusal(404, f"a bridge has no route {request.path}")
        if request.method != ("GET" if get else "POST"):
            return http.refusal(405, f"{request.path} wants {'GET' if get else 'POST'}")
        try:
            if get is not None:
                return get(self)
            assert post is not None
            return http.of_json(await post(self, self._asked(request.body)))
        except http.Unfit as unfit:
            return http.refusal(unfit.status, str(unfit))
        except sampled.BridgeError as error:
            self.error = self.error or error
            log.error("%s (%s)", error, request.path)
            return http.refusal(500, str(error))
        except Exception as error:
            log.exception("the bridge's function failed (%s)", request.path)
            return http.refusal(500, f"{type(error).__name__}: {error}"[:500])

    def _asked(self, body: bytes) -> Dict[str, Any]:
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            raise http.Unfit(400, "the body is no JSON") from None
        if not isinstance(asked, dict):
            raise http.Unfit(400, "the body is no object")
        model = asked.get("model")
        if model is not None and model != self._served.model:
            raise http.Unfit(404, f"the model {model!r} does not exist: this is {self._served.model!r}")
        return asked

    # ---- what is served -------------------------------------------------------------------------------

    def version(self) -> http.Answer:
        return http.of_json({"version": "sluice-bridge"})

    def health(self) -> http.Answer:
        return http.of_json({})

    def models(self) -> http.Answer:
        served = self._served
        return http.of_json({"object": "list", "data": [
            {"id": served.model, "object": "model", "owned_by": "sluice", "root": served.model, "parent": None,
             "max_model_len": served.max_model_len}]})

    def metrics(self) -> http.Answer:
        text = (f"vllm:num_requests_running {self._gate.running}\nvllm:num_requests_waiting {self._gate.waiting}\n"
                f"process_start_time_seconds {self._began_s}\n")
        return http.Answer(200, text.encode(), "text/plain; version=0.0.4")

    # ---- text -----------------------------------------------------------------------------------------

    async def tokenize(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        text = self._served.text
        if "messages" in asked:
            messages = asked["messages"]
            if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
                raise http.Unfit(400, "messages wants a list of objects")
            try:
                ids = text.render(messages, flag(asked, "add_generation_prompt", True),
                                  flag(asked, "add_special_tokens", False))
            except Exception as error:  # templates refuse conversations by whatever they raise
                raise http.Unfit(400, f"the chat template refuses: {type(error).__name__}: {error}"[:500]) from None
        elif isinstance(asked.get("prompt"), str):
            ids = text.encode(asked["prompt"], flag(asked, "add_special_tokens", True))
        else:
            raise http.Unfit(400, "prompt wants a text, or messages a list")
        return {"count": len(ids), "max_model_len": self._served.max_model_len, "tokens": ids, "token_strs": None}

    async def detokenize(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        ids = ids_of(asked, "tokens", self._served.rules.vocabulary)
        return {"prompt": self._served.text.decode(ids, flag(asked, "skip_special_tokens", False))}

    # ---- sampling -------------------------------------------------------------------------------------

    def _check_room(self, prompt: List[int], max_tokens: int) -> None:
        if not prompt:
            raise http.Unfit(400, "a prompt wants at least one token id")
        if len(prompt) + max_tokens > self._served.max_model_len:
            raise http.Unfit(400, f"the maximum context length is {self._served.max_model_len} tokens, where "
                                  f"{len(prompt)} of the prompt and {max_tokens} sampled ones were asked for")

    async def _sample(self, prompt: List[int], settings: sampled.Settings) -> sampled.Turn:
        served = self._served
        self._check_room(prompt, settings["max_tokens"])
        return await sampled.sample(served.generate, prompt, settings, served.rules)

    async def _scores(self, prompt: List[int], asked: Dict[str, Any]) -> Optional[List[Any]]:
        """vLLM's prompt_logprobs; None: not asked for, or there is no function that tells them."""
        wanted = asked.get("prompt_logprobs")
        if wanted is None or self._served.score is None:
            return None
        if wanted != 0:
            raise http.Unfit(400, "prompt_logprobs wants 0: a bridge knows no likeliest tokens")
        logprobs = sampled.check_logprobs(await self._served.score(list(prompt)), len(prompt) - 1, "score returned")
        return [None] + [{str(id): {"logprob": logprob, "rank": None, "decoded_token": None}}
                         for id, logprob in zip(prompt[1:], logprobs)]

    def _usage(self, prompt: List[int], turn: sampled.Turn) -> Dict[str, int]:
        return {"prompt_tokens": len(prompt), "completion_tokens": len(turn.ids),
                "total_tokens": len(prompt) + len(turn.ids)}

    async def generate(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        prompt = ids_of(asked, "token_ids", self._served.rules.vocabulary)
        params = asked.get("sampling_params")
        if not isinstance(params, dict) or asked.get("stream", False) is not False:
            raise http.Unfit(400, "sampling_params wants an object, and stream false")
        turn = await self._sample(prompt, settings_of(params))
        entries: List[Dict[str, Any]] = [{"token_id": id, "logprob": logprob, "rank": None, "top_logprobs": []}
                                         for id, logprob in zip(turn.ids, turn.logprobs)]
        choice = {"index": 0, "finish_reason": turn.finish, "stop_reason": None, "token_ids": turn.ids,
                  "weight_versions": [span._asdict() for span in turn.spans if span.version],
                  "logprobs": {"mode": self._served.logprobs_mode, "content": entries}}
        return {"request_id": str(asked.get("request_id", ""))[:200], "created": int(time.time()),
                "model": self._served.model, "choices": [choice], "usage": self._usage(prompt, turn),
                "prompt_logprobs": await self._scores(prompt, params)}

    async def complete(self, asked: Dict[str, Any]) -> Dict[str, Any]:
        prompt = ids_of(asked, "prompt", self._served.rules.vocabulary)
        turn = await self._sample(prompt, settings_of(asked))
        said = turn.ids[:-1] if turn.finish == "stop" else turn.ids
        choice = {"index": 0, "text": self._served.text.decode(said), "finish_reason": turn.finish, "stop_reason": None,
                  "token_ids": turn.ids, "prompt_token_ids": prompt, "prompt_logprobs": await self._scores(prompt, asked),
                  "logprobs": {"mode": self._served.logprobs_mode, "token_logprobs": turn.logprobs,
                               "tokens": [f"token_id:{id}" for id in turn.ids]}}
        return {"id": "cmpl-bridge", "object": "text_completion", "created": int(time.time()),
                "model": self._served.model, "choices": [choice], "usage": self._usage(prompt, turn)}


GET: Dict[str, Callable[[Routes], http.Answer]] = {
    "/version": Routes.version, "/v1/models": Routes.models, "/health": Routes.health, "/metrics": Routes.metrics}
POST: Dict[str, Callable[[Routes, Dict[str, Any]], Awaitable[Dict[str, Any]]]] = {
    "/tokenize": Routes.tokenize, "/detokenize": Routes.detokenize, "/inference/v1/generate": Routes.generate,
    "/v1/completions": Routes.complete}
