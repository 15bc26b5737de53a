"use strict";
// The current view as PNG and SVG, the current map as CSV.

const SHARPNESS = 2;  // pixels of a PNG for each pixel of the screen
const MOST_PIXELS = 16000;  // higher canvases are refused by browsers
const BAR = 44;  // height of the colour bar with its labels
const LINE = 18;

// The view with the colour bar below it, and a line about hidden keys.
function currentDrawing() {
  const {width, height, draw} = {map: mapDrawing, overview: overviewDrawing, lines: linesDrawing}[state.view]();
  const hasBar = state.view !== "lines", told = element("told").textContent;
  const bottom = height + (hasBar ? BAR : 0);
  return {
    width: Math.max(width, hasBar ? 200 : 0, told && widestLabel([told], Infinity) + 32), height: bottom + (told ? LINE : 0),
    paint(pen) {
      pen.box(0, 0, this.width, this.height, PAPER.paper);
      draw(pen);
      if (hasBar) drawBar(pen, height + 10);
      if (told) pen.text(told, 16, bottom + 4, PAPER.ink);
    },
  };
}

function drawBar(pen, y) {
  pen.picture(barPicture(), [0, 0, 160, 1], 16, y, 160, 12);
  barLabels(state.layer, state.head).forEach((words, i) =>
    pen.text(words, 16 + 80 * i, y + 22, PAPER.ink, {anchor: "middle"}));
}

function fileName(kind) {
  const head = state.view === "map" ? `-head-${nameOfHead(state.layer, state.head)}` : "";
  const path = state.view === "overview" ? "" : `-${state.layer.path.replace(/[^\w-]+/g, "_").slice(0, 80)}`;
  return `attention-${state.view}${path}${head}.${kind}`;
}

function download(blob, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = fileName(kind);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  say(`Saved ${link.download}.`);
}

function savePng() {
  const drawing = currentDrawing(), canvas = document.createElement("canvas");
  const ratio = Math.min(SHARPNESS, MOST_PIXELS / Math.max(drawing.width, drawing.height));
  Object.assign(canvas, {width: drawing.width * ratio, height: drawing.height * ratio});
  drawing.paint(canvasPen(canvas.getContext("2d"), ratio));
  canvas.toBlob(blob => download(blob, "png"));
}

function saveSvg() {
  const drawing = currentDrawing();
  const pen = svgPen(drawing.width, drawing.height, `Attention, ${state.layer.path}`);
  drawing.paint(pen);
  const text = new XMLSerializer().serializeToString(pen.root);
  download(new Blob([text], {type: "image/svg+xml"}), "svg");
}

// A spreadsheet would run a token that begins like a formula, so it gets an
// apostrophe, which spreadsheets read as "this is text".
function quoted(token) {
  const safe = /^[=+\-@]/.test(token) ? `'${token}` : token;
  return `"${safe.replaceAll('"', '""')}"`;
}

function mapAsCsv() {
  const {layer, head} = state;
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const table = [['"query \\ key"', ...layer.keys.slice(from, to).map(quoted)]];
  for (let t = top; t < bottom; t++) {
    const row = [quoted(layer.queries[t])];
    for (let s = from; s < to; s++) {
      const w = weight(layer, head, t, s);
      row.push(Number.isNaN(w) ? "" : Number(w.toPrecision(7)));  // empty: masked
    }
    table.push(row);
  }
  return table.map(row => row.join()).join("\r\n") + "\r\n";
}

// The old way, where the new one is forbidden (in frames, for example).
function copyBySelection(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

async function copyCsv() {
  const text = mapAsCsv(), {layer, head} = state;
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copied = copyBySelection(text);
  }
  element("csv").focus();
  say(copied ? `Copied ${layer.path || "attention"}, head ${nameOfHead(layer, head)}, as CSV.` : "This browser refused to copy.");
}
