"use strict";
// The page of the carried output: it draws what the core computes, and nothing else.

const {choices, values} = data;
const chosen = [...data.scores];  // of each key: the place of its score
const scoresNow = () => chosen.map(place => choices[place]);
const count = values.length, LAST = count - 1;
const rounded = number => String(Number(number.toPrecision(6))).replace("-", "−");

// The chapter's way: ln 4 for the number whose power of e is 4.
function asLogarithm(number) {
  const power = Math.round(Math.exp(number));
  if (power >= 1 && power <= 1000 && Math.abs(Math.log(power) - number) < 1e-9) return `ln ${power}`;
  return number > -Infinity ? rounded(number) : "−∞";
}
const asVector = numbers => `(${numbers.map(number => fixed(number)).join(", ")})`;
const listed = (low, high) => Array.from({length: high - low + 1}, (_, i) => low + i);

const block = slider("block", listed(1, count), data.block - 1, String, show);
const step = slider("step", listed(1, count), 0, read => `${read} of ${blocks()}`, show);
const key = slider("key", listed(0, LAST), LAST, String, () => { score.to(chosen[key.value]); });
const score = slider("score", choices, data.scores[LAST], asLogarithm, () => {
  chosen[key.value] = score.place;
  show();
});
const totalOf = scores => readAll(scores, values, block.value).at(-1).total;
const guesses = listed(0, 20 * Math.ceil(totalOf(scoresNow()) + 1)).map(i => i / 20);
const guess = slider("guess", guesses, 0, fixed, nameBet);
let bet = null;  // the total that the reader guessed

function blocks() {
  return Math.ceil(count / block.value);
}

function nameBet() {
  element("bet").textContent = `Bet on ${fixed(guess.value)}`;
}

function show() {
  step.upTo(blocks());
  const scores = scoresNow(), shrinks = !element("forgotten").checked;
  const states = readAll(scores, values, block.value, shrinks);
  const now = states[step.place], before = states[step.place - 1] || nothingRead(values[0].length);
  const read = Math.min(count, step.value * block.value), from = step.place * block.value;
  const shares = sharesOf(scores, block.value, shrinks)[step.place];
  const output = outputOf(now), right = attendAtOnce(scores.slice(0, read), values.slice(0, read));
  const same = output.every((number, v) => Math.abs(number - right[v]) < 1e-9);
  drawPicture(scores, shares, now, before, {from, read});
  element("m-before").textContent = asLogarithm(before.m);
  element("m").textContent = asLogarithm(now.m);
  element("shrink").textContent = fixed(Math.exp(before.m - now.m), 3);
  element("left-out").hidden = shrinks || !step.place;
  tellSums(now, before);
  element("output").textContent = asVector(output);
  element("output").className = element("verdict").className = same ? "strong" : "wrong";
  element("verdict").textContent = same ? "agree" : "differ";
  element("at-once").textContent = asVector(right);
  element("norm").textContent = fixed(logSumExp(now));
  element("norm").className = same ? "number" : "number wrong";
  element("total-of-all").textContent = fixed(totalOf(scores));
  announce(`Block ${step.value} of ${blocks()}: m = ${asLogarithm(now.m)}, shrink ${shrinks ? fixed(now.shrink) : "left out"}, total ${fixed(now.total)}, output ${asVector(output)}${same ? "" : `, which is wrong: ${asVector(right)}`}.`);
}

// What the query remembers, in rows: name, sum before, what is kept of it, and now.
function sumsOf(now, before) {
  const one = (name, old, sum) => ({name, old, kept: now.shrink * old, sum});
  return [one("total", before.total, now.total), ...now.carried.map((sum, v) => one(`carried ${v}`, before.carried[v], sum))];
}

function tellSums(now, before) {
  element("sums").replaceChildren(...sumsOf(now, before).map(({name, old, kept, sum}) => {
    const row = document.createElement("tr"), head = document.createElement("th");
    head.textContent = name;
    head.scope = "row";
    row.append(head);
    for (const [column, number] of Object.entries({before: old, kept, added: sum - kept, now: sum})) {
      const cell = row.insertCell();
      cell.className = "number";
      cell.id = `${name.replace(" ", "-")}-${column}`;
      cell.textContent = fixed(number);
    }
    return row;
  }));
}

const LEFT = 40, RIGHT = 24;

function drawPicture(scores, shares, now, before, {from, read}) {
  paint(element("picture"), 412, (add, across) => {
    const [low, high] = spread(scores), room = 0.12 * (high - low);
    const wide = (across - LEFT - RIGHT) / count, x = j => LEFT + wide * (j + 0.5);
    const Y = [low - room, high + room], y = linear(Y, [150, 40]);
    axes(add, {x, y, left: LEFT, right: across - RIGHT, top: 40, bottom: 150, xTicks: [], yTicks: ticks(Y, 3), xName: "", yName: "score", words: rounded});
    // The blocks: forgotten, read now, to come.
    const parts = [["forgotten", 0, from, ""], ["read now", from, read, "strong"], ["to come", read, count, ""]];
    for (const [name, start, end, look] of parts) {
      if (start < end && wide * (end - start) > 60) add("text", {x: LEFT + wide * (start + end) / 2, y: 32, class: `middle ${look}`}, name);
    }
    add("rect", {x: LEFT + wide * from + 1, y: 40, width: wide * (read - from) - 2, height: 110, class: "line strong"});
    scores.forEach((value, j) => add("circle", {cx: x(j), cy: y(value), r: 5, class: j < from ? "line faint" : j < read ? "line strong filled" : "line"}));
    add("path", {d: `M${LEFT} ${y(now.m)}H${LEFT + wide * read}`, class: "line strong"});
    add("text", {x: LEFT + wide * read + 4, y: y(now.m) + 4, class: "strong"}, "m");
    // How much each key counts so far.
    const most = Math.max(...shares);
    add("text", {x: LEFT, y: 184}, wide > 36 ? "share in the output so far, and value" : "share in the output so far");
    shares.forEach((share, j) => {
      if (wide > 20) add("text", {x: x(j), y: 165, class: bet !== null && j === key.value ? "middle strong" : "middle"}, String(j));
      const value = `(${values[j].map(rounded).join(", ")})`;
      if (wide > 7 * value.length) add("text", {x: x(j), y: 239, class: "middle"}, value);
      if (j >= read) return;
      add("rect", {x: LEFT + wide * j + 1, y: 190, width: wide - 2, height: 18, fill: colourAt(share / most), class: "cell"});
      if (wide > 36) add("text", {x: x(j), y: 223, class: "middle"}, fixed(share));
    });
    if (wide > 20) add("text", {x: LEFT - 4, y: 165, class: "end"}, "key");
    drawSums(add, across, sumsOf(now, before));
  });
}

// Each sum before and now, as bars: what is kept of it, and what the block adds.
function drawSums(add, across, sums) {
  const wide = (across - LEFT - RIGHT) / sums.length;
  sums.forEach(({name, old, kept, sum}, i) => {
    const y = linear(spread([0, 1e-9, old, kept, sum]), [358, 286]), left = LEFT + wide * i, bar = Math.min(46, wide / 2 - 8);
    const pillar = (start, a, b, look) => add("rect", {x: left + start, y: Math.min(y(a), y(b)), width: bar, height: Math.abs(y(a) - y(b)), class: look});
    add("text", {x: left, y: 274}, name);
    pillar(0, 0, old, "line");
    pillar(bar + 6, 0, kept, "bar strong");
    pillar(bar + 6, kept, sum, "bar faint");
    add("path", {d: `M${left} ${y(0)}h${2 * bar + 6}`, class: "axis"});
    const [first, second] = [old, sum].map(number => fixed(number));
    if (7.5 * (first + second).length < 2 * bar + 12) add("text", {x: left + bar / 2, y: 374, class: "middle"}, first);
    add("text", {x: left + 1.5 * bar + 6, y: 374, class: "middle"}, second);
  });
  add("rect", {x: LEFT, y: 392, width: 12, height: 12, class: "line"});
  add("text", {x: LEFT + 18, y: 403}, "before");
  add("rect", {x: LEFT + 74, y: 392, width: 12, height: 12, class: "bar strong"});
  add("text", {x: LEFT + 92, y: 403}, "kept");
  add("rect", {x: LEFT + 134, y: 392, width: 12, height: 12, class: "bar faint"});
  add("text", {x: LEFT + 152, y: 403}, "added");
}

function reveal(open) {
  element("before").hidden = open;
  element("after").hidden = !open;
}

element("bet").onclick = () => {
  const old = readAll(scoresNow(), values, block.value).at(-1);
  bet = guess.value;
  reveal(true);
  key.to(LAST);
  score.to(data.raised);
  step.to(blocks() - 1);
  const now = readAll(scoresNow(), values, block.value).at(-1);
  const raised = asLogarithm(choices[data.raised]);
  element("result").textContent = `You bet on ${fixed(bet)}. With a last score of ${raised} the total ends at ${fixed(now.total)}, in place of ${fixed(old.total)}: it is counted in units of e to the m, and m ends at ${asLogarithm(now.m)}, in place of ${asLogarithm(old.m)}. m + ln total rises from ${fixed(logSumExp(old))} to ${fixed(logSumExp(now))}.`;
  element("result").focus();  // the button that had it is gone
};
element("forgotten").onchange = show;
element("again").onclick = () => {
  bet = null;
  data.scores.forEach((place, j) => { chosen[j] = place; });
  element("forgotten").checked = false;
  reveal(false);
  block.to(data.block - 1);
  step.to(0);
  guess.near(totalOf(scoresNow()));
  element("step").focus();
};
element("raised").textContent = asLogarithm(choices[data.raised]);
guess.near(totalOf(scoresNow()));
paintAtAnyWidth(show);
