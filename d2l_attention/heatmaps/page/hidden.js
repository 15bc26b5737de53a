"use strict";
// Keys that the reader hides: one that takes most of the weight leaves the
// others no colours. The weights stay as they are, and no view divides them.

const HIDDEN = [150, 150, 150];  // no weight and no forbidden cell is this grey
const OUT_OF_SIGHT = -2;  // the share of a cell whose key is hidden
const MOST_BUTTONS = 6;  // for keys to be shown again; then one for all

// Layers with the same keys hide the same: each head of a model has its sink.
function alike(layer) {
  const nameOf = ({keys}) => JSON.stringify(keys);
  return data.layers.filter(other => nameOf(other) === nameOf(layer));
}

let largest = null;  // is looked for when the hidden keys change

function setHidden(layer, key, isHidden) {
  for (const {hidden} of alike(layer)) isHidden ? hidden.add(key) : hidden.delete(key);
  largest = null;
}

// Hides the key of the chosen cell, or shows it again.
function turnKey() {
  setHidden(state.layer, state.key, !state.layer.hidden.has(state.key));
  paint();
}

// The largest weight of all maps, without the hidden keys.
function largestShown() {
  if (data.layers.every(({hidden}) => !hidden.size)) return data.most;
  largest ??= Math.max(...data.layers.map(largestOfLayer));
  return largest;
}

function largestOfLayer(layer) {
  const {cells, none} = layer, T = layer.queries.length, S = layer.keys.length;
  const shown = [...layer.keys.keys()].filter(s => !layer.hidden.has(s));
  let highest = 0;
  for (let h = 0, row = 0; h < layer.heads.length; h++) {
    for (let t = 0; t < T; t++, row += S) {
      let level = 0;
      for (const s of shown) if (cells[row + s] !== none && cells[row + s] > level) level = cells[row + s];
      highest = Math.max(highest, level * stepOf(layer, h, t));
    }
  }
  return highest;
}

// How much of the weight of the shown queries lies on hidden keys.
function hiddenShare(layer, head) {
  const [top, bottom] = rowsOf(layer), S = layer.keys.length;
  const weights = weightsOf(layer, head);
  let all = 0, hidden = 0;
  for (let i = top * S; i < bottom * S; i++) {
    if (Number.isNaN(weights[i])) continue;
    all += weights[i];
    if (layer.hidden.has(i % S)) hidden += weights[i];
  }
  return all ? hidden / all : 0;
}

const percent = share => `${Math.round(100 * share)}%`;

// Hidden keys of the layer, or of all layers of the overview; equal ones once.
function hiddenKeys() {
  const layers = state.view === "overview" ? shownLayers() : [state.layer], found = new Map();
  for (const layer of layers)
    for (const key of layer.hidden) found.set(JSON.stringify([key, layer.keys]), {layer, key});
  return [...found.values()];
}

// Which keys are hidden, how much they weigh, and buttons to show them again.
function tellHidden() {
  const found = hiddenKeys(), shows = element("shows"), {layer, head} = state;
  const hadFocus = shows.contains(document.activeElement);
  const buttons = found.length > MOST_BUTTONS
    ? [showButton(found, `Show all ${found.length} keys`)]
    : found.map(item => showButton([item], "Show key ", ...tokenInWords(item.layer.keys, item.key)));
  shows.replaceChildren(...buttons);
  element("hiding").hidden = state.view !== "map" && !found.length;
  if (hadFocus) (buttons[0] ?? (state.view === "map" ? element("hide") : element("views").querySelector("[aria-pressed=true]"))).focus();
  const words = document.createElement("span");
  if (found.length) words.append(`Hidden: ${found.length > MOST_BUTTONS ? `${found.length} keys` : "key "}`);
  if (found.length <= MOST_BUTTONS)
    found.forEach((item, i) => words.append(i ? " and " : "", ...tokenInWords(item.layer.keys, item.key)));
  // Where a cell is the largest of a block, the page does not have the sums.
  if (found.length && state.view === "map" && layer.block === 1)
    words.append(`, ${percent(hiddenShare(layer, head))} of the weight of ${head === MEAN ? "the mean of the heads" : "this head"}`);
  if (found.length) words.append(". The other weights are as they were.");
  // A screen reader says what changes, and nothing twice.
  if (words.textContent !== element("told").textContent) element("told").replaceChildren(words);
}

function showButton(found, ...content) {
  const node = button(...content);
  node.onclick = () => {
    for (const {layer, key} of found) setHidden(layer, key, false);
    paint();
  };
  return node;
}
