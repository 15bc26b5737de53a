"use strict";
// The page of the masks: it draws what the core computes, and nothing else.

const {scores} = data;
const T = data.queries.length, S = data.keys.length;
const isSelf = data.queries.join() === data.keys.join();  // a sentence that attends to itself
let {queries, keys} = data;  // as they are named now: padding has no words
const guess = slider("guess", Array.from({length: 101}, (_, i) => i / 100), 0, fixed, nameBet);
const real = slider("real", Array.from({length: S + 1}, (_, i) => i), S, number => `${number} of ${S}`, byRule);
const everything = scores.map(row => row.map(() => true));
let byHand = data.mask.map(row => [...row]), rule = everything;  // masks of the cells, and of order and padding
let mask = both(byHand, rule);
const plain = weightsOf(scores, everything);
let row = data.query, column = 0;  // the cell that has the keyboard

// What the bet is about: the row's largest weight goes, and what becomes of the next?
const first = weightsOf(scores, mask)[data.query];
const [off, asked] = [...first.keys()].filter(s => mask[data.query][s]).sort((a, b) => first[b] - first[a]);

const inWords = (weight, allowed) => allowed ? fixed(weight) : "0";

function byRule() {
  const left = element("left").checked, [isReal] = maskOf(1, S, real.value, false, left);
  rule = maskOf(T, S, real.value, element("causal").checked, left);
  keys = data.keys.map((name, s) => isReal[s] ? name : "<pad>");
  if (isSelf) queries = keys;
  show();
}

function nameBet() {
  element("bet").textContent = `Bet on ${fixed(guess.value)}`;
}

function makeGrid() {
  const grid = element("grid"), heads = grid.createTHead().insertRow(), body = grid.createTBody();
  heads.insertCell();
  keys.forEach((_, s) => heads.append(head("col", s)));
  queries.forEach((_, t) => {
    const line = body.insertRow();
    line.append(head("row", t));
    keys.forEach((_, s) => {
      const cell = document.createElement("button");
      cell.id = `cell-${t}-${s}`;
      cell.onclick = () => {
        if (rule[t][s]) byHand[t][s] = !byHand[t][s];
        [row, column] = [t, s];
        show();
      };
      cell.onfocus = () => {
        const other = t !== row;
        [row, column] = [t, s];
        if (other) show();
      };
      cell.onkeydown = event => {
        const [down, right] = {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]}[event.key] || [0, 0];
        if (!down && !right) return;
        event.preventDefault();
        [row, column] = [clamp(row + down, 0, T - 1), clamp(column + right, 0, S - 1)];
        show();
        element(`cell-${row}-${column}`).focus();
      };
      line.insertCell().append(cell);
    });
  });
}

function head(scope, place) {
  const made = document.createElement("th");
  made.scope = scope;
  made.id = `${scope}-${place}`;
  return made;
}

function show() {
  mask = both(byHand, rule);
  const weights = weightsOf(scores, mask), open = !element("after").hidden;
  for (let t = 0; t < T; t++) {
    for (let s = 0; s < S; s++) showCell(t, s, weights[t][s], open);
  }
  queries.forEach((name, t) => {
    const line = element(`row-${t}`);
    line.textContent = line.title = name;
    line.className = t === row ? "strong" : "";
  });
  keys.forEach((name, s) => { element(`col-${s}`).textContent = element(`col-${s}`).title = name; });
  drawPicture(weights[row]);
  const kept = mask[row].filter(Boolean).length, empty = emptyRows(mask).map(t => queries[t] === String(t) ? `row ${t}` : `row ${t} (${queries[t]})`).join(", ") || "none";
  for (const name of document.querySelectorAll(".row-name")) name.textContent = queries[row];
  element("here").hidden = !kept;
  element("nothing").hidden = Boolean(kept);
  element("kept").textContent = String(kept);
  element("share").textContent = fixed(weigh(plain[row], mask[row].map(Number)));
  element("sum").textContent = fixed(weigh(weights[row], weights[row].map(() => 1)));
  element("empty").textContent = empty;
  announce(`${rule[row][column] ? "" : "Order or padding forbids this cell. "}Row ${queries[row]}: ${keys.map((name, s) => `${name} ${inWords(weights[row][s], mask[row][s])}`).join(", ")}. Rows with nothing: ${empty}.`);
}

function showCell(t, s, weight, open) {
  const cell = element(`cell-${t}-${s}`), allowed = mask[t][s];
  cell.textContent = inWords(weight, allowed);
  cell.className = allowed ? "number cell" : "number forbidden";
  cell.style.background = allowed ? colourAt(weight) : "";
  cell.style.color = allowed ? inkOn(weight) : "";
  cell.disabled = !open;
  cell.tabIndex = t === row && s === column ? 0 : -1;
  cell.setAttribute("aria-pressed", String(allowed));
  cell.setAttribute("aria-label", `${queries[t]} to ${keys[s]}, ${allowed ? "allowed" : "forbidden"}, ${inWords(weight, allowed)}`);
}

const LEFT = 40, RIGHT = 8;

function drawPicture(weights) {
  paint(element("picture"), 214, (add, across) => {
    const wide = (across - LEFT - RIGHT) / S, x = s => LEFT + wide * (s + 0.5), y = linear([0, 1], [160, 36]);
    const bar = Math.min(40, wide / 2 - 2);
    axes(add, {x, y, left: LEFT, right: across - RIGHT, top: 30, bottom: 160, xTicks: [], yTicks: [0, 0.5, 1], xName: "", yName: "weight"});
    add("text", {x: across - RIGHT, y: 14, class: "end strong"}, `“${queries[row]}” with the mask`);
    add("text", {x: across - RIGHT, y: 30, class: "end"}, "outline: without");
    weights.forEach((weight, s) => {
      add("rect", {x: x(s) - bar, y: y(plain[row][s]), width: bar, height: 160 - y(plain[row][s]), class: "line"});
      add("rect", {x: x(s), y: y(weight), width: bar, height: 160 - y(weight), class: "bar strong"});
      if (wide < 44) return;
      add("text", {x: x(s), y: 177, class: "middle"}, shortened(keys[s], wide));
      add("text", {x: x(s), y: 193, class: "middle"}, mask[row][s] ? `${score(s)} + 0` : `${score(s)} − ∞`);
    });
    add("text", {x: LEFT, y: 210}, "below each key: its score + M");
  });
}

const score = s => String(Number(scores[row][s].toPrecision(2))).replace("-", "−");
const shortened = (name, wide) => name.length * 8 > wide ? `${name.slice(0, Math.floor(wide / 8) - 1)}…` : name;

function reveal(open) {
  element("before").hidden = open;
  element("how").textContent = open ? "Click a cell to forbid its key, or to allow it. What order or padding forbids stays forbidden: masks join with &." : "After your bet, the cells are yours to forbid.";
  for (const id of ["after", "controls"]) element(id).hidden = !open;
}

element("bet").onclick = () => {
  const bet = guess.value;
  byHand[data.query][off] = false;
  [row, column] = [data.query, off];
  reveal(true);
  show();
  const now = weightsOf(scores, mask)[row][asked];
  element("result").textContent = `You bet on ${fixed(bet)}. The weight of “${keys[asked]}” was ${fixed(first[asked])}. Without “${keys[off]}” it is ${fixed(now)}, as in a softmax over the other keys. They share what the forbidden one had, each in proportion. Now click any cell. What becomes of a row that loses all its keys? Then lower the valid length: the rest is padding, after the words or on their left.`;
  element("result").focus();  // the button that had it is gone
};
for (const id of ["causal", "left"]) element(id).onchange = byRule;
element("again").onclick = () => {
  for (const id of ["causal", "left"]) element(id).checked = false;
  reveal(false);
  real.to(S);  // and all names are what they were
  byHand = data.mask.map(row => [...row]);
  row = data.query;
  show();
  element("guess").focus();
};
element("count").textContent = String(S);
element("uniform").textContent = fixed(1 / S);
element("asked-row").textContent = queries[data.query];
element("asked-off").textContent = keys[off];
element("asked-key").textContent = keys[asked];
element("weight-off").textContent = fixed(first[off]);
element("weight-key").textContent = fixed(first[asked]);
guess.near(first[asked]);
reveal(false);
makeGrid();
paintAtAnyWidth(show);
