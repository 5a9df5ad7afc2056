/* Nodes. Text is only ever set as text, and styles only through the object model: the page's policy forbids anything else. */
const SVG = "http://www.w3.org/2000/svg";

/* Attributes of a node: `on` is an object of listeners, `style` one of properties; null and false leave one out. */
function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, one] of Object.entries(value)) node.style.setProperty(property, one);
    } else if (value === null || value === undefined || value === false) {
      node.removeAttribute(name);
    } else {
      const text = value === true ? "" : String(value);
      if (node.getAttribute(name) !== text) node.setAttribute(name, text);
    }
  }
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function el(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name || "div");
  if (classes.length) node.className = classes.join(" ");
  return append(set(node, attributes), children);
}

function svg(tag, attributes, ...children) {
  return append(set(document.createElementNS(SVG, tag), attributes), children);
}

function say(node, text) {
  const value = text === null || text === undefined ? "" : String(text);
  if (node.textContent !== value) node.textContent = value;
  return node;
}

function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
  return node;
}

const made = new WeakMap();

/* Children of `parent`, one for each item by its key, in order: made once, then updated, moved only where they must be. */
function keyed(parent, items, keyOf, make, update) {
  const before = made.get(parent) || new Map();
  const after = new Map();
  let at = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    if (after.has(key)) continue;
    const node = before.get(key) || make(item);
    if (update) update(node, item);
    after.set(key, node);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
  }
  for (const [key, node] of before) if (!after.has(key)) node.remove();
  made.set(parent, after);
}

/* A path of the page: each part may hold any character. */
function path(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

function rolloutPath(name) {
  const cut = name.lastIndexOf("/");
  return path("rollout", name.slice(0, cut), name.slice(cut + 1));
}

function withQuery(base, query) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.length ? base + "?" + new URLSearchParams(given).toString() : base;
}
