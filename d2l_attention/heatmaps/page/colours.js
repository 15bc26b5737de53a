"use strict";
// From weights to colours: the scale, the theme, and pictures of maps.

const viridis = bytesOf(data.colours);

// Where on the colour scale a weight of row t lies, from 0 to 1.
function scaler(layer, head) {
  if (state.scale === "row") {
    const peaks = layer.queries.map((_, t) => {
      const s = largestOf(layer, head, t);
      return s === null ? 0 : weight(layer, head, t, s);
    });
    return (w, t) => peaks[t] ? Math.min(1, w / peaks[t]) : 0;
  }
  const top = topOf(layer, head) || 1;
  if (state.scale === "root") return w => Math.sqrt(Math.min(1, w / top));
  return w => Math.min(1, w / top);
}

function topOf(layer, head) {
  return state.reference === "all" ? largestShown() : largestOfMap(layer, head);
}

function colourAt(share) {
  const i = 3 * Math.round(255 * share);
  return [viridis[i], viridis[i + 1], viridis[i + 2]];
}

// The colours of labels and lines, as the system and the reader want them.
function theme() {
  const probe = element("probe"), found = {};
  for (const name of ["ink", "paper", "rule", "hatch", "here"]) {
    probe.style.color = `var(--${name})`;
    found[name] = getComputedStyle(probe).color;
  }
  found.dark = numbersOf(found.paper).reduce((a, b) => a + b) < 384;
  return found;
}

// Pictures for a paper are drawn on white.
const PAPER = {ink: "#111", paper: "#fff", rule: "#767676", hatch: "#999", here: "#111", dark: false};

function numbersOf(colour) {
  return colour.match(/\d+/g).slice(0, 3).map(Number);
}

// Neighbouring heads get hues far apart: each turns by the golden angle.
function headColour(head, dark) {
  if (head === MEAN) return dark ? "#eee" : "#111";
  return `hsl(${Math.round(head * 137.5) % 360} 75% ${dark ? 65 : 40}%)`;
}

// Where a key stands from left to right, counted from the first shown.
function placeOf(layer, s) {
  const [from, to] = columnsOf(layer);
  return layer.backward ? to - 1 - s : s - from;
}

const FORBIDDEN = [200, 200, 200];

// A canvas with one pixel for each block of cells, which shows its largest
// weight, so that no spike is lost. Forbidden cells are grey where they are too
// small to be hatched; hidden columns are a darker grey everywhere.
function pictureOf(layer, head, block, isSmall) {
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((to - from) / block);
  canvas.height = Math.ceil((bottom - top) / block);
  const pixels = new ImageData(canvas.width, canvas.height);
  const shares = largestShares(layer, head, block, canvas);
  shares.forEach((share, at) => {
    const rgb = share === OUT_OF_SIGHT ? HIDDEN : share < 0 ? FORBIDDEN : colourAt(share);
    pixels.data.set([...rgb, share === -1 && !isSmall ? 0 : 255], 4 * at);
  });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

// The largest share of each block, -1 where no cell has a weight, or
// `OUT_OF_SIGHT` where those that have one are hidden.
function largestShares(layer, head, block, {width, height}) {
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const share = scaler(layer, head), weights = weightsOf(layer, head);
  const shares = new Float32Array(width * height).fill(-1);
  for (let t = top; t < bottom; t++) {
    const row = Math.floor((t - top) / block) * width;
    for (let s = from; s < to; s++) {
      const w = weights[t * layer.keys.length + s], isHidden = layer.hidden.has(s);
      if (Number.isNaN(w) && !isHidden) continue;
      const place = layer.backward ? to - 1 - s : s - from;
      const at = row + Math.floor(place / block);
      if (isHidden) {
        if (shares[at] < 0) shares[at] = OUT_OF_SIGHT;
        continue;
      }
      shares[at] = Math.max(shares[at], share(w, t));
    }
  }
  return shares;
}

// The colour bar: its picture, and what stands below it.
function barLabels(layer, head) {
  const half = state.scale === "root" ? "¼" : "½";
  if (state.scale === "row") return ["0", half, "row's largest"];
  if (state.reference === "map" && state.view !== "map") return ["0", half, "map's largest"];
  const top = topOf(layer, head);
  const middle = state.scale === "root" ? top / 4 : top / 2;
  return ["0", middle.toPrecision(3), top.toPrecision(3)];
}

function barPicture() {
  const canvas = Object.assign(document.createElement("canvas"), {width: 160, height: 1});
  const pen = canvas.getContext("2d");
  for (let x = 0; x < 160; x++) {
    pen.fillStyle = `rgb(${colourAt(x / 159)})`;
    pen.fillRect(x, 0, 1, 1);
  }
  return canvas;
}
