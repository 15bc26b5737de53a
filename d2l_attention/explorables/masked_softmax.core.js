"use strict";
// Masks of order and of padding. Nothing here knows of the page.

// Which of S keys each of T queries may attend to: so many real ones, in
// front of the padding or behind it, and none that comes later if causal.
function maskOf(T, S, real, causal, left) {
  const isReal = s => left ? s >= S - real : s < real;
  const isPast = (t, s) => s <= t + S - T;  // the last query stands at the last key
  return Array.from({length: T}, (_, t) => Array.from({length: S}, (_, s) => isReal(s) && (!causal || isPast(t, s))));
}

// What both masks allow.
const both = (one, other) => one.map((row, t) => row.map((may, s) => may && other[t][s]));

const weightsOf = (scores, mask) => scores.map((row, t) => maskedSoftmax(row, mask[t]));

const emptyRows = mask => mask.flatMap((row, t) => row.some(Boolean) ? [] : [t]);
