"use strict";
// Mouse, touch and keys on the map, and what the map tells of its cell.

const drag = {};  // where the pointer went down, and what was shown then

function goTo(query, key) {
  const [top, bottom] = rowsOf(state.layer), [from, to] = columnsOf(state.layer);
  state.query = clamp(query, top, bottom - 1);
  state.key = clamp(key, from, to - 1);
  const {row, column} = zoom;
  followCell(painted.map);
  if (row !== zoom.row || column !== zoom.column) paintMap();
  else markCell();
}

function lock(locked) {
  state.locked = locked;
  markCell();
}

// The cell under the point stays under it.
function zoomTo(cell, x, y) {
  const {map} = painted;
  const row = queryAt(map, y) - map.top;
  const column = zoom.column + Math.floor((x - map.left) / map.cell);
  zoom.cell = cell <= map.fit ? null : Math.min(LARGEST_ZOOMED, cell);
  zoom.row = row - Math.floor((y - PAD) / cell);
  zoom.column = column - Math.floor((x - map.left) / cell);
  paintMap();
}

// A cell of less than a pixel is 1/2, 1/3 … of one.
const larger = cell => cell < 1 ? 1 / (Math.round(1 / cell) - 1) : Math.ceil(cell * 1.4);
const smaller = cell => cell <= 1 ? 1 / (Math.round(1 / cell) + 1) : Math.floor(cell / 1.4);

function zoomAtCell(change) {
  const {map} = painted;
  zoomTo(change(map.cell), xOf(map, state.key) + map.cell / 2, yOf(map, state.query) + map.cell / 2);
  followCell(painted.map);
  paintMap();
}

function turnHead(by) {
  const picker = element("head");
  picker.selectedIndex = clamp(picker.selectedIndex + by, 0, picker.length - 1);
  choose();
}

function pressKey(event) {
  const {query, key, layer, head} = state, right = layer.backward ? -1 : 1;
  const actions = {
    ArrowUp: () => goTo(query - 1, key),
    ArrowDown: () => goTo(query + 1, key),
    ArrowLeft: () => goTo(query, key - right),
    ArrowRight: () => goTo(query, key + right),
    Home: () => goTo(query, 0),
    End: () => goTo(query, Infinity),
    Enter: () => goTo(query, largestOf(layer, head, query) ?? key),
    PageUp: () => turnHead(-1),
    PageDown: () => turnHead(1),
    " ": () => lock(!state.locked),
    h: turnKey,
    H: turnKey,
    Escape: () => lock(false),
    "+": () => zoomAtCell(larger),
    "=": () => zoomAtCell(larger),
    "-": () => zoomAtCell(smaller),
    0: () => zoomAtCell(() => 0),
  };
  if (!Object.hasOwn(actions, event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  actions[event.key]();
}

function goToPoint({offsetX, offsetY}) {
  const {map} = painted;
  if (isOnCells(map, offsetX, offsetY)) goTo(queryAt(map, offsetY), keyAt(map, offsetX));
}

function pointerDown(event) {
  Object.assign(drag, {down: true, moved: false, x: event.offsetX, y: event.offsetY, row: zoom.row, column: zoom.column});
  element("map").setPointerCapture(event.pointerId);
}

function pointerMove(event) {
  const [x, y] = [event.offsetX - drag.x, event.offsetY - drag.y], {map} = painted;
  if (drag.down && Math.hypot(x, y) > 5) drag.moved = true;
  if (drag.down && drag.moved && map.zoomed) {
    zoom.row = drag.row - Math.round(y / map.cell);
    zoom.column = drag.column - Math.round(x / map.cell);
    paintMap();
  } else if (event.pointerType === "mouse" ? !state.locked : drag.moved) {
    goToPoint(event);
  }
}

function pointerUp(event) {
  drag.down = false;
  if (drag.moved || !isOnCells(painted.map, event.offsetX, event.offsetY)) return;
  const {query, key, locked} = state;
  goToPoint(event);
  const sameCell = query === state.query && key === state.key;
  lock(event.pointerType === "mouse" ? !locked : !(locked && sameCell));
}

function turnWheel(event) {
  if (!event.ctrlKey) return;
  event.preventDefault();
  // A pinch on a touch pad sends many small turns.
  drag.turned = (drag.turned ?? 0) + event.deltaY;
  if (Math.abs(drag.turned) < 30) return;
  const change = drag.turned < 0 ? larger : smaller;
  drag.turned = 0;
  if (isOnCells(painted.map, event.offsetX, event.offsetY))
    zoomTo(change(painted.map.cell), event.offsetX, event.offsetY);
}

function listenOnMap() {
  const map = element("map");
  map.onkeydown = pressKey;
  map.onpointerdown = pointerDown;
  map.onpointermove = pointerMove;
  map.onpointerup = pointerUp;
  map.onpointercancel = () => { drag.down = false; };
  map.addEventListener("wheel", turnWheel, {passive: false});
  element("larger").onclick = () => zoomAtCell(larger);
  element("smaller").onclick = () => zoomAtCell(smaller);
  element("fit").onclick = () => zoomAtCell(() => 0);
}

// What a screen reader says of the chosen cell, and the two lists of tokens.
function tellCell() {
  const {layer, head, query, key} = state;
  const best = largestOf(layer, head, query);
  const isMasked = Number.isNaN(weight(layer, head, query, key)), isHidden = layer.hidden.has(key);
  element("status").replaceChildren(
    ...tokenInWords(layer.queries, query), isMasked ? " may not look at " : " looks at ",
    ...tokenInWords(layer.keys, key),
    isMasked ? "" : `: ${weightInWords(layer, head, query, key)}`, isHidden ? ", hidden" : "", state.locked ? ", held" : "",
    ...(best === null || best === key ? [] : [
      document.createElement("br"), "and most at ", ...tokenInWords(layer.keys, best),
      `: ${weightInWords(layer, head, query, best)}`,
    ]),
  );
  element("of-key").textContent = short(layer.keys[key], 40);
  element("of-query").textContent = short(layer.queries[query], 40);
  element("hide").textContent = isHidden ? "Show this key" : "Hide this key";
  const shareOf = (t, s) => layer.hidden.has(s) ? OUT_OF_SIGHT : painted.share(weight(layer, head, t, s), t);
  colourTokens(element("queries"), query, t => shareOf(t, key));
  colourTokens(element("keys"), key, s => shareOf(query, s));
}

function colourTokens(list, here, shareOf) {
  for (const node of list.children) {
    const at = Number(node.dataset.at), share = shareOf(at);
    const rgb = Number.isNaN(share) ? [255, 255, 255] : share === OUT_OF_SIGHT ? HIDDEN : colourAt(share);
    const light = 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2] > 127;
    node.style.background = `rgb(${rgb})`;
    node.style.color = light ? "#000" : "#fff";
    node.classList.toggle("here", at === here);
  }
}

function listTokens() {
  const {layer} = state;
  for (const [id, tokens, [from, to], go] of [
    ["queries", layer.queries, rowsOf(layer), t => goTo(t, state.key)],
    ["keys", layer.keys, columnsOf(layer), s => goTo(state.query, s)],
  ]) {
    element(id).replaceChildren(...tokens.slice(from, to).map((text, i) => {
      const node = bdi(text, 40);
      node.dataset.at = from + i;
      node.onpointerenter = event => { if (event.pointerType === "mouse" && !state.locked) go(from + i); };
      node.onclick = () => go(from + i);
      return node;
    }));
  }
  element("keys").dir = layer.backward ? "rtl" : "ltr";
}
