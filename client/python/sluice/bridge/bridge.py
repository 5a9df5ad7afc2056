"""The bridge itself: an address for a function, on the trainer's event loop or on a thread of its own."""

from __future__ import annotations

import base64
import copy
import hmac
import ipaddress
import secrets
import socket
import urllib.parse
from typing import Any, Callable, List, Mapping, Optional

from .. import arguments
from ..errors import BadArgument, SluiceError
from . import http
from .gate import Gate, is_async
from .routes import Routes, Served
from .sampled import BridgeError, Rules, Settings
from .text import Text
from .thread import LoopThread

BODY_BYTES, TOKEN_BYTES = 16 << 20, 16  # of a request, and more of it for each token of the context
CONNECTIONS = 4096


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Bridge:
    """An engine of Sluice made of a trainer's own function; `async with` on the running event loop, `with` on a thread.

    generate: (ids, sampling) -> (sampled ids, log-probabilities, finish, version), a coroutine function, or a plain
        one, which is called on a thread. ids: the prompt, a list; sampling: a dict of max_tokens, temperature, top_p,
        top_k (-1: off), min_p, stop_token_ids, and seed where one is wanted: vLLM's SamplingParams(**sampling). Sampled
        is what it returns, or a tuple of these four; the version may be a list of one for each id. A part that ends with "abort" is gone on with from its own tokens,
        so that a function whose engine aborts at an update of the weights gives a turn of several versions, each with
        its span. A coroutine function is cancelled when the rollout is.
    tokenizer: of transformers, with the policy's chat template, or of the same calls encode, decode and
        apply_chat_template. template_options: more arguments of the latter, such as {"enable_thinking": False}.
    max_model_len: tokens that prompt and sampled ones may have together.
    logprobs_mode: of which distribution the log-probabilities are: "raw", the model's own at temperature 1 before any
        filter, or "processed", after the temperature at least.
    score: (ids) -> the log-probabilities of ids[1:] as a prompt, raw ones; then `sluice engine check` can compare.
    model: the engine's name for what it serves; vocab_size: how many ids there are, if not len(tokenizer).
    concurrency: calls of the functions at a time; None: no limit for a coroutine function, 1 for a plain one.
    host, port: where to listen; port 0: a free one. advertise: the host's name in `url`, if another. credentials:
        "user:password" that calls must come with, and that `url` has; None: random ones beyond this machine, else none.

    What the function returns is checked: the first time that it is wrong is `error`, which check() raises, and leaving
    the bridge does, too. Nothing of such a call is used: its rollout is tried again.
    """

    def __init__(self, generate: Callable[[List[int], Settings], Any], *, tokenizer: Any, max_model_len: int,
                 logprobs_mode: str, score: Optional[Callable[[List[int]], Any]] = None, model: str = "policy",
                 vocab_size: Optional[int] = None, template_options: Mapping[str, Any] = {},
                 concurrency: Optional[int] = None, host: str = "127.0.0.1", port: int = 0,
                 advertise: Optional[str] = None, credentials: Optional[str] = None) -> None:
        for name, function in (("generate", generate), ("score", score)):
            if not callable(function) and not (name == "score" and function is None):
                raise arguments.refuse(name, "a function", function)
        self._generate, self._score = generate, score
        self._tokenizer, self._template_options = tokenizer, template_options
        self._text = Text(tokenizer, template_options)
        self._max_model_len = arguments.number("max_model_len", max_model_len, 2, 1 << 26)
        self._logprobs_mode = arguments.word("logprobs_mode", logprobs_mode, ("raw", "processed"))
        self._model = arguments.text("model", model, 1, 255)
        self._vocab_size = arguments.optional_number("vocab_size", vocab_size, 1, 1 << 31)
        self._concurrency = arguments.optional_number("concurrency", concurrency, 1, 1 << 16)
        self._host, self._port = arguments.text("host", host, 1, 255), arguments.number("port", port, 0, 65535)
        self._advertise = advertise or (socket.getfqdn() if host in ("0.0.0.0", "::") else host)
        if credentials is not None and ":" not in credentials:
            raise arguments.refuse("credentials", 'a text "user:password"', "...")
        self._credentials = credentials or (None if is_loopback(host) else "sluice:" + secrets.token_urlsafe(24))
        self._server: Optional[http.Server] = None
        self._routes: Optional[Routes] = None
        self._gate: Optional[Gate] = None
        self._thread: Optional[LoopThread] = None
        self.url = ""  # while it is entered; with the credentials, if there are any

    @property
    def error(self) -> Optional[BridgeError]:
        """What the function first returned that it must not; None: nothing."""
        return self._routes.error if self._routes else None

    def check(self) -> None:
        """Raises `error`, if there is one."""
        if self.error is not None:
            raise self.error

    # ---- on the running event loop --------------------------------------------------------------------

    async def __aenter__(self) -> Bridge:
        await self._start()
        return self

    async def __aexit__(self, kind: Any, *_: object) -> None:
        await self._stop()
        if kind is None:
            self.check()

    async def _start(self) -> None:
        if self._server is not None:
            raise SluiceError("this bridge is entered already")
        is_plain = not is_async(self._generate)
        self._gate = Gate(self._concurrency or (1 if is_plain else 1 << 16))
        rules = Rules(self._vocab_size or self._text.vocabulary(), self._text.specials())
        score = None if self._score is None else self._gate.guard(self._score)
        self._routes = Routes(Served(self._gate.guard(self._generate), score, self._text, self._model,
                                     self._max_model_len, self._logprobs_mode, rules), self._gate)
        self._server = http.Server(self._handle, BODY_BYTES + TOKEN_BYTES * self._max_model_len, CONNECTIONS)
        try:
            port = await self._server.start(self._host, self._port)
        except OSError as error:
            self._server = None
            raise BadArgument(f"cannot listen on {self._host}, port {self._port}: {error}", "port") from None
        self.url = self._url(port)

    def _url(self, port: int) -> str:
        host = f"[{self._advertise}]" if ":" in self._advertise else self._advertise
        user, _, password = (self._credentials or "").partition(":")
        before = f"{urllib.parse.quote(user, '')}:{urllib.parse.quote(password, '')}@" if self._credentials else ""
        return f"http://{before}{host}:{port}"

    async def _stop(self) -> None:
        if self._server is not None and self._gate is not None:
            server, self._server = self._server, None
            await server.close()
            self._gate.close()

    async def _handle(self, request: http.Request) -> http.Answer:
        assert self._routes is not None
        if self._credentials:
            wanted = "Basic " + base64.b64encode(self._credentials.encode()).decode()
            if not hmac.compare_digest(request.headers.get("authorization", "").encode(), wanted.encode()):
                return http.refusal(401, "this bridge wants credentials: register the URL that it says")
        return await self._routes.handle(request)

    # ---- on a thread ----------------------------------------------------------------------------------

    def __enter__(self) -> Bridge:
        # A tokenizer that two threads use at a time breaks.
        self._text = Text(copy.deepcopy(self._tokenizer), self._template_options)
        self._thread = LoopThread("sluice-bridge")
        try:
            self._thread.run(self._start())
        except BaseException:
            self._thread.end()
            raise
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        assert self._thread is not None
        try:
            self._thread.run(self._stop())
        finally:
            self._thread.end()
        if kind is None:
            self.check()
