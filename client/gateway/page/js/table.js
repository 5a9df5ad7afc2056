/* A list of any length of which only the rows in sight exist. It scrolls with the page. Rows are all of one height, the style's --row. */
function virtualList(label, makeRow, updateRow) {
  const inner = el("div.rows-inner");
  const node = el("div.rows", { role: "list", "aria-label": label }, inner);
  const pool = [];
  let items = [];
  let height = 0;

  function place() {
    if (!node.isConnected) return;
    const row = parseFloat(getComputedStyle(node).getPropertyValue("--row")) || 48;
    if (height !== items.length * row) {
      height = items.length * row;
      inner.style.height = height + "px";
    }
    const top = inner.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / row) - 4);
    const last = Math.min(items.length, Math.ceil((innerHeight - top) / row) + 4);
    const wanted = Math.max(0, last - first);
    while (pool.length < wanted) {
      const child = makeRow();
      child.setAttribute("role", "listitem");
      inner.append(child);
      pool.push(child);
    }
    // A row keeps its items while the page scrolls, so that the focus stays on what it was on.
    pool.forEach((child, k) => {
      const at = first + ((k - (first % pool.length) + pool.length) % pool.length);
      show(child, at < last);
      if (at >= last) return;
      child.style.transform = "translateY(" + at * row + "px)";
      updateRow(child, items[at]);
    });
  }

  node.update = (list) => {
    items = list;
    place();
  };
  const onScroll = () => requestAnimationFrame(place);
  addEventListener("scroll", onScroll, { passive: true });
  addEventListener("resize", onScroll, { passive: true });
  node.stop = () => {
    removeEventListener("scroll", onScroll);
    removeEventListener("resize", onScroll);
  };
  return node;
}
