"use strict";
// The page of the widths: it draws what the core computes, and nothing else.

const {keys, values, queries, widths, truth} = data;
const inWords = number => number >= 10 ? String(number) : number.toPrecision(2);
const inWordsOrNone = number => number ? inWords(number) : "0";
const rounded = number => String(Number(number.toPrecision(6))).replace("-", "−");
const query = slider("query", queries, data.query, rounded, show);
const width = slider("width", widths, data.width, inWords, show);
let bet = null;  // the width that the reader chose before seeing the errors
let errorsAt = null;  // of each width: leave-one-out, and with its own key

const [lowest, highest] = spread([...values, ...(truth ? truth.queries : [])]);
const X = spread([...keys, ...queries]), Y = [lowest - 0.05 * (highest - lowest), highest + 0.05 * (highest - lowest)];
const LEFT = 40, RIGHT = 8;
let toQuery = null, toWidth = null;  // from pixels of the two pictures

function show() {
  const weights = weightsAt(query.value, keys, width.value);
  const curve = queries.map(at => weigh(weightsAt(at, keys, width.value), values));
  const prediction = curve[query.place];
  drawPicture(weights, curve);
  element("prediction").textContent = fixed(prediction);
  element("effective").textContent = fixed(effectiveKeys(weights), 1);
  let said = `Prediction ${fixed(prediction)}, ${fixed(effectiveKeys(weights), 1)} effective keys.`;
  if (truth) {
    const right = truth.queries[query.place], expected = weigh(weights, truth.keys);
    element("true").textContent = fixed(right);
    element("bias").textContent = fixed(expected - right);
    element("noise").textContent = fixed(prediction - expected);
    element("rmse").textContent = fixed(rootMeanSquare(curve.map((value, t) => value - truth.queries[t])));
    said += ` Bias ${fixed(expected - right)}, noise ${fixed(prediction - expected)}.`;
  }
  element("bet").textContent = `Bet on width ${inWords(width.value)}`;
  if (bet !== null) said += ` ${showErrors()}`;
  announce(said);
}

function drawPicture(weights, curve) {
  paint(element("picture"), 348, (add, across) => {
    const x = linear(X, [LEFT + 8, across - RIGHT - 8]), y = linear(Y, [214, 22]);
    const centre = x(query.value), most = Math.max(...weights), tall = linear([0, most], [308, 250]);
    toQuery = linear([x(0), x(1)], [0, 1]);
    axes(add, {x, y, left: LEFT, right: across - RIGHT, top: 22, bottom: 214, xTicks: [], yTicks: ticks(Y, 4), xName: "", yName: "value", words: rounded});
    axes(add, {x, y: tall, left: LEFT, right: across - RIGHT, top: 250, bottom: 308, xTicks: ticks(X, 6), yTicks: [], xName: "key", yName: "", words: rounded});
    add("text", {x: LEFT + 6, y: 232}, `weights; the largest is ${fixed(most)}`);
    // The bell, as tall as the weights: it passes through their tops.
    const apart = at => 0.5 * ((at - query.value) / width.value) ** 2;
    const nearest = apart(keys[weights.indexOf(most)]);
    const bell = Array.from({length: 161}, (_, i) => X[0] + i / 160 * (X[1] - X[0]))
      .map(at => [x(at), Math.exp(nearest - apart(at))])
      .map(([pixel, share]) => share < 1.15 ? [pixel, tall(most * share)] : null);
    add("path", {d: path(bell), class: "line strong"});
    weights.forEach((weight, s) => add("rect", {x: (x(keys[s]) - 2).toFixed(1), y: tall(weight).toFixed(1), width: 4, height: (308 - tall(weight)).toFixed(1), fill: colourAt(weight / most), class: "cell"}));
    if (truth) drawCurve(add, x, y, truth.queries, "", [across - RIGHT, "truth"]);
    drawCurve(add, x, y, curve, "strong", [across - RIGHT - 46, "prediction"]);
    add("path", {d: `M${centre} 22V214M${centre} 240V308`, class: "axis strong"});
    weights.forEach((weight, s) => add("circle", {cx: x(keys[s]).toFixed(1), cy: y(values[s]).toFixed(1), r: (2 + 5 * Math.sqrt(weight / most)).toFixed(1), fill: colourAt(weight / most), stroke: "var(--rule)", class: "cell"}));
    add("circle", {cx: centre, cy: y(curve[query.place]), r: 8, class: "line strong"});
  });
}

// A curve over all queries, and its name above the picture.
function drawCurve(add, x, y, curve, look, [at, name]) {
  add("path", {d: path(curve.map((value, t) => [x(queries[t]), y(value)])), class: `line ${look}`});
  add("text", {x: at, y: 14, class: `end ${look}`}, name);
}

// The place of the width with the smallest error, of kind 0: from the others,
// or 1: with its own key.
const bestOf = kind => errorsAt.reduce((best, pair, i) => pair[kind] < errorsAt[best][kind] ? i : best, 0);

function showErrors() {
  const kind = Number(element("own").checked), best = bestOf(0), bestOwn = bestOf(1);
  element("result").textContent = `You bet on ${inWords(widths[bet])}: error ${fixed(errorsAt[bet][0], 3)}. The best of these ${widths.length} widths is ${inWords(widths[best])}: error ${fixed(errorsAt[best][0], 3)}.`;
  let now = `Width ${inWords(width.value)} has error ${fixed(errorsAt[width.place][kind], 3)}.`;
  if (kind) now += ` Each point now sees itself (dashed line). The best is ${inWords(widths[bestOwn])}${bestOwn ? "" : ", the narrowest"}: error ${fixed(errorsAt[bestOwn][1], 3)}.`;
  element("now").textContent = now;
  drawErrors(kind);
  return now;
}

function drawErrors(kind) {
  paint(element("errors"), 220, (add, across) => {
    const best = bestOf(0), least = errorsAt[best][0], most = 2.6 * least || 1;
    const x = logarithmic([widths[0], widths.at(-1)], [LEFT + 8, across - RIGHT - 8]), y = linear([0, most], [176, 22]);
    const outer = [widths[0], widths.at(-1)].filter(end => Math.abs(x(end) - x(widths[best])) > 44);
    axes(add, {x, y, left: LEFT, right: across - RIGHT, top: 22, bottom: 176, xTicks: [widths[best], ...outer], yTicks: ticks([0, most], 4), xName: "width", yName: "mean squared error", words: inWordsOrNone});
    const ends = [widths[0], widths.at(-1)].map(Math.log), straight = linear([LEFT + 8, across - RIGHT - 8], ends);
    toWidth = pixels => Math.exp(clamp(straight(pixels), ...ends));
    const curve = kind => path(errorsAt.map((pair, i) => pair[kind] <= most ? [x(widths[i]), y(pair[kind])] : null));
    add("path", {d: curve(0), class: "line"});
    if (kind) add("path", {d: curve(1), class: "line wrong"});
    // Three marks, named below the axis, where no curve runs.
    const mark = (place, kind, name, r, look, left) => {
      const error = errorsAt[place][kind];
      add("circle", {cx: x(widths[place]), cy: y(Math.min(most, error)), r, class: look});
      add("circle", {cx: left, cy: 204, r, class: look});
      add("text", {x: left + 12, y: 208}, error > most ? `${name} ↑` : name);
    };
    mark(best, 0, "best", 5, "filled", LEFT + 8);
    mark(bet, 0, "your bet", 6, "line", LEFT + 66);
    mark(width.place, kind, "now", 8, "line strong", LEFT + 154);
  });
}

function reveal(open) {
  for (const id of ["before", "bet"]) element(id).hidden = open;
  for (const id of ["after", "own-key", "again"]) element(id).hidden = !open;
}

element("bet").onclick = () => {
  errorsAt ??= widths.map(h => [leaveOneOut(keys, values, h, false), leaveOneOut(keys, values, h, true)]);
  bet = width.place;
  reveal(true);
  show();
  element("result").focus();  // the button that had it is gone
};
element("own").onchange = show;
element("again").onclick = () => {
  bet = null;
  element("own").checked = false;
  reveal(false);
  query.to(data.query);
  width.to(data.width);
  element("width").focus();
};
onPull(element("picture"), pixels => query.near(toQuery(pixels)));
onPull(element("errors"), pixels => width.near(toWidth(pixels)));
element("count").textContent = String(keys.length);
if (!truth) for (const id of ["parts", "everywhere"]) element(id).hidden = true;
paintAtAnyWidth(show);
