/* A conversation as it is said. Long texts and long conversations show their ends, and the rest on demand. */
const TEXT_SHOWN = 4000;
const MESSAGES_SHOWN = 120;
const ROLES = { system: "System", user: "User", assistant: "Model", tool: "Tool", note: "Note" };

function conversation() {
  const earlier = el("button.plain.wide", { type: "button", hidden: true });
  const leftOut = el("p.quiet", { hidden: true });
  const list = el("div.said", { role: "log", "aria-label": "Conversation" });
  const node = el("div", null, leftOut, earlier, list);
  let isWhole = false;
  let last = null;
  earlier.addEventListener("click", () => {
    isWhole = true;
    node.update(last);
  });
  node.update = (model) => {
    last = model;
    const all = model.messages;
    const from = isWhole ? 0 : Math.max(0, all.length - MESSAGES_SHOWN);
    show(earlier, from > 0);
    say(earlier, "Show " + plural(from, "earlier message"));
    show(leftOut, Boolean(model.leftOut));
    if (model.leftOut) say(leftOut, plural(model.leftOut.messages, "message") + " before these are not told while it is live.");
    const items = all.slice(from).concat((model.samplings || []).map((one) => ({ ...one, role: "assistant", isLive: true, content: one.text })));
    keyed(list, items, (one) => one.key || one.index, messageNode, updateMessage);
  };
  return node;
}

function messageNode(message) {
  const node = el("article.msg." + (ROLES[message.role] ? message.role : "note"), null,
    el("header", null, el("b"), el("span.quiet"), el("span.msg-chips")), el("div.msg-body"));
  if (message.isLive) node.classList.add("is-live");
  return node;
}

/* What a message looks like hangs on these alone. */
function stampOf(message) {
  const turn = message.turn;
  return [message.content.length, message.isComplete, turn ? turn.ids.length + "/" + turn.length : "", message.left_out].join();
}

function updateMessage(node, message) {
  const stamp = stampOf(message);
  if (node.stamp === stamp) return;
  node.stamp = stamp;
  const [title, info, chips] = node.firstChild.children;
  say(title, titleOf(message));
  say(info, infoOf(message));
  fill(chips, chipsOf(message));
  const body = node.lastChild;
  if (message.isLive) {
    if (!body.firstChild) body.append(el("div.text"));
    say(body.firstChild, message.content);
    return;
  }
  fill(body, message.tool && message.tool.includes("\n") ? el("pre.call", null, message.tool) : null, textNode(message), message.turn && message.turn.ids.length ? lazily(20, () => tokenCells(message.turn)) : null);
}

function titleOf(message) {
  if (message.isLive) return "Model";
  if (message.role === "tool" && message.tool) return firstLine(message.tool, 160);
  if (message.role === "assistant" && message.sampled === false) return "Model, as given";
  return ROLES[message.role] || message.role;
}

function infoOf(message) {
  if (message.isLive) return message.isComplete ? "" : "is saying";
  const turn = message.turn;
  if (!turn) return "";
  const parts = ["turn " + turn.number, plural(turn.length, "token")];
  if (turn.seconds) parts.push(duration(turn.seconds * 1000));
  if (turn.queue_seconds > 0.05) parts.push(duration(turn.queue_seconds * 1000) + " of it in the engine's queue");
  if (turn.version) parts.push("version " + turn.version);
  return parts.join(" · ");
}

function chipsOf(message) {
  const list = [];
  const turn = message.turn;
  if (message.role === "tool" && isNumber(message.exit_status) && message.exit_status !== 0) list.push(chip("exit " + message.exit_status, "bad", "the command's status"));
  if (turn && turn.finish && turn.finish !== "stop") list.push(chip(turn.finish === "length" ? "cut off" : turn.finish, "warn", "how the reply ended: " + turn.finish));
  if (turn && turn.masked) list.push(chip("masked: " + turn.masked, "", LABELS[turn.masked] || ""));
  return list;
}

/* The text, its middle left out where it is long. */
function textNode(message) {
  const text = message.content;
  const isCode = message.role === "tool";
  const node = el(isCode ? "pre.text" : "div.text");
  if (message.left_out) node.append(el("span.quiet", null, "(" + bytes(message.left_out) + " of its middle are not told while it is live) "));
  if (!text) return append(node, [el("span.quiet", null, "(nothing)")]);
  if (text.length <= TEXT_SHOWN * 1.2) return append(node, [text]);
  const gap = el("button.plain.wide", { type: "button", on: { click: () => fill(node, text) } },
    "Show " + bytes(text.length - TEXT_SHOWN) + " between");
  return append(node, [text.slice(0, TEXT_SHOWN * 0.6), gap, text.slice(-TEXT_SHOWN * 0.4)]);
}
