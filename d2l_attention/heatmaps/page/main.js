"use strict";
// The controls, and what happens when the reader changes one.

const VIEWS = {
  overview: {section: "overview", paint: paintOverview},
  map: {section: "map-view", paint: paintMap},
  lines: {section: "lines", paint: paintLines},
};

function fillPicker(picker, names, values) {
  const before = picker.value;
  picker.replaceChildren(...names.map((name, i) => new Option(name, values[i])));
  if (values.map(String).includes(before)) picker.value = before;
}

function fillLayers() {
  const layers = shownLayers();
  fillPicker(element("layer"), layers.map(layer => layer.path || "attention"), layers.map(layer => data.layers.indexOf(layer)));
}

function fillHeads(layer) {
  const heads = [...layer.heads.keys(), ...(layer.heads.length > 1 ? [MEAN] : [])];
  fillPicker(element("head"), heads.map(head => nameOfHead(layer, head)), heads);
}

function offerKinds() {
  const kinds = [...new Set(data.layers.map(layer => layer.kind).filter(Boolean))];
  const all = ["all", ...kinds.sort()];
  fillPicker(element("kind"), all, all);
  element("kinds").hidden = kinds.length < 2;
}

// The overview as the model has it, or the heads by one kind of their scores.
function offerOrders() {
  const kinds = [...new Set(data.scores.map(({kind}) => kind))];
  fillPicker(element("order"), ["as in the model", ...kinds], ["", ...kinds]);
}

// Reads all controls into the state; then the view is painted anew.
function choose() {
  if (state.kind !== element("kind").value) {
    state.kind = element("kind").value;
    fillLayers();
  }
  const layer = data.layers[element("layer").value], part = element("part").value;
  if (choose.layer !== layer || state.part !== part) {
    choose.layer = state.layer = layer;
    state.part = part;
    Object.assign(zoom, {cell: null, row: 0, column: 0});
    fillHeads(layer);
    listTokens();
    const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
    state.query = clamp(state.query, top, bottom - 1);
    state.key = clamp(state.key, from, to - 1);
    element("precision").textContent = precisionInWords(layer);
  }
  state.head = Number(element("head").value);
  state.order = element("order").value;
  state.scale = element("scale").value;
  state.reference = element("reference").value;
  element("reference").disabled = state.scale === "row";
  paint();
}

function paint() {
  const {view} = state, isMap = view === "map";
  for (const [name, {section}] of Object.entries(VIEWS)) element(section).hidden = name !== view;
  for (const control of document.querySelectorAll(".of-map")) control.hidden = !isMap;
  for (const control of document.querySelectorAll(".of-cells")) control.hidden = view === "lines";
  element("orders").hidden = view !== "overview" || !data.scores.length;
  for (const choice of element("views").children)
    choice.setAttribute("aria-pressed", choice.dataset.view === view);
  for (const words of document.querySelectorAll("[data-help]")) words.hidden = words.dataset.help !== view;
  element("part").disabled = state.layer.sentence_b === null && view !== "overview";
  paintBar();
  VIEWS[view].paint();
  tellHidden();
}

function paintBar() {
  element("bar").getContext("2d").drawImage(barPicture(), 0, 0, 160, 12);
  const [, middle, most] = barLabels(state.layer, state.head);
  element("middle").textContent = middle;
  element("most").textContent = most;
  element("bar").setAttribute("aria-label", `colours from 0 to ${most}, ${middle} in the middle`);
}

// What stands behind "More" (on phones) and "?".
function unfold({target}) {
  const isOpen = element(target.getAttribute("aria-controls")).classList.toggle("open");
  target.setAttribute("aria-expanded", isOpen);
}

function listen() {
  for (const id of ["kind", "order", "layer", "head", "part", "scale", "reference"]) element(id).onchange = choose;
  for (const choice of element("views").children)
    choice.onclick = () => { state.view = choice.dataset.view; paint(); };
  element("png").onclick = savePng;
  element("svg").onclick = saveSvg;
  element("csv").onclick = copyCsv;
  element("more").onclick = element("ask").onclick = unfold;
  element("hide").onclick = turnKey;
  listenOnMap();
  for (const wish of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(pointer: coarse)"])
    matchMedia(wish).addEventListener("change", paint);
  document.addEventListener("theme", paint);
  // Not the event "resize": a frame may be drawn before it has its width.
  let width = 0;
  new ResizeObserver(() => {
    const now = element("main").clientWidth;
    if (Math.abs(now - width) < 20) return;  // scroll bars come and go
    width = now;
    paint();
  }).observe(element("main"));
}

async function start() {
  await Promise.all(data.layers.map(readLayer));
  offerKinds();
  offerOrders();
  fillLayers();
  element("layer").value = data.layers.indexOf(state.layer);
  element("parts").hidden = data.layers.every(layer => layer.sentence_b === null);
  fillHeads(state.layer);
  element("head").value = state.head;
  Object.assign(state, largestOffDiagonal(state.layer, state.head));
  listen();
  choose();
  element("main").setAttribute("aria-busy", "false");
}

start().catch(error => {
  element("status").textContent = `This browser cannot read the weights: ${error.message}`;
});
