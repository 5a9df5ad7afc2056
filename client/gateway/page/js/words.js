/* What the words of the service mean, in a sentence each. */
const STAGES = {
  init: { name: "Set-up", verb: "being set up", wants: "a slot for its set-up", says: "prepares image, files and sandbox" },
  run: { name: "Agent", verb: "at work", wants: "a slot for its run", says: "the agent asks the model and calls tools" },
  eval: { name: "Scoring", verb: "being scored", wants: "a slot for its scoring", says: "the evaluator gives the reward" },
};

const STATES = {
  queued: "waits for a free slot",
  leased: "a worker has it",
  delayed: "waits to be tried again",
};

const OUTCOMES = {
  ok: "it ran to its end and was scored",
  agent: "the agent used up a limit or broke a rule; it counts against the agent, and a trainer may learn from it",
  task: "the task is at fault: its set-up, its files or its evaluator",
  infra: "a machine, an engine or a store failed, several times; neither agent nor task is to blame",
  cancelled: "somebody cancelled it, or its time was over",
};

const ENDS = {
  done: "the agent said it was done",
  turns: "all turns that the task allows were used up",
  tokens: "all tokens that the task allows were sampled",
  length: "the answer was cut off at its greatest length",
  context: "the next prompt did not fit the model's context",
  time: "the time for the run was used up",
  limit: "its sandbox went over a limit",
  loop: "the agent said the same over and over",
  format: "the agent's replies were not in the form that was asked for",
  stale: "the policy had gone on too far",
};

const REASONS = {
  cut: "the reply before was cut off without its end token",
  end: "the reply before ended with another token than the template's",
  rewrite: "the template, or a harness, tells a past reply in other words",
  template: "the template cannot be split at these turns",
  step: "another step of the task begins",
  special: "plain text became special tokens",
  history: "a harness told other words than before",
  branch: "a harness went back and answered in another way",
  prompt: "the prompt was not the trace: a fault of Sluice, noticed and harmless",
};

const LABELS = {
  main: "of the main conversation",
  "sub-agent": "of another conversation that the agent began",
  branch: "a turn that was not gone on from",
  auxiliary: "a request that stands alone, as for a title",
  retold: "a hook told other words than were sampled",
  undelivered: "nobody read it",
};

/* Kinds of time: a name, and what a rollout does in it. The colours are those of the classes k-NAME. */
const KINDS = {
  wait: { name: "in queues", says: "waits in the broker for a slot, an engine or a retry" },
  sandbox: { name: "sandbox", says: "image, layers and sandbox are prepared" },
  queue: { name: "engine's queue", says: "the engine had others to serve first" },
  engine: { name: "waits for the engine", says: "the engine is paused, refuses or fails, and is tried again" },
  sampling: { name: "sampling", says: "the model reads the prompt and writes" },
  tool: { name: "tools", says: "a tool runs" },
  agent: { name: "agent and rest", says: "the agent's own program, the prompt's rendering, packing" },
  waiting: { name: "waits for others", says: "for somebody outside, as a session's loop" },
  evaluating: { name: "scoring", says: "the evaluator runs" },
  packing: { name: "packing", says: "files are packed" },
};

const FLEET_STATES = {
  healthy: "answers",
  failing: "set aside after faults in a row",
  probing: "one job tries whether it is well again",
  silent: "does not answer",
  draining: "gets nothing more",
  paused: "is not called until it is resumed",
  other: "serves another tokenizer or template than its policy",
};

function reasonWord(reason) {
  return (reason || "").split(":")[0].trim();
}

function reasonSentence(reason) {
  return reason ? REASONS[reasonWord(reason)] || reason : "it is the first";
}

function sentence(text) {
  if (!text) return "";
  const value = text.charAt(0).toUpperCase() + text.slice(1).trimEnd();
  return /[.!?:]$/.test(value) ? value : value + ".";
}

/* A failure without what differs from case to case, so that like ones are counted together. */
function sameness(detail) {
  return (detail || "").replace(/https?:\/\/[^\s,;)]+/g, "URL").replace(/\/[\w./-]{8,}/g, "PATH").replace(/\b[0-9a-f]{8,}\b/gi, "ID")
    .replace(/\d[\d,.]*/g, "N").slice(0, 160);
}
