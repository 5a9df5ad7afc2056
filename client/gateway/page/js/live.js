/* A rollout while it works, from batches of events (docs/live.md). A part is one attempt of a stage; number 1 begins it anew. */
const PARTS_MAX = 24;

function newPart(batch) {
  return { stage: batch.stage, attempt: batch.attempt, next: 1, messages: new Map(), turns: new Map(), traces: [], phases: [], past: [],
    samplings: new Map(), leftOut: null, end: null, lastMs: 0, heardAt: Date.now() };
}

function newLive() {
  return { parts: new Map(), state: null, ended: false, dropped: 0, changes: 0 };
}

function takeBatch(live, batch) {
  live.changes += 1;
  if (!batch.stage) {
    for (const event of batch.events || []) takeOwn(live, event);
    return;
  }
  const key = batch.stage + "/" + batch.attempt;
  let part = live.parts.get(key);
  if (!part || batch.number === 1) {
    live.parts.delete(key);
    live.parts.set(key, (part = newPart(batch)));
    if (live.parts.size > PARTS_MAX) live.parts.delete(live.parts.keys().next().value);
  }
  part.next = batch.number + (batch.events || []).length;
  for (const event of batch.events || []) {
    if (isNumber(event.ms)) {
      part.lastMs = Math.max(part.lastMs, event.ms);
      part.heardAt = Date.now();
    }
    const take = TAKE[event.event];
    if (take) take(part, event);
  }
}

function takeOwn(live, event) {
  if (event.event === "state") live.state = event;
  else if (event.event === "dropped") live.dropped += event.count || 0;
  else if (event.event === "ended") live.ended = true;
}

const TAKE = {
  "left-out": (part, event) => {
    part.leftOut = event;
  },
  times: (part, event) => {
    part.past = Object.entries(event.seconds || {}).map(([kind, seconds]) => ({ kind: KINDS[kind] ? kind : "agent", ms: seconds * 1000 }));
    part.pastMs = event.ms;
  },
  phase: (part, event) => {
    part.phases.push(event);
    if (part.phases.length > 4000) part.phases.shift();
  },
  message: (part, event) => {
    part.messages.set(event.index, { ...event, content: event.content || "" });
    if (event.role === "assistant") for (const [key, one] of part.samplings) if (one.isComplete) part.samplings.delete(key);
  },
  trace: (part, event) => {
    part.traces[event.trace] = { number: event.trace, reason: event.reason };
  },
  turn: (part, event) => {
    part.turns.set(event.turn, { ...event, length: event.tokens, ids: [], mask: [], logprobs: [] });
  },
  tokens: (part, event) => {
    const turn = part.turns.get(event.turn);
    if (!turn) return;
    (event.ids || []).forEach((id, k) => {
      turn.ids[event.offset + k] = id;
      turn.mask[event.offset + k] = event.mask;
      turn.logprobs[event.offset + k] = event.mask && event.logprobs ? event.logprobs[k] : 0;
    });
  },
  delta: (part, event) => {
    const one = part.samplings.get(event.sampling) || { text: "", isComplete: false };
    one.text = (one.text + event.text).slice(-65536);
    part.samplings.set(event.sampling, one);
  },
  sampled: (part, event) => {
    const one = part.samplings.get(event.sampling);
    if (one) one.isComplete = true;
  },
  "taken-back": (part, event) => {
    part.samplings.delete(event.sampling);
  },
  end: (part, event) => {
    part.end = event;
  },
};

/* The latest attempt of each stage, in the order of a rollout's life. */
function latestParts(live) {
  const latest = new Map();
  for (const part of live.parts.values()) {
    const one = latest.get(part.stage);
    if (!one || one.attempt <= part.attempt) latest.set(part.stage, part);
  }
  return ["init", "run", "eval"].map((stage) => latest.get(stage)).filter(Boolean);
}

/* As modelOf (js/model.js) makes it of a trajectory. */
function modelOfLive(live) {
  const model = { messages: [], turns: [], traces: [], samplings: [], leftOut: null };
  for (const part of latestParts(live)) {
    const first = model.turns.length;
    const messages = [...part.messages.values()].sort((a, b) => a.index - b.index).map((one) => ({ ...one, turn: null, key: part.stage + one.index }));
    for (const one of messages) model.messages.push({ ...one, index: model.messages.length });
    for (const turn of part.turns.values()) model.turns.push({ ...turn, message: null });
    for (const trace of part.traces) {
      if (!trace) continue;
      const turns = model.turns.slice(first).filter((one) => one.trace === trace.number);
      model.traces.push({ ...trace, length: sum(turns.map((one) => one.length)), sampled: sum(turns.filter((one) => one.role === "assistant").map((one) => one.length)) });
    }
    model.leftOut = model.leftOut || part.leftOut;
    for (const [key, one] of part.samplings) model.samplings.push({ key: part.stage + part.attempt + "/" + key, ...one });
  }
  linkInOrder(model);
  finishModel(model);
  return model;
}

/* Spans for js/gantt.js: exact since this page looks, sums before that. */
function spansOfLive(live) {
  const spans = [];
  let at = 0;
  const push = (kind, ms, label) => {
    if (ms <= 0) return;
    spans.push({ kind, ms, start: at, label });
    at += ms;
  };
  for (const part of latestParts(live)) {
    const began = at;
    for (const one of part.past) push(one.kind, one.ms, part.stage + ", before this page looked");
    part.phases.forEach((one, k) => {
      const next = part.phases[k + 1];
      const until = next ? next.ms : partNow(part);
      push(KINDS[one.phase] ? one.phase : "agent", until - one.ms, phaseLabel(part, one));
    });
    at = Math.max(at, began);
  }
  return spans;
}

function phaseLabel(part, phase) {
  return part.stage + (phase.turn ? ", turn " + phase.turn : "") + (phase.of ? ": " + phase.of : "");
}

function partNow(part) {
  return part.end ? part.lastMs : part.lastMs + (Date.now() - part.heardAt);
}

/* {kind, of, ms}: what it is at right now. */
function phaseNow(live) {
  const parts = latestParts(live);
  const part = parts[parts.length - 1];
  if (!part || part.end || !part.phases.length) return null;
  const last = part.phases[part.phases.length - 1];
  return { kind: KINDS[last.phase] ? last.phase : "agent", of: last.of, ms: partNow(part) - last.ms };
}
