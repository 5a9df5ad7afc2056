// Anthropic's SDK for JavaScript as a harness.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ maxRetries: 0 }), told = {};
const BASH = { name: "bash", description: "Runs a command.", input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } };
const ask = { model: "any", max_tokens: 500, tools: [BASH], messages: [{ role: "user", content: "do call" }] };
const shape = (message) => [message.content.map((block) => block.type).join(" "), message.stop_reason, message.content.find((block) => block.type === "text")?.text, message.content.find((block) => block.type === "tool_use")?.input.command];
const result = (message) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: message.content.find((block) => block.type === "tool_use").id, content: "a.txt" }] });

const first = await client.messages.create(ask);
told.first = shape(first);
ask.messages.push({ role: "assistant", content: first.content }, result(first));
const second = await client.messages.stream(ask).finalMessage();
told.second = [...shape(second), second.usage.output_tokens > 0];
ask.messages.push({ role: "assistant", content: second.content }, { role: "user", content: "do call again" });
const third = await client.messages.stream(ask).finalMessage();
told.third = shape(third);
ask.messages.push({ role: "assistant", content: third.content }, result(third));
const types = [];
for await (const event of await client.messages.create({ ...ask, stream: true }))
    types.push(event.type);
told.events = [types[0], types.at(-1)];

told.count = (await client.messages.countTokens({ model: "any", messages: [{ role: "user", content: "hi" }] })).input_tokens > 0;
told.models = (await client.models.list()).data.length;
told.refused = await client.messages.create({ ...ask, stop_sequences: ["x"] }).catch((error) => [error.constructor.name, error.status, /stop_sequences/.test(error.message)]);
told.unknown = await client.messages.batches.list().catch((error) => [error.constructor.name, error.status]);
console.log("SAID " + JSON.stringify(told));
