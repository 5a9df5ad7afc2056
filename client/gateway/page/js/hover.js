/* The one tip of the page: lines of text beside the pointer, or beside what has the focus. */
const tip = document.getElementById("tip");

function tipAt(x, y, lines) {
  fill(tip, lines.map((line, k) => el(k ? "div" : "div.tip-head", null, line)));
  show(tip, true);
  const box = tip.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = x + 14 + box.width > room ? x - 14 - box.width : x + 14;
  const top = y + 16 + box.height > innerHeight ? y - 12 - box.height : y + 16;
  tip.style.transform = "translate(" + Math.max(4, Math.min(left, room - box.width - 4)) + "px," + Math.max(4, top) + "px)";
}

function hideTip() {
  show(tip, false);
}

/* `linesAt(event)`: an array of text, or null for no tip. */
function hoverable(node, linesAt) {
  const move = (event) => {
    const lines = linesAt(event);
    if (lines && lines.length) tipAt(event.clientX, event.clientY, lines);
    else hideTip();
  };
  set(node, { on: { pointermove: move, pointerdown: move, pointerleave: hideTip } });
  return node;
}

/* A chart of `length()` places, which arrow keys step through: `at(k)` gives {x, lines} in the node's own pixels, `mark(k)` shows it. */
function steppable(node, length, at, mark, open) {
  let place = -1;
  const go = (k) => {
    place = Math.max(0, Math.min(length() - 1, k));
    if (!length()) return;
    mark(place);
    const box = node.getBoundingClientRect();
    const one = at(place);
    tipAt(box.left + one.x, box.top + 12, one.lines);
  };
  const leave = () => {
    place = -1;
    mark(-1);
    hideTip();
  };
  set(node, { tabindex: "0", on: {
    pointermove: (event) => go(nearest(node, length(), at, event)),
    pointerdown: (event) => go(nearest(node, length(), at, event)),
    pointerleave: leave,
    blur: leave,
    click: () => open && place >= 0 && open(place),
    keydown: (event) => {
      const steps = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 };
      if (event.key in steps) go(place + steps[event.key]);
      else if (event.key === "Enter" && open && place >= 0) open(place);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    },
  } });
}

function nearest(node, length, at, event) {
  const x = event.clientX - node.getBoundingClientRect().left;
  let best = 0;
  let distance = Infinity;
  for (let k = 0; k < length; k++) {
    const one = Math.abs(at(k).x - x);
    if (one < distance) [best, distance] = [k, one];
  }
  return best;
}

addEventListener("scroll", hideTip, { passive: true });
