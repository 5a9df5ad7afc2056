"""Answers of a scripted engine as streams, as vLLM and SGLang (--incremental-streaming-output) send them: an event a token, or, where
a request has a "stream_interval", of so many behind the first. A script's "intervals" is false for servers that do not know it, and
"refused" for those that refuse it.

A rule's "piece_bytes" is how many bytes of an event are sent at once; all of them if it is not there. "token_ms" is the time between two events; "cut_after" how many tokens are sent before the connection is closed, and
"stall_after" before nothing more comes while the client is there. "stream_error" takes the place of the event behind so many: it
tells of an error. A prompt that ends in the beginning of a reply is answered with the rest of it. A script's "streams" is false for
servers that refuse to, and "whole" for those that answer at once whatever they were asked for.
"""
import codecs
import json

REFUSAL = 400, {"error": {"message": "this server does not stream", "type": "BadRequestError", "code": 400}}
ERROR = {"error": {"message": "it broke", "type": "InternalServerError", "code": 500}}


def wants_stream(request):
    return isinstance(request, dict) and request.get("stream") is True


def rest_of(model, prompt, reply_ids):
    """What is left of a reply to say, if the prompt has its beginning already."""
    start = model.encode("<|im_start|>assistant\n", True)
    for at in range(len(prompt) - len(start), -1, -1):
        if prompt[at:at + len(start)] == start:
            begun = prompt[at + len(start):]
            return reply_ids[len(begun):] if begun and reply_ids[:len(begun)] == begun else reply_ids
    return reply_ids


def texts_of(model, ids, swapped, is_ended):
    """What each token adds to the text: nothing before a character is whole."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    texts = [decoder.decode(swapped(id)) for id in ids]
    if texts and not is_ended:
        texts[-1] += decoder.decode(b"", True)
    return texts


def interval_of(engine, request):
    """How many tokens an event is to have."""
    asked = request.get("stream_interval") or request.get("sampling_params", {}).get("stream_interval")
    return asked if asked and engine.script.get("intervals", True) is True else 1


def refuses(engine, request):
    return engine.script.get("streams", True) is False or (
        engine.script.get("intervals") == "refused" and "stream_interval" in json.dumps(request))


def parts(count, interval):
    """The first token is told at once."""
    ends = [1, *range(1 + interval, count, interval)] + [count] if count > 1 else [count]
    return list(zip([0, *ends], ends))


def vllm_events(engine, answer, interval):
    choice = answer["choices"][0]
    count, logprobs, finish = len(choice["token_ids"]), choice["logprobs"], choice["finish_reason"]
    texts = texts_of(engine.model, choice["token_ids"], engine.word, finish == "stop") if "text" in choice else None
    for start, end in parts(count, interval):
        part = {"index": 0, "token_ids": choice["token_ids"][start:end], "finish_reason": None if end < count else finish}
        if texts is None:
            part["logprobs"] = {"content": logprobs["content"][start:end]}
            if end == count:
                part["weight_versions"] = choice["weight_versions"]
        else:
            part["text"] = "".join(texts[start:end])
            part["logprobs"] = {name: logprobs[name][start:end] for name in ("token_logprobs", "tokens")}
            if start == 0:
                part["prompt_token_ids"] = choice.get("prompt_token_ids")
        yield {"choices": [part]}
    yield {"choices": [], "usage": answer["usage"]}


def sglang_events(engine, answer, interval):
    meta, ids = answer["meta_info"], answer["output_ids"]
    texts = texts_of(engine.model, ids, engine.word, meta["finish_reason"]["type"] == "stop")
    for start, end in parts(len(ids), interval):
        yield {"text": "".join(texts[start:end]), "output_ids": ids[start:end],
               "meta_info": dict(meta, output_token_logprobs=meta["output_token_logprobs"][start:end], completion_tokens=end,
                                 finish_reason=meta["finish_reason"] if end == len(ids) else None)}


def send(handler, engine, rule, request, answer):
    """An event at a time; the log has the whole answer."""
    events = list((sglang_events if "meta_info" in answer else vllm_events)(engine, answer, interval_of(engine, request)))
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for i, event in enumerate(events):
        if i == rule.get("cut_after"):
            return handler.cut()
        if i == rule.get("stall_after"):
            handler.close_connection = True
            return handler.wait(600)
        if i == rule.get("stream_error"):
            event = ERROR
        if i > 0 and rule.get("token_ms"):
            if handler.wait(rule["token_ms"] / 1000):
                handler.close_connection = True
                return None
        put(handler, "data: " + json.dumps(event) + "\n\n", rule.get("piece_bytes"))
        if event is ERROR:
            break
    put(handler, "data: [DONE]\n\n")
    handler.wfile.write(b"0\r\n\r\n")
    return None


def put(handler, text, piece_bytes=None):
    data = text.encode()
    for at in range(0, len(data), piece_bytes or len(data)):
        piece = data[at:at + (piece_bytes or len(data))]
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        handler.wfile.flush()
