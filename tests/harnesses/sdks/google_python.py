"""Google's SDK for Python as a harness."""
import json
import os

from google import genai
from google.genai import errors, types

client = genai.Client(api_key=os.environ["GEMINI_API_KEY"], http_options=types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"]))
BASH = {"name": "bash", "description": "Runs a command.", "parameters_json_schema": {
    "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
CONFIG = {"tools": [{"function_declarations": [BASH]}], "automatic_function_calling": {"disable": True}}
contents = [types.Content(role="user", parts=[types.Part(text="do call")])]
told = {}


def result(call):
    answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "a.txt"})
    return types.Content(role="user", parts=[types.Part(function_response=answer)])


def chunks():
    return list(client.models.generate_content_stream(model="any", contents=contents, config=CONFIG))


def refusal(request):
    try:
        return request()
    except errors.APIError as error:
        return [type(error).__name__, error.code]


first = client.models.generate_content(model="any", contents=contents, config=CONFIG)
content = first.candidates[0].content
told["first"] = [first.candidates[0].finish_reason.name, next(part.text for part in content.parts if part.text),
                 first.function_calls[0].name, first.function_calls[0].args["command"]]
contents += [content, result(first.function_calls[0])]
second = [chunk for chunk in chunks() if chunk.candidates]
parts = [part for chunk in second if chunk.candidates[0].content for part in chunk.candidates[0].content.parts or []]
told["second"] = [second[-1].candidates[0].finish_reason.name, "".join(part.text or "" for part in parts),
                  second[-1].usage_metadata.candidates_token_count > 0]
contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=[types.Part(text="do call again")])]
told["third"] = [call.args["command"] for chunk in chunks() for call in chunk.function_calls or []]

told["count"] = client.models.count_tokens(model="any", contents="hi").total_tokens > 0
told["refused"] = refusal(lambda: client.models.generate_content(model="any", contents=contents, config={**CONFIG, "stop_sequences": ["x"]})) + [True]
told["unknown"] = refusal(lambda: client.models.embed_content(model="any", contents="x"))
print("SAID " + json.dumps(told))
