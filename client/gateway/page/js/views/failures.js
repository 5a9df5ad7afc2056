/* What fails and why: by outcome and by what was said, each with examples. */
function failuresView(parts, query) {
  const state = { stream: "", ...query };
  const older = new Map();
  let isOver = false;
  const stream = choice("Stream", [["", "any stream"]], state.stream, (value) => {
    state.stream = value;
    history.replaceState(null, "", withQuery("#/failures", state));
    draw();
  });
  const lead = el("p.lead");
  const meanings = el("ul.meanings");
  const list = el("div.failures");
  const node = el("div.panel", null, heading("What fails, and why"), el("div.filters", null, stream), lead, list, card("What the outcomes mean", {}, meanings));
  keyed(meanings, Object.entries(OUTCOMES), ([key]) => key, ([key, text]) => el("li", null, chip(key, key), el("span", null, " " + text)));

  /* The feed tells what ends now; what failed before is asked for, of a few streams. */
  async function load() {
    for (const name of streamNames().slice(0, 8)) {
      for (const outcome of ["infra", "task", "agent"]) {
        if (isOver) return;
        try {
          const answer = await ask(withQuery("/rollouts", { ended: "true", stream: name, outcome, limit: 200 }));
          for (const one of answer.rollouts || []) older.set(keyOf(one), one);
        } catch (error) {
          return;
        }
      }
      draw();
    }
  }

  function draw() {
    stream.update([["", "any stream"], ...streamNames().map((one) => [one, one])], state.stream);
    const known = new Map(older);
    for (const one of store.ended) known.set(keyOf(one), one);
    const all = [...known.values()].filter((one) => !state.stream || one.stream === state.stream);
    const failed = all.filter((one) => one.outcome !== "ok");
    say(lead, failed.length ? leadOf(failed) : all.length ? "None of the last " + plural(all.length, "rollout") + " failed." : "Nothing has ended yet.");
    const kinds = new Map();
    for (const one of failed) {
      const key = one.outcome + "\n" + (one.outcome === "agent" ? one.end || sameness(one.detail) : sameness(one.detail));
      const kind = kinds.get(key) || { key, outcome: one.outcome, end: one.end, list: [] };
      kind.list.push(one);
      kinds.set(key, kind);
    }
    const items = [...kinds.values()].sort((a, b) => b.list.length - a.list.length).slice(0, 60);
    const most = items.length ? items[0].list.length : 1;
    keyed(list, items, (one) => one.key, failureNode, (child, kind) => updateFailure(child, kind, most, failed.length));
  }
  const wait = setTimeout(load, 400);
  const redraw = throttled(1000, draw);
  return { node, title: "Failures", update: (changes) => (changes.has("ended") || changes.has("status")) && redraw(), stop() {
    isOver = true;
    clearTimeout(wait);
  } };
}

function leadOf(failed) {
  const by = Object.keys(OUTCOMES).map((outcome) => [outcome, failed.filter((one) => one.outcome === outcome).length]).filter(([, number]) => number).sort((a, b) => b[1] - a[1]);
  return "Of those looked at, " + by.map(([outcome, number]) => count(number) + " ended as " + outcome).join(", ") + ".";
}

function failureNode(kind) {
  return el("section.card.failure", null, el("div.failure-head", null, chip(kind.outcome, kind.outcome, OUTCOMES[kind.outcome]), el("b.failure-count"), el("span.quiet")), meter("Its share"), el("p.failure-why"), el("p.failure-detail.mono"), el("div.examples"));
}

function updateFailure(child, kind, most, all) {
  const [head, part, why, detail, examples] = child.children;
  const newestFirst = [...kind.list].sort(ORDER.new);
  const last = newestFirst[0];
  say(head.children[1], plural(kind.list.length, "rollout"));
  say(head.children[2], percent(kind.list.length, all) + " of what failed, last " + ago(now() - last.ended_ms));
  part.update(kind.list.length / most, "o-" + kind.outcome);
  say(why, sentence(kind.outcome === "agent" && ENDS[kind.end] ? ENDS[kind.end] : OUTCOMES[kind.outcome]));
  say(detail, last.detail || "");
  show(detail, Boolean(last.detail));
  const shown = newestFirst.slice(0, 5);
  const stamp = shown.map((one) => one.rollout).join();
  if (examples.stamp === stamp) return;
  examples.stamp = stamp;
  fill(examples, el("span.quiet", null, "For example"), shown.map((one) => el("a", { href: rolloutPath(one.rollout) }, one.rollout)),
    el("a", { href: withQuery("#/rollouts", { view: "ended", outcome: kind.outcome, ...(kind.outcome === "agent" && last.end ? { end: last.end } : { like: sameness(last.detail) }) }) }, "all that failed alike"));
}
