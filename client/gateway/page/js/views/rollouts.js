/* Live and ended rollouts: filters, search, sort. What is chosen stands in the address. */
const LIST_MS = 3000;
const LIST_MAX = 1000;

const SORTS = {
  live: [["age", "longest first"], ["young", "newest first"], ["name", "by name"], ["turn", "most turns"]],
  ended: [["new", "newest first"], ["slow", "slowest first"], ["reward", "best reward"], ["worst", "worst reward"], ["tokens", "most tokens"], ["turns", "most turns"]],
};

const ORDER = {
  age: (a, b) => (b.for_ms || 0) - (a.for_ms || 0),
  young: (a, b) => (a.for_ms || 0) - (b.for_ms || 0),
  name: (a, b) => a.rollout.localeCompare(b.rollout, "en", { numeric: true }),
  turn: (a, b) => (b.turn || 0) - (a.turn || 0),
  new: (a, b) => b.ended_ms - a.ended_ms,
  slow: (a, b) => totalMs(b) - totalMs(a),
  reward: (a, b) => rank(b.reward) - rank(a.reward),
  worst: (a, b) => (isNumber(a.reward) ? a.reward : Infinity) - (isNumber(b.reward) ? b.reward : Infinity),
  tokens: (a, b) => (b.sampled_tokens || 0) - (a.sampled_tokens || 0),
  turns: (a, b) => (b.turns || 0) - (a.turns || 0),
};

function rank(value) {
  return isNumber(value) ? value : -Infinity;
}

function rolloutsView(parts, query) {
  const state = { view: "live", stage: "", state: "", stream: "", outcome: "", q: "", sort: "", like: "", end: "", ...query };
  const isEnded = () => state.view === "ended";
  const fetched = { key: "", rollouts: [], matched: 0, error: "" };
  let timer = 0;

  const search = el("input", { type: "search", placeholder: "Search name, task, engine, worker, why…", "aria-label": "Search", value: state.q,
    on: { input: () => choose("q", search.value) } });
  const views = segments("Live or ended", [["live", "Live"], ["ended", "Ended"]], state.view, (value) => {
    state.sort = "";
    choose("view", value);
  });
  const stage = choice("Stage", [["", "any stage"], ["init", "init"], ["run", "run"], ["eval", "eval"]], state.stage, (value) => choose("stage", value));
  const where = choice("State", [["", "any state"], ["queued", "queued"], ["leased", "at work"], ["delayed", "tried again"]], state.state, (value) => choose("state", value));
  const outcome = choice("Outcome", [["", "any outcome"], ...Object.keys(OUTCOMES).map((one) => [one, one])], state.outcome, (value) => choose("outcome", value));
  const stream = choice("Stream", [["", "any stream"]], state.stream, (value) => choose("stream", value));
  const sort = choice("Sort", SORTS[state.view], state.sort || SORTS[state.view][0][0], (value) => choose("sort", value));
  const note = el("p.list-note.quiet", { role: "status" });
  const list = virtualList("Rollouts", rolloutRow, (row, one) => updateRolloutRow(row, one));
  const nothing = el("div", { hidden: true });
  const node = el("div.panel", null, heading("Rollouts"),
    el("div.filters", null, views, search, stage, where, outcome, stream, sort), note, list, nothing);

  function choose(key, value) {
    state[key] = value;
    history.replaceState(null, "", withQuery("#/rollouts", { ...state, view: isEnded() ? "ended" : "" }));
    fetchMore();
    draw();
  }

  /* What the live feed does not tell is asked for: more than its 200, and of a stream what had ended before. */
  async function fetchMore() {
    const asked = isEnded()
      ? state.stream && { ended: "true", stream: state.stream, outcome: state.outcome, limit: LIST_MAX }
      : store.live.matched > store.live.rollouts.length && { ended: "false", stream: state.stream, stage: state.stage, state: state.state, limit: LIST_MAX };
    const key = asked ? withQuery("/rollouts", asked) : "";
    if (fetched.key !== key) Object.assign(fetched, { key, rollouts: [], matched: 0, error: "" });
    if (!key || store.link !== "live" || document.hidden) return;
    try {
      const answer = await ask(key);
      if (fetched.key !== key) return;
      Object.assign(fetched, { rollouts: answer.rollouts || [], matched: answer.matched || 0, error: "" });
    } catch (error) {
      fetched.error = error.message;
    }
    draw();
  }

  function candidates() {
    if (!isEnded()) return fetched.rollouts.length ? fetched.rollouts : store.live.rollouts;
    if (!fetched.rollouts.length) return store.ended;
    const known = new Map(fetched.rollouts.map((one) => [one.stream + "\n" + one.seq, one]));
    for (const one of store.ended) known.set(keyOf(one), one);
    return [...known.values()];
  }

  function draw() {
    views.update(state.view);
    for (const one of [stage, where]) show(one, !isEnded());
    show(outcome, isEnded());
    sort.update(SORTS[state.view], state.sort || SORTS[state.view][0][0]);
    stream.update([["", "any stream"], ...streamNames().map((one) => [one, one])], state.stream);
    const all = candidates();
    const items = all.filter((one) => isWanted(state, one)).sort(ORDER[state.sort] || ORDER[SORTS[state.view][0][0]]);
    list.update(items);
    say(note, noteOf(state, fetched, items.length, all.length));
    show(nothing, !items.length);
    if (!items.length && !nothing.firstChild) nothing.append(empty("No rollout is like that", "Take a filter away, or wait: the list fills by itself."));
  }

  const redrawEnded = throttled(500, draw);
  const update = (changes) => {
    if (!isEnded()) draw();
    else if (changes.has("ended")) redrawEnded();
  };
  timer = setInterval(fetchMore, LIST_MS);
  fetchMore();
  return { node, title: "Rollouts", update, stop() {
    clearInterval(timer);
    list.stop();
  } };
}

/* Whether a rollout passes the filters. */
function isWanted(state, one) {
  if (state.stream && one.stream !== state.stream) return false;
  if (state.view === "ended" ? state.outcome && one.outcome !== state.outcome : (state.stage && one.stage !== state.stage) || (state.state && one.state !== state.state)) return false;
  if (state.end && one.end !== state.end) return false;
  if (state.like && sameness(one.detail) !== state.like) return false;
  if (!state.q) return true;
  const text = [one.rollout, one.task, one.stream, one.worker, one.engine, one.image, one.tool, one.why, one.detail, one.outcome, one.end, one.state].join(" ").toLowerCase();
  return state.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/* What stands above the list: how many of how many. */
function noteOf(state, fetched, shown, all) {
  const isEnded = state.view === "ended";
  if (fetched.error) return "The list could not be fetched: " + fetched.error;
  const of = shown === all ? plural(shown, "rollout") : count(shown) + " of " + plural(all, "rollout");
  const matched = isEnded ? fetched.matched : Math.max(fetched.matched, store.live.matched);
  if (!isEnded) return of + (matched > all ? "; the oldest " + count(all) + " of " + count(matched) + " live ones are looked at" : " live");
  const skipped = store.skipped ? "; " + plural(store.skipped, "one was", "were") + " not told as too many ended at once" : "";
  return of + (state.like || state.end ? " that failed alike" : "") + (state.stream ? "" : "; choose a stream to see older ones") + skipped;
}

function rolloutRow() {
  return el("a.row", null, el("span.row-name", null, nameNode("b"), el("small")), el("span.chip"), el("span.row-main"), el("span.row-time", null, el("b"), stackBar("Where its time went")), el("span.row-more"));
}

function updateRolloutRow(row, one) {
  const [name, mark, main, time, more] = row.children;
  set(row, { href: rolloutPath(one.rollout), title: one.why || one.detail || null });
  sayName(name.children[0], one.rollout);
  say(name.children[1], one.task + " · " + one.stream);
  if (one.outcome) {
    setChip(mark, one.outcome, one.outcome, OUTCOMES[one.outcome]);
    say(main, isNumber(one.reward) ? "reward " + reward(one.reward) : one.detail || ENDS[one.end] || "");
    say(time.children[0], duration(totalMs(one)));
    const parts = timeParts(one);
    show(time.children[1], true).update(parts, [one.rollout, ...parts.filter((part) => part.ms > 0).map((part) => part.text)]);
    say(more, [isNumber(one.turns) ? plural(one.turns, "turn") : "", isNumber(one.sampled_tokens) ? short(one.sampled_tokens) + " tokens" : "", ago(now() - one.ended_ms)].filter(Boolean).join(" · "));
    return;
  }
  setChip(mark, one.stage + (one.state === "leased" ? "" : " " + one.state), one.state === "leased" ? one.stage : "wait", STATES[one.state]);
  say(main, liveWords(one));
  say(time.children[0], duration(one.for_ms));
  show(time.children[1], false);
  say(more, [one.attempt > 1 ? "attempt " + one.attempt : "", host(one.engine), one.worker].filter(Boolean).join(" · "));
}
