// Google's SDK for JavaScript as a harness.
import { GoogleGenAI } from "@google/genai";

const client = new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY, httpOptions: { baseUrl: process.env.GOOGLE_GEMINI_BASE_URL, retryOptions: { attempts: 1 } } });
const BASH = { name: "bash", description: "Runs a command.", parametersJsonSchema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] } };
const ask = { model: "any", config: { tools: [{ functionDeclarations: [BASH] }] }, contents: [{ role: "user", parts: [{ text: "do call" }] }] };
const told = {};
const result = (call) => ({ role: "user", parts: [{ functionResponse: { id: call.id, name: call.name, response: { output: "a.txt" } } }] });

const first = await client.models.generateContent(ask);
told.first = [first.candidates[0].finishReason, first.candidates[0].content.parts.find((part) => part.text)?.text, first.functionCalls[0].name, first.functionCalls[0].args.command];
ask.contents.push(first.candidates[0].content, result(first.functionCalls[0]));

const parts = [];
let finish, sampled;
for await (const chunk of await client.models.generateContentStream(ask)) {
    parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
    finish = chunk.candidates?.[0]?.finishReason ?? finish;
    sampled = chunk.usageMetadata?.candidatesTokenCount ?? sampled;
}
told.second = [finish, parts.map((part) => part.text ?? "").join(""), sampled > 0];
ask.contents.push({ role: "model", parts }, { role: "user", parts: [{ text: "do call again" }] });

const calls = [];
for await (const chunk of await client.models.generateContentStream(ask))
    calls.push(...(chunk.functionCalls ?? []));
told.third = calls.map((call) => call.args.command);

told.count = (await client.models.countTokens({ model: "any", contents: "hi" })).totalTokens > 0;
told.refused = await client.models.generateContent({ ...ask, config: { ...ask.config, stopSequences: ["x"] } }).catch((error) => [error.constructor.name, error.status, /stopSequences/.test(error.message)]);
told.unknown = await client.models.embedContent({ model: "any", contents: "x" }).catch((error) => [error.constructor.name, error.status]);
console.log("SAID " + JSON.stringify(told));
