"""The interfaces of vLLM, SGLang, a plain server of OpenAI's protocol and verl's, over a scripted engine's model.

Forms read in the sources of vLLM 0.32.0 (entrypoints/scale_out/token_in_token_out, entrypoints/openai/completion,
entrypoints/serve/tokenize), SGLang 0.5.23 (srt/entrypoints/http_server.py, srt/managers/tokenizer_manager.py) and of verl's
server as ProRL's trainers have it (rollout/vllm_async_server.py): "generate", which has POST /generate alone.

A script's "dialect" is one of DIALECTS. Besides "context", "template" and "rules" these read
    "generate": false     vllm: without --enable-scale-out
    "logprobs_mode"       "raw" (vllm's default), "processed" (sglang's), or "filtered": of what top_k leaves
    "version": "v7"       what the weights are called
    "lacks": [PATH, ...]  routes that are not there
    "ids": false          vllm, openai: return_token_ids is ignored
    "tokenizes_messages": false   sglang: an older release
and cached tokens are all of a prompt but the last.
"""


def not_found():
    return 404, {"detail": "Not Found"}


def too_long(engine, prompt, limit):
    """vLLM's and SGLang's sentences for a request that does not fit."""
    total = len(prompt) + limit
    if engine.script["dialect"] == "sglang":
        if len(prompt) >= engine.context:
            return 400, {"error": {"message": f"The input ({len(prompt)} tokens) is longer than the model's context "
                                              f"length ({engine.context} tokens)."}}
        return 400, {"error": {"message": "Requested token count exceeds the model's maximum context length of "
                                          f"{engine.context} tokens. You requested a total of {total} tokens."}}
    return 400, {"error": {"message": f"This model's maximum context length is {engine.context} tokens. However, you "
                                      f"requested {limit} output tokens and your prompt contains {len(prompt)} input "
                                      f"tokens, for a total of {total} tokens.",
                           "type": "BadRequestError", "param": "input_tokens", "code": 400}}


def unknown_id(engine, prompt):
    """vLLM's and SGLang's sentences for an id beyond the vocabulary."""
    words = f"Token id {max(prompt)} is out of vocabulary"
    if engine.script["dialect"] == "sglang":
        words = f"The input_ids {prompt} contains values greater than the vocab size ({engine.model.VOCABULARY})."
    return 400, {"error": {"message": words, "type": "BadRequestError", "param": None, "code": 400}}


def sample(engine, request, prompt, limit, sampling, reply_ids):
    """[(id, logprob, logprob of the likeliest)], finish: what the script says at this temperature."""
    mode = engine.script.get("logprobs_mode", "processed" if engine.script["dialect"] == "sglang" else "raw")
    scale = sampling.get("temperature", 1) if mode == "processed" else 1
    off = 0 if mode == "filtered" and sampling.get("top_k") == 1 else 1
    scale *= off
    ids = reply_ids[:limit]
    stops = engine.model.ENDS
    if engine.breaks("too_long"):
        ids = ids or [65]
    tokens = [(id, engine.model.logprob(len(prompt) + i, id) * scale, -0.75 * scale) for i, id in enumerate(ids)]
    return tokens, "stop" if ids and ids[-1] in stops else "length"


def tops(engine, position, count):
    """The likeliest ids in that place, the likeliest first."""
    if not count:
        return []
    return sorted(range(engine.model.VOCABULARY), key=lambda id: -engine.model.logprob(position, id))[:count]


def scores(engine, prompt, top):
    """vLLM's prompt_logprobs: of the prompt's own token, first, and of the `top` likeliest, in no order."""
    off = 2 if engine.breaks("scores") else 0
    told = [None]
    for i, id in list(enumerate(prompt))[1:]:
        best = tops(engine, i, top)
        ranks = {id: top + 1, **{one: k for k, one in reversed(list(enumerate(best, 1)))}}
        told.append({str(one): {"logprob": engine.model.logprob(i, one) - off, "rank": rank, "decoded_token": "x"}
                     for one, rank in ranks.items()})
    return told


def usage(prompt, tokens):
    return {"prompt_tokens": len(prompt), "completion_tokens": len(tokens), "total_tokens": len(prompt) + len(tokens),
            "prompt_tokens_details": {"cached_tokens": len(prompt) - 1}}


# ---- vLLM ----------------------------------------------------------------------------------


def vllm_generate(engine, request, reply_ids):
    sampling, prompt = request["sampling_params"], request["token_ids"]
    if len(prompt) + sampling["max_tokens"] > engine.context and not engine.breaks("too_long"):
        return too_long(engine, prompt, sampling["max_tokens"])
    if max(prompt) >= engine.model.VOCABULARY:
        return unknown_id(engine, prompt)
    tokens, finish = sample(engine, request, prompt, sampling["max_tokens"], sampling, reply_ids)
    content = [{"token_id": id, "logprob": p, "rank": 1,
                "top_logprobs": [{"token_id": id, "logprob": p, "rank": 2}, {"token_id": 7, "logprob": top, "rank": 1}]
                [:max(1, sampling["logprobs"])]} for id, p, top in tokens]
    version = engine.script.get("version", "default")
    return 200, {"request_id": "generate-tokens-x", "created": 1, "model": "scripted", "usage": usage(prompt, tokens),
                 "choices": [{"index": 0, "finish_reason": finish, "stop_reason": None,
                              "token_ids": [id for id, _, _ in tokens], "routed_experts": None,
                              "weight_versions": [{"version": version, "start": 0, "end": len(tokens)}],
                              "logprobs": {"content": content}}],
                 "prompt_logprobs": scores(engine, prompt, sampling["prompt_logprobs"]) if "prompt_logprobs" in sampling else None, "kv_transfer_params": None}


def vllm_complete(engine, request, reply_ids):
    prompt = request["prompt"]
    if len(prompt) + request["max_tokens"] > engine.context:
        return too_long(engine, prompt, request["max_tokens"])
    if max(prompt) >= engine.model.VOCABULARY:
        return unknown_id(engine, prompt)
    tokens, finish = sample(engine, request, prompt, request["max_tokens"], request, reply_ids)
    ids = [id for id, _, _ in tokens]
    said = engine.decode(ids[:-1] if finish == "stop" else ids, specials=True)
    choice = {"index": 0, "text": said, "finish_reason": finish, "stop_reason": None,
              "logprobs": {"text_offset": [0] * len(ids), "token_logprobs": [p for _, p, _ in tokens],
                           "tokens": [f"token_id:{id}" for id in ids],
                           "top_logprobs": [{f"token_id:{id}": p, "token_id:7": top} for id, p, top in tokens]}}
    if engine.script.get("ids", True) and request.get("return_token_ids"):
        choice.update(token_ids=ids, prompt_token_ids=prompt)
    return 200, {"id": "cmpl-x", "object": "text_completion", "created": 1, "model": "scripted", "choices": [choice],
                 "usage": usage(prompt, tokens)}


def vllm_models(engine, request, reply_ids):
    return 200, {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "vllm",
                                             "root": engine.script.get("model", "/models/scripted"), "parent": None,
                                             "max_model_len": engine.context, "permission": []}]}


def tokenize(engine, request, reply_ids):
    if "messages" in request:
        text = engine.render(request["messages"])
        if text is None:
            return 400, {"error": {"message": "the template raises", "type": "BadRequestError", "code": 400}}
    else:
        text = request["prompt"]
    if "messages" in request and engine.script.get("tokenizes_messages") is False:
        return 400, {"error": {"message": "prompt: Field required", "type": "BadRequestError", "code": 400}}
    ids = engine.encode(text, True)
    return 200, {"count": len(ids), "max_model_len": engine.context, "tokens": ids, "token_strs": None}


def detokenized(engine, request):
    text = engine.decode(request["tokens"], specials=True)
    return text.replace(" .", ".").replace(" ,", ",") if engine.script.get("cleans") else text


def vllm_detokenize(engine, request, reply_ids):
    return 200, {"prompt": detokenized(engine, request)}


def vllm_version(engine, request, reply_ids):
    return 200, {"version": "0.32.0"}


def health(engine, request, reply_ids):
    return 200, {}


VLLM = {"/version": vllm_version, "/v1/models": vllm_models, "/tokenize": tokenize, "/detokenize": vllm_detokenize,
        "/inference/v1/generate": vllm_generate, "/v1/completions": vllm_complete, "/health": health}

# ---- SGLang --------------------------------------------------------------------------------


def sglang_generate(engine, request, reply_ids):
    sampling, prompt = request["sampling_params"], request["input_ids"]
    if len(prompt) + sampling["max_new_tokens"] > engine.context:
        return too_long(engine, prompt, sampling["max_new_tokens"])
    if max(prompt) >= engine.model.VOCABULARY:
        return unknown_id(engine, prompt)
    tokens, finish = sample(engine, request, prompt, sampling["max_new_tokens"], sampling, reply_ids)
    ids = [id for id, _, _ in tokens]
    reason = {"type": "stop", "matched": ids[-1]} if finish == "stop" else {"type": "length", "length": len(ids)}
    meta = {"id": request["rid"], "finish_reason": reason, "prompt_tokens": len(prompt), "num_retractions": 0,
            "weight_version": engine.script.get("version", "default"), "completion_tokens": len(ids),
            "cached_tokens": len(prompt) - 1, "reasoning_tokens": 0, "e2e_latency": 0.1,
            "input_token_logprobs": [[None, prompt[0], None]] + [[engine.model.logprob(i, id), id, None] for i, id
                                                                  in enumerate(prompt) if i > 0]
            if request["logprob_start_len"] == 0 else [],
            "output_token_logprobs": [[p, id, None] for id, p, _ in tokens]}
    if request["top_logprobs_num"] and request["logprob_start_len"] == 0:
        meta["input_top_logprobs"] = [None] + [[[engine.model.logprob(i, id), id, None]
                                                for id in tops(engine, i, request["top_logprobs_num"])] for i in range(1, len(prompt))]
    if request["top_logprobs_num"]:
        meta["output_top_logprobs"] = [[[top, 7, None]] for _, _, top in tokens]
    said = engine.decode(ids[:-1] if finish == "stop" else ids, specials=True)
    return 200, {"text": said, "output_ids": ids, "meta_info": meta}


def sglang_info(engine, request, reply_ids):
    return 200, {"model_path": "/models/scripted", "served_model_name": "scripted", "is_generation": True,
                 "tokenizer_path": engine.script.get("model", "/models/scripted"), "weight_version": "default",
                 "model_type": "scripted"}


def sglang_detokenize(engine, request, reply_ids):
    return 200, {"text": detokenized(engine, request)}


def sglang_server(engine, request, reply_ids):
    return 200, {"random_seed": engine.start(engine.seed), "incremental_streaming_output": engine.script.get("streams", True) is True}


SGLANG = {"/server_info": sglang_server, "/model_info": sglang_info, "/get_model_info": sglang_info, "/v1/models": vllm_models, "/tokenize": tokenize,
          "/detokenize": sglang_detokenize, "/generate": sglang_generate, "/abort_request": health, "/health": health}

# A router in front of a vLLM, or another server of the protocol.
OPENAI = {path: VLLM[path] for path in ("/v1/models", "/tokenize", "/detokenize", "/v1/completions")}

# ---- verl ----------------------------------------------------------------------------------


def verl_generate(engine, request, reply_ids):
    """Whatever it trips over is a 500 of Starlette's."""
    prompt = request.get("prompt_ids")
    if not prompt or len(prompt) > engine.context or max(prompt) >= engine.model.VOCABULARY:
        return 500, {"detail": "Internal Server Error"}
    limit = min(request["max_tokens"], engine.context - len(prompt))
    tokens, _ = sample(engine, request, prompt, limit, request, reply_ids)
    return 200, {"response_ids": [id for id, _, _ in tokens], "logprobs": [p for _, p, _ in tokens]}


GENERATE = {"/generate": verl_generate}

DIALECTS = {"vllm": VLLM, "sglang": SGLANG, "openai": OPENAI, "generate": GENERATE}


# ---- what all have alike -------------------------------------------------------------------


def prompt_of(request):
    """The ids that a request asks to go on from; None when it asks nothing of the kind."""
    for name in ("token_ids", "input_ids", "prompt", "prompt_ids"):
        if isinstance((request or {}).get(name), list):
            return request[name]
    return None


def tokens_of(request):
    """How many it asks for at most."""
    asked = request if isinstance(request, dict) else {}
    asked = asked.get("sampling_params", asked)
    return next((asked[name] for name in ("n_predict", "max_tokens", "max_new_tokens") if name in asked), None)


def answer(engine, path, request, reply_ids):
    route = DIALECTS[engine.script["dialect"]].get(path)
    lacks = engine.script.get("lacks", []) + ([] if engine.script.get("generate", True) else ["/inference/v1/generate"])
    return route(engine, request, reply_ids) if route and path not in lacks else not_found()


# ---- faults --------------------------------------------------------------------------------


def choice(a):
    return a["choices"][0]


def meta(a):
    return a["meta_info"]


def triples(a):
    return meta(a)["output_token_logprobs"]


def entries(a):
    return choice(a)["logprobs"].get("content", choice(a)["logprobs"].get("token_logprobs"))


def own_score(a):
    """Of the prompt's last token, as a fault has it."""
    return next(iter(a["prompt_logprobs"][-1].values()))


def top_score(a, rank):
    """Of the likeliest in its place, by its rank: its id, and all that is told there."""
    told = a["prompt_logprobs"][-1]
    return next(id for id, one in told.items() if one["rank"] == rank), told


def rename_top(a, rank, name):
    id, told = top_score(a, rank)
    told[name] = told.pop(id)


def drop_top(a, rank):
    id, told = top_score(a, rank)
    told.pop(id)


def change(part, **changes):
    part.update(changes)


# Of answers that tell what a prompt's tokens are worth; others stay as they are.
OF_SCORES = {
    "prompt_null": lambda a: change(own_score(a), logprob=None),
    "prompt_clamped": lambda a: change(own_score(a), logprob=-9999.0),
    "prompt_less": lambda a: a["prompt_logprobs"].pop(),
    "prompt_tops_less": lambda a: change(a, prompt_logprobs=[one and dict(list(one.items())[:1]) for one in a["prompt_logprobs"]]),
    "prompt_tops_named": lambda a: a["prompt_logprobs"][-1].update(word=own_score(a)),
    "prompt_nan": lambda a: change(own_score(a), logprob=float("nan")),
    "prompt_clamped_within": lambda a: change(next(iter(a["prompt_logprobs"][-3].values())), logprob=-9999.0),
    "prompt_tops_one_less": lambda a: drop_top(a, 3),
    "prompt_tops_beyond": lambda a: rename_top(a, 2, "99999"),
    "prompt_tops_more": lambda a: a["prompt_logprobs"][-1].update({"1": {"logprob": -9.9, "rank": 5}}),
    "prompt_tops_ranked": lambda a: a["prompt_logprobs"][-1].update({"1": {"logprob": -0.5, "rank": 1}}),
    "prompt_no_rank": lambda a: a["prompt_logprobs"][-1][top_score(a, 2)[0]].pop("rank"),
    "sgl_tops_more": lambda a: meta(a)["input_top_logprobs"][-1].append([-9.9, 1, None]),
    "sgl_tops_twice": lambda a: meta(a)["input_top_logprobs"][-1].__setitem__(2, meta(a)["input_top_logprobs"][-1][1]),
    "sgl_tops_beyond": lambda a: meta(a)["input_top_logprobs"][-1][1].__setitem__(1, 99999),
    "sgl_clamped": lambda a: meta(a)["input_token_logprobs"][-1].__setitem__(0, -9999.0),
    "sgl_clamped_within": lambda a: meta(a)["input_token_logprobs"][-3].__setitem__(0, -9999.0),
    "sgl_tops_less": lambda a: meta(a)["input_top_logprobs"][-1].pop(),
    "sgl_no_tops": lambda a: meta(a).pop("input_top_logprobs"),
}

FAULTS = {
    **OF_SCORES,
    "no_ids": lambda a: choice(a).pop("token_ids"),
    "no_tokens": lambda a: change(choice(a), token_ids=[]),
    "text_for_ids": lambda a: change(choice(a), token_ids=["x"] * len(choice(a)["token_ids"])),
    "too_many": lambda a: change(choice(a), token_ids=choice(a)["token_ids"] * 10000),
    "one_entry_less": lambda a: entries(a).pop(),
    "one_entry_more": lambda a: entries(a).append(entries(a)[0]),
    "other_id": lambda a: change(entries(a)[0], token_id=255),
    "other_name": lambda a: choice(a)["logprobs"]["tokens"].__setitem__(0, "token_id:255"),
    "positive": lambda a: change(entries(a)[0], logprob=0.5),
    "null": lambda a: change(entries(a)[0], logprob=None),
    "clamped": lambda a: change(entries(a)[0], logprob=-9999.0),
    "prompt_length": lambda a: change(a["usage"], prompt_tokens=a["usage"]["prompt_tokens"] + 1),
    "other_prompt": lambda a: choice(a)["prompt_token_ids"].__setitem__(0, 9),
    "end_at_limit": lambda a: change(choice(a), finish_reason="length"),
    "no_end": lambda a: (choice(a)["token_ids"].pop(), entries(a).pop()),
    "stop_word": lambda a: change(choice(a), finish_reason="repetition"),
    "aborted": lambda a: change(choice(a), finish_reason="abort"),
    "failed": lambda a: change(choice(a), finish_reason="error"),
    "two_versions": lambda a: change(choice(a), weight_versions=[{"version": "v7", "start": 0, "end": 1},
                                                                 {"version": "v8", "start": 1,
                                                                  "end": len(choice(a)["token_ids"])}]),
    "spans_beyond": lambda a: change(choice(a), weight_versions=[{"version": "v7", "start": 0, "end": 1},
                                                                 {"version": "v8", "start": 1, "end": 999}]),
    "sgl_no_entries": lambda a: meta(a).pop("output_token_logprobs"),
    "sgl_one_less": lambda a: triples(a).pop(),
    "sgl_text_for_id": lambda a: triples(a)[0].__setitem__(1, "x"),
    "sgl_null": lambda a: triples(a)[0].__setitem__(0, None),
    "sgl_positive": lambda a: triples(a)[0].__setitem__(0, 0.5),
    "sgl_prompt": lambda a: change(meta(a), prompt_tokens=1),
    "sgl_aborted": lambda a: change(meta(a), finish_reason={"type": "abort", "message": "Aborted"}),
    "sgl_at_limit": lambda a: change(meta(a), finish_reason={"type": "length", "length": 3}),
    "sgl_too_many": lambda a: triples(a).extend(triples(a) * 10000),
    "sgl_no_meta": lambda a: a.pop("meta_info"),
    "sgl_versions": lambda a: change(meta(a), weight_versions=[{"version": "v1", "start": 0, "end": 1},
                                                               {"version": "v2", "start": 1, "end": 9}]),
    "other_text": lambda a: change(choice(a), text="EVIL"),
    "more_text": lambda a: change(choice(a), text=choice(a)["text"] + " EVIL"),
    "no_blanks": lambda a: change(choice(a), text=choice(a)["text"].replace(" ", "")),
    "sgl_other_text": lambda a: change(a, text="EVIL"),
    "sgl_end_in_text": lambda a: change(a, text=a["text"] + "<|im_end|>"),
    "verl_no_ids": lambda a: a.pop("response_ids"),
    "verl_empty": lambda a: change(a, response_ids=[], logprobs=[]),
    "verl_null": lambda a: change(a, logprobs=None),
    "verl_no_logprobs": lambda a: a.pop("logprobs"),
    "verl_one_less": lambda a: a["logprobs"].pop(),
    "verl_one_null": lambda a: a["logprobs"].__setitem__(0, None),
    "verl_positive": lambda a: a["logprobs"].__setitem__(0, 0.5),
    "verl_text_for_id": lambda a: a["response_ids"].__setitem__(0, "x"),
    "verl_too_many": lambda a: (a["response_ids"].extend(a["response_ids"] * 100), a["logprobs"].extend(a["logprobs"] * 100)),
    "verl_part": lambda a: (a["response_ids"].pop(), a["logprobs"].pop()),
    "not_an_object": lambda a: None,
}


def tells_scores(a):
    return a.get("prompt_logprobs") or a.get("meta_info", {}).get("input_token_logprobs")


def break_answer(fault, answer):
    if fault in OF_SCORES and not tells_scores(answer):
        return answer
    FAULTS[fault](answer)
    return [1, 2] if fault == "not_an_object" else answer
