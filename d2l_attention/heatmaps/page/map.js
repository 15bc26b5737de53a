"use strict";
// The map of one head: where its cells lie, and how it is drawn.

const LARGEST_CELL = 48, LARGEST_ZOOMED = 64;
const LABEL = 14;  // signs of a label
const PAD = 10;

// A zoomed map shows a window of its cells; `cell` is null where all fit.
const zoom = {cell: null, row: 0, column: 0};

// What is drawn at last, for the next move of the cell.
const painted = {};

// The readout stands beside the map, or below it.
const isBeside = () => getComputedStyle(element("main")).display === "flex";

// Pixels of the rows at most: what stands below them is still seen.
const highest = below => Math.max(400, isBeside() ? innerHeight - below - 130 : 0.72 * innerHeight);

// Pixels of the columns with their labels.
function widest() {
  const {columnGap} = getComputedStyle(element("main"));
  const beside = isBeside() ? element("readout").offsetWidth + parseInt(columnGap, 10) : 0;
  return element("main").clientWidth - beside;
}

// Sizes in pixels, and which cells are seen.
function measureMap() {
  const {layer} = state;
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const rows = bottom - top, columns = to - from;
  const left = widestLabel(layer.queries, LABEL) + 8;
  const below = widestLabel(layer.keys, LABEL) + 8;
  const room = Math.max(60, widest() - left - PAD - 8);
  const most = Math.min(LARGEST_CELL, highest(below) / rows, room / columns);
  // Cells smaller than a pixel are drawn in blocks of one pixel.
  const fit = most >= 1 ? Math.floor(most) : 1 / Math.ceil(1 / most);
  const cell = Math.max(fit, zoom.cell ?? fit);
  const seenRows = Math.min(rows, Math.floor(highest(below) / cell));
  const seenColumns = Math.min(columns, Math.floor(room / cell));
  const block = Math.max(1, Math.round(1 / cell));
  const startOf = (place, seen, all) => Math.floor(clamp(place, 0, all - seen) / block) * block;
  zoom.row = startOf(zoom.row, seenRows, rows);
  zoom.column = startOf(zoom.column, seenColumns, columns);
  return {
    layer, top, from, to, rows, columns, left, below, fit, cell, block, seenRows, seenColumns,
    zoomed: seenRows < rows || seenColumns < columns,
    width: left + seenColumns * cell + PAD, height: PAD + seenRows * cell + below,
  };
}

const xOf = (map, s) => map.left + (placeOf(map.layer, s) - zoom.column) * map.cell;
const yOf = (map, t) => PAD + (t - map.top - zoom.row) * map.cell;

function keyAt(map, x) {
  const place = Math.floor((x - map.left) / map.cell) + zoom.column;
  return map.layer.backward ? map.to - 1 - place : map.from + place;
}

function queryAt(map, y) {
  return map.top + zoom.row + Math.floor((y - PAD) / map.cell);
}

function isOnCells(map, x, y) {
  const right = map.left + map.seenColumns * map.cell, bottom = PAD + map.seenRows * map.cell;
  return x >= map.left && x < right && y >= PAD && y < bottom;
}

// The window follows the chosen cell.
function followCell(map) {
  const row = state.query - map.top, column = placeOf(map.layer, state.key);
  zoom.row = clamp(zoom.row, row - map.seenRows + 1, row);
  zoom.column = clamp(zoom.column, column - map.seenColumns + 1, column);
}

function drawCells(pen, map, picture, colours) {
  const {block, cell} = map;
  const part = [zoom.column, zoom.row, map.seenColumns, map.seenRows].map(n => Math.ceil(n / block));
  pen.picture(picture, part, map.left, PAD, map.seenColumns * cell, map.seenRows * cell);
  if (cell >= 6) pen.lines(hatching(map), colours.hatch);
  // Around the cells, of which it hides none.
  pen.frame(map.left - 0.5, PAD - 0.5, map.seenColumns * cell + 1, map.seenRows * cell + 1, colours.rule, 1);
}

// Three diagonals through each forbidden cell; they go on in the next one.
function hatching(map) {
  const segments = [], c = map.cell, h = map.cell / 2;
  for (let t = map.top + zoom.row; t < map.top + zoom.row + map.seenRows; t++) {
    for (let place = 0; place < map.seenColumns; place++) {
      const x = map.left + place * c, y = yOf(map, t);
      const s = keyAt(map, x + h);
      if (map.layer.hidden.has(s) || !Number.isNaN(weight(map.layer, state.head, t, s))) continue;
      segments.push([x, y + h, x + h, y], [x, y + c, x + c, y], [x + h, y + c, x + c, y + h]);
    }
  }
  return segments;
}

function drawLabels(pen, map, colours, marked = true) {
  const every = Math.ceil(14 / map.cell), {layer} = map;
  const isFree = (at, here) => at === here || (at % every === 0 && Math.abs(at - here) * map.cell >= 14);
  for (let row = zoom.row; row < zoom.row + map.seenRows; row++) {
    const t = map.top + row;
    if (!isFree(row, state.query - map.top)) continue;
    const bold = marked && t === state.query;
    pen.text(short(layer.queries[t], LABEL), map.left - 5, yOf(map, t) + map.cell / 2, bold ? colours.here : colours.ink, {anchor: "end", bold});
  }
  const bottom = PAD + map.seenRows * map.cell + 5;
  for (let s = map.from; s < map.to; s++) {
    const place = placeOf(layer, s) - zoom.column;
    if (place < 0 || place >= map.seenColumns) continue;
    if (!isFree(place + zoom.column, placeOf(layer, state.key))) continue;
    const bold = marked && s === state.key;
    pen.text(short(layer.keys[s], LABEL), xOf(map, s) + map.cell / 2, bottom, bold ? colours.here : colours.ink, {anchor: "end", upward: true, bold});
  }
}

// White on black is seen on every colour of the map.
function drawCross(pen, map) {
  const {cell, left} = map, x = xOf(map, state.key), y = yOf(map, state.query);
  const right = left + map.seenColumns * cell, bottom = PAD + map.seenRows * cell;
  for (const [colour, thickness] of [["#000", 3], ["#fff", 1]]) {
    if (cell >= 6) {
      pen.frame(left, y, right - left, cell, colour, thickness);
      pen.frame(x, PAD, cell, bottom - PAD, colour, thickness);
      if (state.locked) pen.frame(x, y, cell, cell, colour, 2 * thickness);
      continue;
    }
    // Lines that stop before the cell, which they would hide.
    const gap = state.locked ? 4 : 7, [i, j] = [x + cell / 2, y + cell / 2];
    const cross = [[left, j, i - gap, j], [i + gap, j, right, j], [i, PAD, i, j - gap], [i, j + gap, i, bottom]];
    pen.lines(cross.filter(([x1, y1, x2, y2]) => x2 > x1 || y2 > y1), colour, thickness);
  }
}

// The picture of all cells; moving and zooming the window keeps it.
function pictureFor(map) {
  const isSmall = map.cell < 6;
  const {head, scale, reference, part} = state;
  const wanted = [data.layers.indexOf(map.layer), head, scale, reference, part, map.block, isSmall, ...map.layer.hidden, largestShown()].join();
  if (painted.wanted !== wanted)
    Object.assign(painted, {wanted, share: scaler(map.layer, head), picture: pictureOf(map.layer, head, map.block, isSmall)});
  return painted.picture;
}

// All of the map anew: after another head, scale, zoom or size.
function paintMap() {
  const map = measureMap(), canvas = element("map");
  const ratio = window.devicePixelRatio || 1;
  const colours = theme();
  const cells = document.createElement("canvas");
  for (const target of [canvas, cells])
    Object.assign(target, {width: Math.ceil(map.width * ratio), height: Math.ceil(map.height * ratio)});
  Object.assign(canvas.style, {width: `${map.width}px`, height: `${map.height}px`});
  const picture = pictureFor(map);
  drawCells(canvasPen(cells.getContext("2d"), ratio), map, picture, colours);
  Object.assign(painted, {map, ratio, colours, cells});
  const name = `Heatmap of ${map.rows} queries by ${map.columns} keys, ${state.layer.path}`;
  canvas.setAttribute("aria-label", name);
  element("smaller").disabled = element("fit").disabled = map.cell <= map.fit;
  element("larger").disabled = map.cell >= LARGEST_ZOOMED;
  markCell();
}

// The chosen cell anew, over the cells as they were painted.
function markCell() {
  const {map, ratio, colours, cells} = painted;
  const context = element("map").getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, cells.width, cells.height);
  context.drawImage(cells, 0, 0);
  const pen = canvasPen(context, ratio);
  drawLabels(pen, map, colours);
  drawCross(pen, map);
  tellCell();
}

function mapDrawing() {
  const {map, picture} = painted;
  return {
    width: Math.ceil(map.width), height: Math.ceil(map.height),
    draw(pen) {
      drawCells(pen, map, picture, PAPER);
      drawLabels(pen, map, PAPER, state.locked);
      if (state.locked) drawCross(pen, map);
    },
  };
}
