/* One rollout, live or ended: why it is as it is, where its time went, what is said in it, its tokens. */
function rolloutView(parts) {
  const name = parts[1] + "/" + parts[2];
  const source = rolloutSource(name, draw);
  const { shown } = source;
  const nodes = { mark: el("span.chip"), words: el("div.words"), where: gantt("Where its time went"), inside: gantt("The run alone"), side: el("div.side"), siblings: el("div") };
  nodes.insideBox = el("div", { hidden: true }, el("h3.gantt-title", null, "The run alone, turn by turn"), nodes.inside);
  const talk = talkCard(shown);
  const timing = card("Where its time went", {}, nodes.where, nodes.insideBox);
  const node = el("div.panel.one", null,
    el("nav.crumbs", { "aria-label": "Where this is" }, el("a", { href: "#/rollouts" }, "Rollouts"), " / ", el("a", { href: path("group", parts[1]) }, parts[1]), " / " + parts[2]),
    el("div.one-head", null, el("h1", null, name), nodes.mark, nodes.siblings),
    el("section.card.why", { "aria-label": "Why" }, nodes.words), timing, el("div.columns", null, talk, nodes.side));

  function draw() {
    const isKnown = shown.trajectory || shown.state;
    for (const one of [timing, talk]) show(one, Boolean(isKnown));
    if (shown.trajectory) drawEndedOne(shown, nodes);
    else if (shown.state) drawLiveOne(shown, nodes);
    else if (shown.error) drawUnknown(shown, nodes);
    if (isKnown) talk.update();
  }

  fill(nodes.words, el("p.lead", null, "Looking it up…"));
  source.load();
  const clockTimer = setInterval(() => {
    if (!shown.trajectory && shown.state && !document.hidden) draw();
  }, 500);
  return { node, title: name, update(changes) {
    if (changes.has("rollout")) draw();
    if (changes.has("ended") && shown.state && !shown.trajectory && newest((one) => one.rollout === name, 1).length) source.load();
    if (changes.has("ended") && shown.trajectory && shown.peers < PEERS_MIN) drawEndedWords(shown, nodes.words);
    if (changes.has("live") && !shown.trajectory && shown.state) refreshState(shown, name);
  }, stop() {
    source.stop();
    clearInterval(clockTimer);
  } };
}

/* What was said, as text or as tokens. It goes on in sight while the page stands at its end. */
function talkCard(shown) {
  const said = conversation();
  const tokens = tokenTraces();
  const legend = tokenLegend();
  const nothing = el("div");
  const modes = segments("Text or tokens", [["text", "Text"], ["tokens", "Tokens"]], "text", (value) => {
    shown.mode = value;
    modes.update(value);
    node.update();
  });
  const node = card("What was said", { aside: modes, className: "talk" }, legend, said, tokens, nothing);
  node.update = () => {
    const model = shown.trajectory ? shown.model : modelOfLive(shown.live);
    const isText = shown.mode === "text";
    const atEnd = !shown.trajectory && innerHeight + scrollY >= document.documentElement.scrollHeight - 60 && scrollY > 0;
    show(said, isText);
    show(tokens, !isText);
    show(legend, model.turns.some((turn) => turn.ids.length));
    if (isText) said.update(model);
    else tokens.update(model);
    const isEmpty = isText ? !model.messages.length && !(model.samplings || []).length : !model.turns.length;
    show(nothing, isEmpty);
    if (isEmpty) fill(nothing, shown.trajectory ? empty("Nothing was said", "Its agent never asked the model.") : empty("Nothing is heard yet", "What is said appears here as it is said."));
    if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
  };
  return node;
}

function drawUnknown(shown, nodes) {
  setChip(nodes.mark, shown.error === UNKNOWN ? "not found" : "no answer", "bad");
  fill(nodes.words, el("p.lead", null, shown.error));
}

async function drawGroup(group, node) {
  try {
    const answer = await ask(withQuery("/rollouts", { ended: "true", group, limit: 64 }));
    const list = (answer.rollouts || []).map((one) => ({ ...one, sample: Number(one.rollout.slice(one.rollout.lastIndexOf("/") + 1)) }));
    if (list.length > 1) fill(node, el("span.quiet", null, "its group "), sampleDots(list, list.length));
  } catch (error) {
    // The group's other samples are an extra.
  }
}

/* The list knows how long it has been where it is, which a state does not say. */
function refreshState(shown, name) {
  const one = store.live.rollouts.find((other) => other.rollout === name);
  if (one) shown.listed = { ...one, at: Date.now() };
}

function drawLiveOne(shown, nodes) {
  const state = { ...(shown.listed && shown.listed.stage === shown.state.stage && shown.listed.state === shown.state.state ? { for_ms: shown.listed.for_ms + Date.now() - shown.listed.at } : {}), ...shown.state };
  setChip(nodes.mark, state.stage + (state.state === "leased" ? ", live" : " " + state.state), state.state === "leased" ? state.stage : "wait");
  const lines = [explainLive(state, phaseNow(shown.live))];
  if (state.why) lines.push("Why it does not get on: " + sentence(state.why).replace(/^It waits/, "it waits"));
  else if (state.state === "queued" && store.status && store.status.bottleneck) lines.push("The fleet: " + sentence(store.status.bottleneck.why));
  if (shown.trouble) lines.push("It cannot be watched just now: " + shown.trouble);
  if (shown.live.dropped) lines.push(plural(shown.live.dropped, "event was", "events were") + " dropped on the way here and told anew; the trajectory will have all.");
  paragraphs(nodes.words, lines);
  const spans = spansOfLive(shown.live);
  nodes.where.update(spans, 0);
  show(nodes.where.parentNode, spans.length > 0);
  if (!nodes.side.isLive) {
    nodes.side.isLive = true;
    fill(nodes.side, card("Where it is", {}, el("div")));
  }
  const model = modelOfLive(shown.live);
  fill(nodes.side.firstChild.lastChild, facts(["stage", state.stage], ["state", state.state === "leased" ? "at work" : state.state], ["attempt", state.attempt], ["worker", state.worker],
    ["turn", state.turn], ["last tool", state.tool], ["sampled", plural(sum(model.traces.map((one) => one.sampled)), "token")], ["traces", model.traces.length]), traceList(model));
}

function drawEndedOne(shown, nodes) {
  const t = shown.trajectory;
  if (shown.drawn === t) return;
  shown.drawn = t;
  setChip(nodes.mark, t.outcome, t.outcome, OUTCOMES[t.outcome]);
  const spans = spansOf(t, shown.model);
  const total = totalMs(t);
  drawEndedWords(shown, nodes.words);
  drawGroup(t.group, nodes.siblings);
  show(nodes.where.parentNode, true);
  nodes.where.update(spans, total);
  const run = runSpans(shown.model);
  const worthIt = run.length > 1 && t.run_ms < 0.8 * total;
  show(nodes.insideBox, worthIt);
  if (worthIt) {
    let at = 0;
    for (const one of run) {
      one.start = at;
      at += one.ms;
    }
    nodes.inside.update(run, at);
  }
  nodes.side.isLive = false;
  fill(nodes.side, endedFacts(t, shown.model));
}

/* Again when the page has come to know more of its stream. */
function drawEndedWords(shown, node) {
  const t = shown.trajectory;
  const spans = spansOf(t, shown.model);
  const others = peers(t.stream);
  shown.peers = others.count;
  paragraphs(node, [explainEnd(t), explainTime(totalMs(t), partsOf(spans), longestOf(spans)), explainPeers(t, others), explainTalk(t, shown.model)].filter(Boolean));
}

function paragraphs(node, lines) {
  if (!made.has(node)) fill(node);
  keyed(node, lines.map((text, k) => ({ text, k })), (one) => "p" + one.k, (one) => el(one.k ? "p" : "p.lead"), (child, one) => say(child, one.text));
}

function explainTalk(t, model) {
  const replies = model.turns.filter((turn) => turn.role === "assistant");
  if (!replies.length) return "";
  const cut = replies.filter((turn) => turn.finish === "length").length;
  const failed = model.messages.filter((one) => one.role === "tool" && one.exit_status).length;
  const more = model.traces.filter((one) => one.reason && one.label !== "sub-agent");
  const repeats = repetition(model.messages.filter(isSampled).map((one) => one.content).join("\n"));
  return plural(replies.length, "turn") + ", " + plural(sum(model.traces.map((one) => one.sampled)), "token") + " sampled" +
    (cut ? ", " + plural(cut, "reply was", "replies were") + " cut off" : "") + (failed ? ", " + plural(failed, "tool call") + " failed" : "") +
    (more.length ? ". A new trace began " + (more.length === 1 ? "once" : more.length + " times") + ": " + reasonSentence(more[0].reason) : "") + "." +
    (repeats > 0.3 ? " The model repeats itself: " + percent(repeats, 1) + " of what it says it has said before." : "");
}
