// OpenAI's SDK for JavaScript as a harness: chat and Responses, in one piece and as a stream.
import OpenAI from "openai";

const client = new OpenAI({ maxRetries: 0 }), told = {};
const BASH = { type: "function", function: { name: "bash", description: "Runs a command.", parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } } };
const ask = { model: "any", tools: [BASH], messages: [{ role: "user", content: "do call" }] };

const first = (await client.chat.completions.create(ask)).choices[0];
told.first = [first.message.content, first.finish_reason, first.message.tool_calls[0].function.name, JSON.parse(first.message.tool_calls[0].function.arguments).command];
ask.messages.push(first.message, { role: "tool", tool_call_id: first.message.tool_calls[0].id, content: "a.txt" });

const stream = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } });
const second = await stream.finalChatCompletion();
told.second = [second.choices[0].message.content, second.choices[0].finish_reason, second.usage.completion_tokens > 0];
ask.messages.push({ role: "assistant", content: second.choices[0].message.content }, { role: "user", content: "do call again" });

const third = (await client.chat.completions.stream(ask).finalChatCompletion()).choices[0];
told.third = [third.message.content, third.finish_reason, JSON.parse(third.message.tool_calls[0].function.arguments).command];

const flat = { type: "function", strict: false, ...BASH.function };
const response = await client.responses.create({ model: "any", tools: [flat], input: "do call now" });
const call = response.output.find((item) => item.type === "function_call");
told.response = [response.status, response.output_text, JSON.parse(call.arguments).command];
const events = await client.responses.create({ model: "any", tools: [flat], stream: true, input: [{ role: "user", content: "do call now" }, ...response.output, { type: "function_call_output", call_id: call.call_id, output: "a.txt" }] });
const types = [];
let text = "";
for await (const event of events) {
    types.push(event.type);
    text += event.type === "response.output_text.delta" ? event.delta : "";
    told.usage = event.type === "response.completed" ? event.response.usage.output_tokens > 0 : told.usage;
}
told.events = [types[0], types.at(-1), text];

told.models = (await client.models.list()).data.length;
told.refused = await client.chat.completions.create({ ...ask, n: 2 }).catch((error) => [error.constructor.name, error.status, /\bn\b/.test(error.message)]);
told.unknown = await client.embeddings.create({ model: "any", input: "x" }).catch((error) => [error.constructor.name, error.status]);
console.log("SAID " + JSON.stringify(told));
