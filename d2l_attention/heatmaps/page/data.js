"use strict";
// The weights, read out of what Python put into the page.

const MEAN = -1;  // stands for the mean of all heads of a layer

// What the reader has chosen. Every view draws from it and from nothing else.
const state = {
  view: data.first.view,
  layer: data.layers[data.first.layer],
  head: data.first.head ?? 0,
  query: 0,
  key: 0,
  locked: false,  // whether the pointer leaves the cell where it is
  scale: "linear",
  reference: "all",
  part: "all",
  kind: "all",
  order: "",  // the kind of score by which the overview is sorted
};

function bytesOf(text) {
  return Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
}

async function inflate(text) {
  const packed = new Blob([bytesOf(text)]).stream();
  const stream = packed.pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// All low bytes stand before all high bytes.
function joinBytes(bytes) {
  const half = bytes.length / 2;
  return Uint16Array.from({length: half}, (_, i) => bytes[i] + 256 * bytes[half + i]);
}

async function readLayer(layer) {
  const bytes = await inflate(layer.weights);
  layer.cells = layer.peaks ? bytes : joinBytes(bytes);
  layer.none = layer.peaks ? 255 : 65535;  // the value of a cell without weight
  if (layer.peaks) layer.peaks = new Float32Array((await inflate(layer.peaks)).buffer);
  layer.hidden = new Set(layer.hidden);
  layer.weights = new Map();  // head → its weights, read when they are asked for
}

// The weight of one level in a row: numbers are exact to half of it.
function stepOf(layer, head, t) {
  if (!layer.peaks) return data.most / layer.levels;
  const T = layer.queries.length;
  if (head !== MEAN) return layer.peaks[head * T + t] / layer.levels;
  let sum = 0;
  for (let h = 0; h < layer.heads.length; h++) sum += layer.peaks[h * T + t];
  return sum / layer.heads.length / layer.levels;
}

// The weights of a head row by row, NaN where there is none.
function weightsOf(layer, head) {
  if (!layer.weights.has(head)) layer.weights.set(head, head === MEAN ? meanOf(layer) : decode(layer, head));
  return layer.weights.get(head);
}

function decode(layer, head) {
  const T = layer.queries.length, S = layer.keys.length;
  const weights = new Float64Array(T * S);
  for (let t = 0, i = 0; t < T; t++) {
    const step = stepOf(layer, head, t);
    for (let s = 0; s < S; s++, i++) {
      const cell = layer.cells[head * T * S + i];
      weights[i] = cell === layer.none ? NaN : cell * step;
    }
  }
  return weights;
}

function meanOf(layer) {
  const size = layer.queries.length * layer.keys.length;
  const sums = new Float64Array(size), counts = new Uint16Array(size);
  for (let h = 0; h < layer.heads.length; h++) {
    const weights = weightsOf(layer, h);
    for (let i = 0; i < size; i++)
      if (!Number.isNaN(weights[i])) { sums[i] += weights[i]; counts[i]++; }
  }
  return sums.map((sum, i) => counts[i] ? sum / counts[i] : NaN);
}

// The weight of one cell, NaN where there is none.
function weight(layer, head, t, s) {
  return weightsOf(layer, head)[t * layer.keys.length + s];
}

// A weight with the digits that are true.
function weightInWords(layer, head, t, s) {
  const step = stepOf(layer, head, t) || 1e-4;  // a row of zeros is exact
  // The error, half a step, is at most a quarter of the last digit.
  const digits = clamp(Math.floor(-Math.log10(2 * step)), 0, 12);
  return weight(layer, head, t, s).toFixed(digits);
}

function precisionInWords(layer) {
  const of = layer.peaks ? "of its row" : "of all maps";
  return `Weights of this layer are rounded to 1/${layer.levels} of the largest weight ${of}; numbers show the digits that are true. ${layer.sums}`;
}

// First and behind last of the rows (or columns) that the sentence filter shows.
function sentence(layer, size, letter) {
  if (state.part === "all" || layer.sentence_b === null) return [0, size];
  return letter === "A" ? [0, layer.sentence_b] : [layer.sentence_b, size];
}
const rowsOf = layer => sentence(layer, layer.queries.length, state.part[0]);
const columnsOf = layer => sentence(layer, layer.keys.length, state.part[1]);

// Key with the largest shown weight of a query, or null.
function largestOf(layer, head, t) {
  const [from, to] = columnsOf(layer);
  const row = weightsOf(layer, head).subarray(t * layer.keys.length);
  let best = null;
  for (let s = from; s < to; s++)
    if (row[s] >= 0 && !layer.hidden.has(s) && (best === null || row[s] > row[best])) best = s;
  return best;
}

// The cell with the largest weight; a token's weight for itself says little.
function largestOffDiagonal(layer, head) {
  const S = layer.keys.length, isSquare = layer.queries.length === S;
  let found = {query: 0, key: 0}, most = -1;
  weightsOf(layer, head).forEach((w, i) => {
    const query = Math.floor(i / S), key = i % S;
    if (w > most && !layer.hidden.has(key) && !(isSquare && query === key)) [found, most] = [{query, key}, w];
  });
  return found;
}

function largestOfMap(layer, head) {
  const [from, to] = rowsOf(layer);
  let most = 0;
  for (let t = from; t < to; t++) {
    const s = largestOf(layer, head, t);
    if (s !== null) most = Math.max(most, weight(layer, head, t, s));
  }
  return most;
}
