"use strict";
// The lines between queries and keys: which are seen, and how they are drawn.

const MOST_LINES = 2500;
const FAINTEST = 0.03;  // share of the scale below which no line is seen
const BINS = 1000;

// Calls `visit` for each weight of the shown heads, or of one token alone.
function visitWeights(layer, heads, active, visit) {
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const rows = active?.side === "from" ? [active.at, active.at + 1] : [top, bottom];
  const columns = active?.side === "to" ? [active.at, active.at + 1] : [from, to];
  for (const head of heads) {
    const share = scaler(layer, head), weights = weightsOf(layer, head);
    for (let t = rows[0]; t < rows[1]; t++) {
      for (let s = columns[0]; s < columns[1]; s++) {
        if (layer.hidden.has(s)) continue;
        const w = weights[t * layer.keys.length + s];
        if (!Number.isNaN(w)) visit(t, s, head, share(w, t));
      }
    }
  }
}

// The share that at most `MOST_LINES` weights exceed.
function faintestShown(layer, heads, active) {
  const counts = new Uint32Array(BINS + 1);
  let all = 0;
  visitWeights(layer, heads, active, (t, s, head, share) => { counts[Math.floor(share * BINS)]++; all++; });
  let bin = BINS, shown = counts[BINS];
  while (bin > FAINTEST * BINS && shown + counts[bin - 1] <= MOST_LINES) shown += counts[--bin];
  return {least: bin / BINS, all};
}

// The visible lines, strong ones last, so that they lie on top.
function visibleLinks(layer, heads, active) {
  const {least, all} = faintestShown(layer, heads, active);
  const found = [];
  visitWeights(layer, heads, active, (t, s, head, share) => {
    // Of very many equal weights, the first are drawn.
    if (share >= least && found.length < MOST_LINES) found.push({t, s, head, share});
  });
  found.sort((a, b) => a.share - b.share);
  return {found, all};
}

function drawLinks(pen, layer, links, left, right, yOfRow, dark) {
  const [top] = rowsOf(layer), [from] = columnsOf(layer);
  for (const {t, s, head, share} of links) {
    const line = [left, yOfRow(t - top), right, yOfRow(s - from)];
    pen.lines([line], headColour(head, dark), 0.5 + 2.5 * share, Math.max(0.08, share));
  }
}
