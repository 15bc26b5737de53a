"use strict";
// Two columns of tokens with lines between them; heads lie over each other.

const NUMBERS = 3;  // weights that the status line names
const lines = {heads: new Set(), layer: null, active: null, pinned: null, found: []};

// All heads of another layer are shown, or the head that Python asked for.
function startHeads() {
  const {layer} = state;
  const asked = lines.layer === null ? data.first.head : null;
  lines.layer = layer;
  lines.active = lines.pinned = null;
  lines.heads = new Set(asked === null ? layer.heads.keys() : [asked]);
  const all = [...layer.heads.keys(), ...(layer.heads.length > 1 ? [MEAN] : [])];
  element("chips").replaceChildren(...all.map(chipOf));
}

function nameOfHead(layer, head) {
  return head === MEAN ? "mean" : `${layer.heads[head]}`;
}

function chipOf(head) {
  const swatch = document.createElement("span");
  swatch.className = "swatch";
  const chip = button(swatch, nameOfHead(state.layer, head));
  chip.setAttribute("aria-label", `head ${nameOfHead(state.layer, head)}`);
  chip.dataset.head = head;
  chip.onclick = () => element("alone").checked ? showAlone(head) : toggleHead(head);
  chip.ondblclick = () => showAlone(head);
  chip.onkeydown = event => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    showAlone(head);
  };
  return chip;
}

function toggleHead(head) {
  if (!lines.heads.delete(head)) lines.heads.add(head);
  paintLinks();
}

// A head that is alone already gives way to all heads.
function showAlone(head) {
  const isAlone = lines.heads.size === 1 && lines.heads.has(head);
  lines.heads = new Set(isAlone ? state.layer.heads.keys() : [head]);
  paintLinks();
}

function paintLines() {
  if (lines.layer !== state.layer) startHeads();
  const {layer} = state;
  listColumn("from", layer.queries, rowsOf(layer));
  listColumn("to", layer.keys, columnsOf(layer));
  paintLinks();
}

function listColumn(side, tokens, [from, to]) {
  const column = element(side);
  column.replaceChildren(...tokens.slice(from, to).map((text, i) => tokenButton(side, from + i, text)));
  column.firstChild.tabIndex = 0;
}

function tokenButton(side, at, text) {
  const number = document.createElement("span");
  number.className = "number";
  const token = bdi(text, 40);
  token.dir = "auto";
  const node = button(number, token);
  node.dataset.at = at;
  node.classList.toggle("struck", side === "to" && state.layer.hidden.has(at));
  node.tabIndex = -1;
  node.onpointerenter = event => { if (event.pointerType === "mouse") look({side, at}); };
  node.onpointerleave = event => { if (event.pointerType === "mouse") look(lines.pinned); };
  node.onfocus = () => { if (node.matches(":focus-visible")) look({side, at}); };
  node.onblur = () => look(lines.pinned);
  node.onclick = () => pin({side, at});
  node.onkeydown = event => pressKeyOnToken(event, node);
  return node;
}

function isSame(a, b) {
  return a !== null && b !== null && a.side === b.side && a.at === b.at;
}

function pin(token) {
  lines.pinned = isSame(lines.pinned, token) ? null : token;
  look(lines.pinned);
}

function look(token) {
  if (lines.active === token || isSame(lines.active, token)) return;
  lines.active = token;
  paintLinks();
}

// Up and down in a column, left and right from one column to the other.
function pressKeyOnToken(event, node) {
  const column = node.parentElement, place = [...column.children].indexOf(node);
  const other = element(column.id === "from" ? "to" : "from");
  const goal = {
    ArrowUp: [column, place - 1], ArrowDown: [column, place + 1],
    Home: [column, 0], End: [column, Infinity],
    ArrowLeft: [element("from"), place], ArrowRight: [element("to"), place],
  }[event.key];
  if (event.key === "Escape") { lines.pinned = null; look(null); }
  if (!goal) return;
  event.preventDefault();
  const list = goal[0] === other ? other : column;
  const next = list.children[clamp(goal[1], 0, list.children.length - 1)];
  for (const token of list.children) token.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function paintLinks() {
  const {layer} = state, colours = theme(), canvas = element("links");
  const {found, all} = visibleLinks(layer, lines.heads, lines.active);
  lines.found = found;
  const row = rowHeight(), width = canvas.clientWidth;
  const height = row * Math.max(...["from", "to"].map(side => element(side).children.length));
  // Browsers refuse canvases that are very high.
  const ratio = Math.min(window.devicePixelRatio || 1, 16000 / height);
  Object.assign(canvas, {width: Math.round(width * ratio), height: Math.round(height * ratio)});
  canvas.style.height = `${height}px`;
  drawLinks(canvasPen(canvas.getContext("2d"), ratio), layer, found, 2, width - 2, at => (at + 0.5) * row, colours.dark);
  for (const chip of element("chips").children) {
    const head = Number(chip.dataset.head);
    chip.setAttribute("aria-pressed", lines.heads.has(head));
    chip.firstChild.style.background = headColour(head, colours.dark);
  }
  element("thinned").textContent = found.length < all
    ? `${found.length} of ${all} weights are drawn: the largest ${MOST_LINES} at most, and none below ${100 * FAINTEST}% of the scale.`
    : `All ${all} weights are drawn.`;
  tellLinks();
}

function rowHeight() {
  return parseInt(getComputedStyle(element("columns")).getPropertyValue("--row"), 10);
}

// The numbers of the chosen token's lines, and its largest in words.
function tellLinks() {
  const {layer} = state, {active, found} = lines;
  const best = new Map();  // strong lines come last and stay
  if (active) for (const link of found) best.set(active.side === "from" ? link.s : link.t, link);
  for (const side of ["from", "to"]) {
    for (const node of element(side).children) {
      const at = Number(node.dataset.at);
      const link = active && active.side !== side ? best.get(at) : undefined;
      node.firstChild.textContent = link ? weightInWords(layer, link.head, link.t, link.s) : "";
      node.classList.toggle("here", isSame(active, {side, at}));
      node.setAttribute("aria-pressed", isSame(lines.pinned, {side, at}));
    }
  }
  element("status").replaceChildren(...wordsOfLinks(layer, active, found));
}

function wordsOfLinks(layer, active, found) {
  if (!active) return ["Hover or choose a token to see only its lines."];
  const isQuery = active.side === "from";
  if (!isQuery && layer.hidden.has(active.at)) return [...tokenInWords(layer.keys, active.at), " is hidden"];
  const [tokens, others] = isQuery ? [layer.queries, layer.keys] : [layer.keys, layer.queries];
  const words = found.slice(-NUMBERS).reverse().flatMap(({t, s, head}, i) => [
    i ? "; " : isQuery ? " looks at " : " is looked at by ", ...tokenInWords(others, isQuery ? s : t),
    `: ${weightInWords(layer, head, t, s)} in head ${nameOfHead(layer, head)}`,
  ]);
  return [...tokenInWords(tokens, active.at), ...(words.length ? words : [" has no line that is seen"])];
}

function linesDrawing() {
  const {layer} = state, row = 18, middle = 300;
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const left = widestLabel(layer.queries, 30) + 12, right = widestLabel(layer.keys, 30) + 12;
  const yOfRow = at => (at + 0.5) * row + 4;
  return {
    width: left + middle + right, height: Math.max(bottom - top, to - from) * row + 8,
    draw(pen) {
      drawLinks(pen, layer, lines.found, left, left + middle, yOfRow, false);
      for (let t = top; t < bottom; t++) pen.text(short(layer.queries[t], 30), left - 5, yOfRow(t - top), PAPER.ink, {anchor: "end"});
      for (let s = from; s < to; s++) pen.text(short(layer.keys[s], 30), left + middle + 5, yOfRow(s - from), PAPER.ink);
    },
  };
}
