"use strict";
// Softmax and weighted sum. Nothing here knows of the page.

// e to each allowed score over the sum of these; 0 where nothing is allowed.
function maskedSoftmax(scores, mask = null) {
  const allowed = mask ? scores.filter((_, s) => mask[s]) : scores;
  const most = Math.max(...allowed);  // no power is larger than 1
  const powers = scores.map((score, s) => mask && !mask[s] ? 0 : Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map(power => total ? power / total : 0);
}

const weigh = (weights, values) => weights.reduce((sum, weight, s) => sum + weight * values[s], 0);
