/* Groups side by side: the rewards of their samples, and of one group what each of them said last. */
const GROUPS_SHOWN = 150;

function groupsView(parts, query) {
  const state = { stream: "", show: "all", ...query };
  const stream = choice("Stream", [["", "any stream"]], state.stream, (value) => choose("stream", value));
  const which = segments("Which groups", [["all", "All"], ["mixed", "Mixed"], ["same", "All the same"]], state.show, (value) => choose("show", value));
  const note = el("p.list-note.quiet", { role: "status" });
  const list = el("ul.groups");
  const node = el("div.panel", null, heading("Groups", "All samples of one task. A group whose rewards differ has something to learn from."), el("div.filters", null, which, stream), note, list);

  function choose(key, value) {
    state[key] = value;
    history.replaceState(null, "", withQuery("#/groups", { stream: state.stream, show: state.show === "all" ? "" : state.show }));
    draw();
  }

  function draw() {
    which.update(state.show);
    stream.update([["", "any stream"], ...streamNames().map((one) => [one, one])], state.stream);
    const groups = groupsOf(newest((one) => !state.stream || one.stream === state.stream, 4000)).map(([name, rollouts]) => ({ name, rollouts, ...spread(rollouts) }))
      .filter((one) => state.show === "all" || (state.show === "same") === one.isSame);
    const shown = groups.slice(0, GROUPS_SHOWN);
    say(note, plural(groups.length, "group") + " of late" + (groups.length > shown.length ? ", the newest " + shown.length + " are shown" : ""));
    keyed(list, shown, (one) => one.name, groupRow, updateGroupRow);
    if (!shown.length) note.append(" · none is like that yet");
  }
  const redraw = throttled(1000, draw);
  return { node, title: "Groups", update: (changes) => (changes.has("ended") || changes.has("status")) && redraw() };
}

function spread(rollouts) {
  const rewards = rollouts.map((one) => one.reward).filter(isNumber);
  return { mean: mean(rewards), rewards, isSame: rewards.length > 1 && rewards.every((value) => value === rewards[0]) };
}

function groupRow(one) {
  return el("li.group-row", null, el("a.group-name", { href: path("group", one.name) }, el("b", null, one.name), el("small.quiet")), sampleDots([], 0), el("span.group-mean", null, el("b"), el("small.quiet")), el("span.group-more.quiet"));
}

function updateGroupRow(row, one) {
  const [name, dots, middleOf, more] = row.children;
  const last = one.rollouts[0];
  if (row.seen === one.rollouts.length) return;
  row.seen = one.rollouts.length;
  say(name.children[1], last.task + " · " + last.stream);
  dots.update(one.rollouts, last.group_size);
  say(middleOf.children[0], reward(one.mean));
  say(middleOf.children[1], one.isSame ? "all the same" : one.rewards.length ? "mean of " + one.rewards.length : "no reward");
  say(more, duration(middle(one.rollouts.map(totalMs))) + " in the middle, " + duration(Math.max(...one.rollouts.map(totalMs))) + " at most");
}

/* One group. */
function groupView(parts) {
  const group = parts[1];
  const words = el("div.words");
  const grid = el("div.side-by-side");
  const known = new Map(); // rollout -> what its column shows
  let isOver = false;
  const node = el("div.panel", null, el("nav.crumbs", { "aria-label": "Where this is" }, el("a", { href: "#/groups" }, "Groups"), " / " + group), heading(group), el("section.card.why", { "aria-label": "Why" }, words), grid);

  async function load() {
    try {
      const [live, ended] = await Promise.all([ask(withQuery("/rollouts", { ended: "false", group, limit: 1000 })), ask(withQuery("/rollouts", { ended: "true", group, limit: 1000 }))]);
      if (isOver) return;
      for (const one of [...(live.rollouts || []), ...(ended.rollouts || [])]) known.set(one.rollout, { ...known.get(one.rollout), ...one, isEnded: Boolean(one.outcome) });
    } catch (error) {
      fill(words, el("p.lead", null, "It could not be fetched: " + error.message));
    }
    draw();
  }

  /* What each said last, of the first of them. */
  async function loadReplies() {
    for (const one of [...known.values()].filter((other) => other.isEnded && other.reply === undefined).slice(0, 16)) {
      if (isOver) return;
      try {
        const t = await ask(rolloutUrl(one.rollout));
        Object.assign(one, { reply: lastReply(t).slice(-1200), turns: (t.traces || []).flatMap((trace) => trace.turns).filter((turn) => turn.role === "assistant").length,
          sampled_tokens: sum((t.traces || []).map((trace) => sum(trace.mask))) });
      } catch (error) {
        one.reply = "";
      }
      draw();
    }
  }

  function draw() {
    const list = [...known.values()].sort(ORDER.name);
    paragraphs(words, list.length ? groupWords(list) : ["Nobody knows a rollout of this group: none was submitted, or all were acknowledged."]);
    keyed(grid, list.slice(0, 128), (one) => one.rollout, () => el("a.card.sample-card", null, el("div.sample-head", null, el("i"), el("b"), el("span.chip")), el("span.quiet"), stackBar("Where its time went"), el("p.sample-said")), updateSample);
  }

  load().then(loadReplies);
  const timer = setInterval(() => {
    if (!document.hidden && [...known.values()].some((one) => !one.isEnded)) load().then(loadReplies);
  }, 3000);
  return { node, title: group, update() {}, stop() {
    isOver = true;
    clearInterval(timer);
  } };
}

function groupWords(list) {
  const ended = list.filter((one) => one.isEnded);
  const rewards = ended.map((one) => one.reward).filter(isNumber);
  const first = plural(list.length, "sample") + ", " + (ended.length === list.length ? "all ended" : ended.length + " ended") + ". " +
    (rewards.length ? "Mean reward " + reward(mean(rewards)) + ", from " + reward(Math.min(...rewards)) + " to " + reward(Math.max(...rewards)) + "." : "None has a reward.");
  const lines = [first];
  if (rewards.length > 1 && rewards.every((value) => value === rewards[0])) lines.push("All rewards are the same: there is nothing here that tells better from worse.");
  const slow = [...ended].sort((a, b) => totalMs(b) - totalMs(a))[0];
  const usual = middle(ended.map(totalMs));
  if (slow && ended.length > 2 && totalMs(slow) > 2 * usual) lines.push(slow.rollout + " took " + duration(totalMs(slow)) + ", the middle one " + duration(usual) + ".");
  return lines;
}

function updateSample(child, one) {
  const [head, more, bars, reply] = child.children;
  set(child, { href: rolloutPath(one.rollout) });
  head.children[0].className = one.isEnded ? rewardClass(one.reward) : "r-live";
  say(head.children[1], one.isEnded ? (isNumber(one.reward) ? reward(one.reward) : "no reward") : "live");
  setChip(head.children[2], one.outcome || one.stage + " " + one.state, one.outcome || "wait");
  say(more, ["sample " + one.rollout.slice(one.rollout.lastIndexOf("/") + 1), one.isEnded ? duration(totalMs(one)) : duration(one.for_ms), one.turns ? plural(one.turns, "turn") : "", one.sampled_tokens ? short(one.sampled_tokens) + " tokens" : ""].filter(Boolean).join(" · "));
  const parts = timeParts(one);
  show(bars, one.isEnded).update(parts, [one.rollout, ...parts.filter((part) => part.ms > 0).map((part) => part.text)]);
  say(reply, one.isEnded ? (one.reply === undefined ? "" : one.reply || one.detail || "") : liveWords(one));
}
