/* Why things are as they are, in sentences: the fleet, a live rollout, an ended one. Each returns strings. */

/* {head, why, hint}: what the fleet waits for. */
function explainFleet(status) {
  if (!status) return { head: "Waiting for the first word of the broker", why: "", hint: "" };
  const stages = status.stages || {};
  const rollouts = status.rollouts || {};
  const part = status.bottleneck && status.bottleneck.part;
  if (status.health === "down") return { head: "Work stands still", why: sentence((status.reasons || [])[0]), hint: sentence((status.advice || [])[0]) };
  if (part) {
    const name = part === "engines" ? "engines" : STAGES[part] ? part + " slots" : part;
    return { head: "Rollouts wait for " + name, why: sentence(status.bottleneck.why), hint: bottleneckHint(part) };
  }
  if (!rollouts.live) return { head: "Nothing to do", why: "No rollout is live: all that was submitted has ended.", hint: "Submit tasks, and they begin at once." };
  const waits = Object.entries(stages).map(([stage, jobs]) => waitOf(stage, jobs)).filter(Boolean);
  if (waits.length) return { head: waits[0].head, why: waits[0].why, hint: sentence((status.advice || [])[0]) };
  const run = stages.run || {};
  return { head: "Nothing holds it up",
    why: run.free ? plural(run.free, "run slot is", "run slots are") + " free: more rollouts could be at work." : "Slots are taken, and next to nothing waits.",
    hint: "" };
}

function waitOf(stage, jobs) {
  const name = STAGES[stage] ? STAGES[stage].name.toLowerCase() : stage;
  if (jobs.no_engine) return { head: "Rollouts wait for an engine", why: plural(jobs.no_engine, "job has", "jobs have") + " no engine that may take it." };
  if (jobs.no_offer) return { head: "Rollouts wait for a handler", why: plural(jobs.no_offer, "job waits", "jobs wait") + " for a worker that offers what it needs." };
  if (jobs.delayed > (jobs.leased || 0)) return { head: "Many are being tried again", why: plural(jobs.delayed, name + " job", name + " jobs") + " failed and wait for the next try." };
  if (jobs.queued > (jobs.slots || 0) && !jobs.free) return { head: "Rollouts wait for " + stage + " slots", why: plural(jobs.queued, "job waits", "jobs wait") + "." };
  return null;
}

function bottleneckHint(part) {
  if (part === "engines") return "More engines, or a higher limit of those there are, would let more rollouts work at once.";
  return "More " + part + " workers, or more slots on those there are, would shorten the queue.";
}

/* Of a trajectory or a summary: how it ended. */
function explainEnd(t) {
  const end = t.end && ENDS[t.end] ? ENDS[t.end] : "";
  if (t.outcome === "ok") {
    const scored = isNumber(t.reward) ? "the evaluator gave a reward of " + reward(t.reward) : "nobody scored it";
    return sentence("it ran to its end" + (end ? ": " + end : "") + ", and " + scored);
  }
  if (t.outcome === "agent") return sentence("the agent did not make it: " + (end || t.detail || "it broke a rule"));
  if (t.outcome === "task") return sentence("the task is at fault, not the agent: " + (t.detail || "no more is known"));
  if (t.outcome === "infra") return sentence("the service failed it, not the agent: " + (t.detail || "no more is known"));
  return sentence("it was cancelled" + (t.detail ? ": " + t.detail : ""));
}

/* Where its time went: `parts` as partsOf (js/gantt.js) gives them. */
function explainTime(total, parts, longest) {
  if (!total) return "";
  const first = [...parts].sort((a, b) => b.ms - a.ms)[0];
  if (!first) return "";
  const much = first.ms > total / 2 ? "Most of it" : "The largest part";
  let text = "It took " + duration(total) + ". " + much + ", " + duration(first.ms) + " (" + percent(first.ms, total) + "), was " +
    { wait: "waiting in queues", sampling: "the model's sampling", queue: "waiting in the engine's own queue", tool: "tools at work",
      evaluating: "scoring", sandbox: "preparing its sandbox", engine: "waiting for the engine", agent: "the agent's own program and what is between",
      waiting: "waiting for others", packing: "packing files" }[first.kind] + ".";
  if (longest && longest.ms > 0.15 * total && longest.kind !== "wait" && longest.ms < first.ms) text += " The longest single step: " + longest.label + ", " + duration(longest.ms) + ".";
  return text;
}

const PEERS_MIN = 8;

/* Against others of its stream; "" where it is like them. */
function explainPeers(t, others) {
  const total = totalMs(t);
  if (others.count < PEERS_MIN || !others.total || total < 1.5 * others.total) return "";
  const names = { wait: "its waiting", init: "its set-up", run: "its run", eval: "its scoring" };
  const part = Object.keys(names).map((name) => ({ name, more: (t[name + "_ms"] || 0) - (others[name] || 0) })).sort((a, b) => b.more - a.more)[0];
  const usual = others[part.name] || 0;
  return "That is " + (total / others.total).toFixed(1) + " times what the middle one of its stream takes (" + duration(others.total) + "), by " +
    names[part.name] + ": " + duration(t[part.name + "_ms"]) + " where " + duration(usual) + " is usual.";
}

/* Of a rollout that has not ended: `state` as the list or its events tell. */
function explainLive(state, phase) {
  const stage = STAGES[state.stage];
  const times = state.attempt > 1 ? ", for the " + ordinal(state.attempt) + " time" : "";
  let text;
  if (state.state === "leased") {
    text = "It is " + (stage ? stage.verb : "at work") + times + (state.turn ? ", in turn " + state.turn : "") +
      (state.tool ? "; the tool that it called last is " + state.tool : "") + ".";
    if (phase && KINDS[phase.kind]) text += " Right now: " + KINDS[phase.kind].name + (phase.of ? " (" + phase.of + ")" : "") + ", for " + duration(phase.ms) + ".";
  } else if (state.state === "delayed") {
    text = "It waits to be tried again" + times + ".";
  } else {
    text = "It waits for " + (stage ? stage.wants : "its turn") + times + (isNumber(state.for_ms) ? ", for " + duration(state.for_ms) : "") + ".";
  }
  return text;
}

function ordinal(value) {
  return value + (value % 100 > 10 && value % 100 < 14 ? "th" : { 1: "st", 2: "nd", 3: "rd" }[value % 10] || "th");
}
