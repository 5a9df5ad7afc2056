"""OpenAI's SDK for Python as a harness: chat and Responses, in one piece and as a stream."""
import json

import openai

client, told = openai.OpenAI(max_retries=0), {}
BASH = {"type": "function", "function": {"name": "bash", "description": "Runs a command.", "parameters": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}
messages = [{"role": "user", "content": "do call"}]
ask = {"model": "any", "tools": [BASH], "messages": messages}


def refusal(request):
    try:
        return request()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code]


first = client.chat.completions.create(**ask).choices[0]
told["first"] = [first.message.content, first.finish_reason, first.message.tool_calls[0].function.name,
                 json.loads(first.message.tool_calls[0].function.arguments)["command"]]
messages += [first.message, {"role": "tool", "tool_call_id": first.message.tool_calls[0].id, "content": "a.txt"}]
with client.chat.completions.stream(**ask, stream_options={"include_usage": True}) as stream:
    second = stream.get_final_completion()
told["second"] = [second.choices[0].message.content, second.choices[0].finish_reason, second.usage.completion_tokens > 0]
messages += [{"role": "assistant", "content": second.choices[0].message.content}, {"role": "user", "content": "do call again"}]
with client.chat.completions.stream(**ask) as stream:
    third = stream.get_final_completion().choices[0]
told["third"] = [third.message.content, third.finish_reason, json.loads(third.message.tool_calls[0].function.arguments)["command"]]

flat = {"type": "function", "strict": False, **BASH["function"]}
response = client.responses.create(model="any", tools=[flat], input="do call now")
call = next(item for item in response.output if item.type == "function_call")
told["response"] = [response.status, response.output_text, json.loads(call.arguments)["command"]]
events = list(client.responses.create(model="any", tools=[flat], stream=True, input=[
    {"role": "user", "content": "do call now"}, *response.output,
    {"type": "function_call_output", "call_id": call.call_id, "output": "a.txt"}]))
told["usage"] = events[-1].response.usage.output_tokens > 0
told["events"] = [events[0].type, events[-1].type, "".join(e.delta for e in events if e.type == "response.output_text.delta")]

told["models"] = len(client.models.list().data)
told["refused"] = refusal(lambda: client.chat.completions.create(**ask, n=2)) + [True]
told["unknown"] = refusal(lambda: client.embeddings.create(model="any", input="x"))
print("SAID " + json.dumps(told))
