/* One rollout as the page draws it, the same whether it is live or has ended: messages, turns, traces. */

/* Of a trajectory (docs/trajectory.md). */
function modelOf(t) {
  const model = { messages: (t.messages || []).map((one, index) => ({ ...one, content: one.content || "", index })), turns: [], traces: [] };
  for (const trace of t.traces || []) addTrace(model, trace);
  (t.traces || []).forEach((trace, k) => trace.messages && linkRuns(model, k, trace.messages));
  linkInOrder(model);
  finishModel(model);
  return model;
}

function addTrace(model, trace) {
  const number = model.traces.length;
  const ids = trace.token_ids || [];
  model.traces.push({ number, reason: trace.reason, label: trace.label, length: ids.length, sampled: sum(trace.mask || []) });
  for (const turn of trace.turns || []) {
    const slice = (list) => (list || []).slice(turn.offset, turn.offset + turn.length);
    model.turns.push({ ...turn, trace: number, ids: slice(trace.token_ids), mask: slice(trace.mask), logprobs: slice(trace.logprobs) });
  }
}

function isSampled(message) {
  return message.role === "assistant" && message.sampled !== false;
}

/* The last replies of a list are those of as many turns. */
function linkLast(messages, turns) {
  const replies = messages.filter(isSampled);
  const from = replies.length - turns.length;
  turns.forEach((turn, k) => {
    const message = replies[from + k];
    if (message && !message.turn && !turn.message) {
      message.turn = turn;
      turn.message = message;
    }
  });
}

function linkRuns(model, trace, runs) {
  const said = [];
  for (const run of runs) said.push(...model.messages.slice(run.offset, run.offset + run.length));
  linkLast(said, model.turns.filter((turn) => turn.trace === trace && turn.role === "assistant"));
}

function linkInOrder(model) {
  const free = model.turns.filter((turn) => turn.role === "assistant" && !turn.message);
  linkLast(model.messages.filter((message) => !message.turn), free);
}

/* Numbers of turns from 1, and of each turn that is no reply the tools whose answers it holds. */
function finishModel(model) {
  let number = 0;
  let reply = null;
  for (const turn of model.turns) {
    if (turn.role === "assistant") {
      turn.number = ++number;
      reply = turn.message || null;
    } else {
      turn.number = Math.max(1, number);
      turn.tool = reply ? toolsAfter(model.messages, reply.index) : "";
    }
  }
}

function toolsAfter(messages, index) {
  const names = [];
  for (let k = index + 1; k < messages.length && messages[k].role !== "assistant"; k++) if (messages[k].tool) names.push(firstLine(messages[k].tool, 80));
  return names.join(", ");
}

function firstLine(text, most) {
  const line = (text || "").split("\n", 1)[0];
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
}

/* Which version sampled token k of a turn. */
function versionAt(turn, k) {
  const span = (turn.versions || []).find((one) => k >= one.offset && k < one.offset + one.length);
  return (span ? span.version : turn.version) || "";
}

/* Ends of a rollout's own replies, for the list of groups. */
function lastReply(t) {
  const replies = (t.messages || []).filter((one) => one.role === "assistant");
  return replies.length ? replies[replies.length - 1].content : "";
}
