"""Anthropic's SDK for Python as a harness."""
import json

import anthropic

client, told = anthropic.Anthropic(max_retries=0), {}
BASH = {"name": "bash", "description": "Runs a command.", "input_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
messages = [{"role": "user", "content": "do call"}]
ask = {"model": "any", "max_tokens": 500, "tools": [BASH], "messages": messages}


def one(message, kind):
    return next((block for block in message.content if block.type == kind), None)


def shape(message):
    text, call = one(message, "text"), one(message, "tool_use")
    return [" ".join(block.type for block in message.content), message.stop_reason, text and text.text, call and call.input["command"]]


def result(message):
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one(message, "tool_use").id, "content": "a.txt"}]}


def refusal(request):
    try:
        return request()
    except anthropic.APIStatusError as error:
        return [type(error).__name__, error.status_code]


def streamed():
    with client.messages.stream(**ask) as stream:
        return stream.get_final_message()


first = client.messages.create(**ask)
told["first"] = shape(first)
messages += [{"role": "assistant", "content": first.content}, result(first)]
second = streamed()
told["second"] = shape(second) + [second.usage.output_tokens > 0]
messages += [{"role": "assistant", "content": second.content}, {"role": "user", "content": "do call again"}]
third = streamed()
told["third"] = shape(third)
messages += [{"role": "assistant", "content": third.content}, result(third)]
events = [event.type for event in client.messages.create(**ask, stream=True)]
told["events"] = [events[0], events[-1]]

told["count"] = client.messages.count_tokens(model="any", messages=[{"role": "user", "content": "hi"}]).input_tokens > 0
told["models"] = len(client.models.list().data)
told["refused"] = refusal(lambda: client.messages.create(**ask, stop_sequences=["x"])) + [True]
told["unknown"] = refusal(lambda: client.messages.batches.list())
print("SAID " + json.dumps(told))
