"use strict";
// The heads of all layers in one list, by one kind of the scores they have.

function scoreOf(layer, head) {
  const place = data.layers.indexOf(layer);
  return data.scores.find(found => found.kind === state.order && found.layer === place && found.head === head);
}

// A score, and what it is compared with: keys in a random order.
function scoreInWords(found) {
  if (!found || found.score === null) return "no score";
  const {score, null: limit} = found;
  if (limit === null) return score.toFixed(2);
  const isClose = score !== limit && score.toFixed(2) === limit.toFixed(2);
  const [a, b] = [score, limit].map(number => number.toFixed(isClose ? 4 : 2));
  return `${a} (95 % of shuffles: below ${b})`;
}

// Heads without a score stand last.
function rankedRows(layers) {
  const maps = layers.flatMap(layer => layer.heads.map((_, head) => ({layer, head})));
  const rows = maps.map(map => ({map, found: scoreOf(map.layer, map.head)}));
  const rank = ({found}) => found?.score ?? -Infinity;
  rows.sort((a, b) => rank(b) === rank(a) ? 0 : rank(b) - rank(a));
  return rows.map(({map, found}) => ({name: `${nameOfMap(map.layer, map.head)}: ${scoreInWords(found)}`, maps: [map]}));
}
