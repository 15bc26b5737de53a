"use strict";
// Flash attention of one query. Nothing here knows of the page.

// What the query remembers before its first key.
const nothingRead = width => ({m: -Infinity, shrink: 0, total: 0, carried: Array(width).fill(0)});

// What it remembers after one more block. Without the factor, nothing shrinks.
function readBlock({m, total, carried}, scores, values, shrinks = true) {
  const highest = Math.max(m, ...scores);
  const finite = highest > -Infinity ? highest : 0;  // −∞ − (−∞) is no number
  const shrink = shrinks ? Math.exp(m - finite) : 1;
  const powers = scores.map(score => Math.exp(score - finite));
  return {
    m: highest,
    shrink,
    total: shrink * total + weigh(powers, powers.map(() => 1)),
    carried: carried.map((sum, v) => shrink * sum + weigh(powers, values.map(value => value[v]))),
  };
}

// What it remembers after each block of so many keys.
function readAll(scores, values, blockSize, shrinks = true) {
  const found = [];
  let state = nothingRead(values[0].length);
  for (let j = 0; j < scores.length; j += blockSize) {
    state = readBlock(state, scores.slice(j, j + blockSize), values.slice(j, j + blockSize), shrinks);
    found.push(state);
  }
  return found;
}

const outputOf = ({total, carried}) => carried.map(sum => total ? sum / total : 0);

const logSumExp = ({m, total}) => m + Math.log(total);

// How much each key counts in the output: the output over a value for each key alone.
function sharesOf(scores, blockSize, shrinks = true) {
  const alone = scores.map((_, j) => scores.map((_, s) => Number(s === j)));
  return readAll(scores, alone, blockSize, shrinks).map(outputOf);
}

// The same keys in one softmax.
function attendAtOnce(scores, values) {
  const weights = maskedSoftmax(scores);
  return values[0].map((_, v) => weigh(weights, values.map(value => value[v])));
}
