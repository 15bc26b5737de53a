"use strict";
// Nadaraya–Watson regression in one dimension. Nothing here knows of the page.

// How much each key counts for a query; without its own key if that is left out.
function weightsAt(query, keys, width, leftOut = -1) {
  const scores = keys.map(key => -0.5 * ((query - key) / width) ** 2);
  return maskedSoftmax(scores, keys.map((_, s) => s !== leftOut));
}

// As many equal weights would have the same sum of squares.
const effectiveKeys = weights => 1 / weigh(weights, weights);

const meanSquare = errors => errors.reduce((sum, error) => sum + error ** 2, 0) / errors.length;
const rootMeanSquare = errors => Math.sqrt(meanSquare(errors));

// Mean squared error of each point's prediction from the others, or from all.
function leaveOneOut(keys, values, width, keepOwn) {
  return meanSquare(keys.map((key, s) => weigh(weightsAt(key, keys, width, keepOwn ? -1 : s), values) - values[s]));
}
