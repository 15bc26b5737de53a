"use strict";
// All layers and heads at once, as a grid of thumbnails.

let thumbnails = [];  // rows of cells: {cell, layer, head, picture}
let rowNames = [];

const MOST_SIGNS = 90;  // of a name in an exported picture

function shownLayers() {
  return data.layers.filter(layer => state.kind === "all" || layer.kind === state.kind);
}

function nodeWithRole(role, ...content) {
  const node = document.createElement("div");
  node.setAttribute("role", role);
  node.append(...content);
  return node;
}

function thumbnailSize() {
  return parseInt(getComputedStyle(document.documentElement).getPropertyValue("--thumb"), 10) - 4;
}

// A thumbnail has at most a pixel for each pixel of its frame.
function thumbnailOf(layer, head, size) {
  const [top, bottom] = rowsOf(layer), [from, to] = columnsOf(layer);
  const longest = Math.max(bottom - top, to - from);
  const picture = pictureOf(layer, head, Math.ceil(longest / size), true);
  const scale = size / Math.max(picture.width, picture.height);
  picture.style.width = `${Math.max(2, picture.width * scale)}px`;
  picture.style.height = `${Math.max(2, picture.height * scale)}px`;
  return picture;
}

function cellOf(layer, head, row, column, size) {
  const picture = thumbnailOf(layer, head, size);
  const cell = nodeWithRole("gridcell", picture);
  const told = [nameOfMap(layer, head), `largest weight ${largestOfMap(layer, head).toPrecision(2)}`];
  if (state.order) told.push(`${state.order}: ${scoreInWords(scoreOf(layer, head))}`);
  if (layer.hidden.size && layer.block === 1) told.push(`${percent(hiddenShare(layer, head))} of the weight hidden`);
  cell.setAttribute("aria-label", told.join(", "));
  cell.tabIndex = -1;
  cell.onclick = () => openMap(layer, head);
  cell.onkeydown = event => pressKeyOnGrid(event, row, column);
  cell.onfocus = () => tellThumbnail(cell);
  cell.onpointerenter = () => tellThumbnail(cell);
  return {cell, layer, head, picture};
}

function nameOfMap(layer, head) {
  return `${layer.path || "attention"}, head ${layer.heads[head]}`;
}

function tellThumbnail(cell) {
  element("status").textContent = cell.getAttribute("aria-label");
}

function paintOverview() {
  const layers = shownLayers(), size = thumbnailSize();
  const rows = state.order ? rankedRows(layers) : layers.map(rowOfLayer);
  rowNames = rows.map(({name}) => name);
  thumbnails = rows.map(({maps}, row) => maps.map(({layer, head}, column) => cellOf(layer, head, row, column, size)));
  const widest = layers.reduce((a, b) => b.heads.length > a.heads.length ? b : a);
  const heads = state.order ? [] : widest.heads.map(number => nodeWithRole("columnheader", `head ${number}`));
  element("grid").replaceChildren(
    ...(heads.length ? [nodeWithRole("row", nodeWithRole("rowheader", "layer"), ...heads)] : []),
    ...rowNames.map((name, row) => nodeWithRole(
      "row", nodeWithRole("rowheader", name), ...thumbnails[row].map(found => found.cell))),
  );
  element("grid").classList.toggle("ranked", state.order !== "");
  const all = thumbnails.flat(), last = all.find(({layer, head}) => layer === state.layer && head === Math.max(0, state.head));
  (last ?? all[0]).cell.tabIndex = 0;
  element("status").textContent = `${layers.length} layers; ${thumbnails.flat().length} heads. Choose one to open its map.`;
}

function rowOfLayer(layer) {
  return {name: layer.path || "attention", maps: layer.heads.map((_, head) => ({layer, head}))};
}

function openMap(layer, head) {
  element("layer").value = data.layers.indexOf(layer);
  choose();
  element("head").value = head;
  Object.assign(state, largestOffDiagonal(layer, head), {view: "map"});
  choose();
  element("map").focus();
}

// One cell alone is in the order of the tabulator: the one left last.
function focusThumbnail(row, column) {
  const line = thumbnails[clamp(row, 0, thumbnails.length - 1)];
  for (const {cell} of thumbnails.flat()) cell.tabIndex = -1;
  const {cell} = line[clamp(column, 0, line.length - 1)];
  cell.tabIndex = 0;
  // Focus alone may leave the cell below the names, which stay at the left.
  cell.focus({preventScroll: true});
  cell.scrollIntoView({block: "nearest", inline: "nearest"});
}

function pressKeyOnGrid(event, row, column) {
  const {layer, head} = thumbnails[row][column];
  const actions = {
    ArrowUp: () => focusThumbnail(row - 1, column),
    ArrowDown: () => focusThumbnail(row + 1, column),
    ArrowLeft: () => focusThumbnail(row, column - 1),
    ArrowRight: () => focusThumbnail(row, column + 1),
    Home: () => focusThumbnail(row, 0),
    End: () => focusThumbnail(row, Infinity),
    PageUp: () => focusThumbnail(0, column),
    PageDown: () => focusThumbnail(Infinity, column),
    Enter: () => openMap(layer, head),
    " ": () => openMap(layer, head),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

function overviewDrawing() {
  const size = thumbnailSize(), step = size + 10;
  const left = widestLabel(rowNames, MOST_SIGNS) + 16;
  const columns = Math.max(...thumbnails.map(line => line.length));
  return {
    width: left + columns * step, height: 24 + thumbnails.length * step,
    draw(pen) {
      thumbnails.forEach((line, row) => {
        pen.text(short(rowNames[row], MOST_SIGNS), left - 8, 24 + row * step + size / 2, PAPER.ink, {anchor: "end"});
        line.forEach(({picture}, column) => {
          const [width, height] = [parseFloat(picture.style.width), parseFloat(picture.style.height)];
          const x = left + column * step + (size - width) / 2, y = 24 + row * step + (size - height) / 2;
          pen.picture(picture, [0, 0, picture.width, picture.height], x, y, width, height);
        });
      });
      if (state.order) return;
      const longest = thumbnails.find(line => line.length === columns);
      longest.forEach(({layer, head}, column) =>
        pen.text(`${layer.heads[head]}`, left + column * step + size / 2, 12, PAPER.ink, {anchor: "middle"}));
    },
  };
}
