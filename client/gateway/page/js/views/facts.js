/* What a trajectory tells beside its conversation: reward, tests, sandbox, traces, whose tokens they are. */
const TESTS_SHOWN = 200;

function endedFacts(t, model) {
  return [rewardCard(t), testsCard(t), card("Traces", {}, traceList(model)), sandboxCard(t), tamperCard(t), aboutCard(t), metadataCard(t)];
}

function rewardCard(t) {
  const big = el("p.reward-big", null, el("i." + rewardClass(t.reward)), el("b", null, isNumber(t.reward) ? reward(t.reward) : "none"),
    el("span.quiet", null, t.trainable ? "a trainer may learn from it" : "not for training"));
  const parts = (t.parts || []).map((one) => bar(one.name, one.value, one.weight === 1 ? "" : "weight " + reward(one.weight)));
  const metrics = (t.metrics || []).slice(0, 64).map((one) => [one.name, reward(one.value)]);
  return card("Reward", {}, big, isNumber(t.raw_reward) && t.raw_reward !== t.reward ? el("p.quiet", null, "The evaluator's own number, before shaping: " + reward(t.raw_reward)) : null,
    parts.length ? el("div.bars", null, parts) : null, metrics.length ? facts(...metrics) : null);
}

function bar(name, value, more) {
  const inner = meter(name);
  inner.update(value);
  return el("div.bar-row", null, el("span", null, name), el("b", null, reward(value)), inner, more ? el("small.quiet", null, more) : null);
}

function testsCard(t) {
  if (!t.tests) return null;
  const { passed, failed, skipped, error } = t.tests;
  const list = [...(t.tests.list || [])].sort((a, b) => (a.status === "passed") - (b.status === "passed")).slice(0, TESTS_SHOWN);
  const rows = list.map((one) => {
    const head = el("summary", null, el("i.dot.is-" + one.status), el("span.test-name", null, one.name), one.seconds ? el("small.quiet", null, duration(1000 * one.seconds)) : null);
    return el("li", null, el("details", null, head, el("pre.text", null, one.message || one.status)));
  });
  return card("Tests", { aside: count(passed) + " of " + count(passed + failed + error) + " passed" }, el("ul.tests", null, rows),
    skipped ? el("p.quiet", null, plural(skipped, "test was", "tests were") + " skipped") : null);
}

function traceList(model) {
  if (!model.traces.length) return el("p.quiet", null, "No trace yet.");
  const sampled = (one) => percent(one.sampled, one.length) + " sampled";
  return el("ol.trace-list", null, model.traces.slice(0, 64).map((one) => el("li", null,
    el("b", null, plural(one.length, "token") + ", " + sampled(one)), el("span.quiet", null, sentence(one.reason ? "it starts as " + reasonSentence(one.reason) : reasonSentence("")) +
      (one.label ? " " + sentence(one.label + ": " + (LABELS[one.label] || "")) : "")), one.reason ? el("small.mono", null, one.reason) : null)));
}

function sandboxCard(t) {
  const one = t.sandbox;
  if (!one) return null;
  return card("Sandbox", {}, facts(["CPU time", duration(1000 * one.cpu_seconds)], ["peak memory", bytes(1024 * one.peak_memory_kib)], ["peak processes", count(one.peak_processes)],
    ["peak disk", bytes(one.peak_disk_bytes)], ["peak files", count(one.peak_inodes)], ["commands", count(one.commands) + (one.timed_out ? ", " + one.timed_out + " timed out" : "")],
    ["output", bytes(one.output_bytes) + (one.cut_bytes ? ", " + bytes(one.cut_bytes) + " not shown to the agent" : "")]),
    (one.breaches || []).map((breach) => chip("limit reached: " + breach.limit + ", " + plural(breach.count, "time"), "bad")));
}

function tamperCard(t) {
  if (!t.tamper) return null;
  return card("Touched by the agent", { aside: plural(t.tamper.count, "file") }, el("p.quiet", null, "Files that an evaluator may run or be influenced by. Often legitimate: look here after a surprising reward."),
    el("ul.reasons.mono", null, (t.tamper.files || []).map((one) => el("li", null, one.what + ": /" + one.path))));
}

function aboutCard(t) {
  return card("About it", {}, facts(["task", t.task], ["stream", el("a", { href: path("stream", t.stream) }, t.stream + ", number " + t.seq)], ["group", el("a", { href: path("group", t.group) }, t.group)],
    ["ended", new Date(t.ended_ms).toLocaleString("en-GB")], ["how the agent ended", t.end ? t.end + ": " + (ENDS[t.end] || "") : ""], ["in words", t.detail], ["agent", t.agent], ["engine", host(t.engine)],
    ["attempts of the run", t.run_attempt > 1 ? t.run_attempt : ""], ["log-probabilities", t.logprobs_mode], ["evaluated in", t.eval_sandbox === "agent" ? "the agent's own sandbox" : ""],
    ["tokenizer", digest(t.tokenizer_digest)], ["template", digest(t.template_digest)]));
}

function digest(text) {
  return text ? el("code", { title: text }, text.replace(/^sha256:/, "").slice(0, 12)) : "";
}

function metadataCard(t) {
  if (!t.metadata || !Object.keys(t.metadata).length) return null;
  return card("Metadata", {}, el("pre.text.metadata", null, JSON.stringify(t.metadata, null, 2).slice(0, 20000)));
}
