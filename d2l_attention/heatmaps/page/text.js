"use strict";
// Tokens are data: they enter the page as text and nowhere else.

const segmenter = window.Intl && Intl.Segmenter ? new Intl.Segmenter() : null;
const shortened = new Map();  // the views ask for the same tokens again and again

// The signs a reader counts: a letter with its accents or a flag is one.
function signsOf(text) {
  return segmenter ? Array.from(segmenter.segment(text), part => part.segment) : [...text];
}

// At most `most` signs of a text, none of them cut in two.
function short(text, most) {
  const name = `${most} ${text}`;
  if (!shortened.has(name)) {
    const signs = signsOf(text.slice(0, 40 * most));
    shortened.set(name, signs.length > most ? signs.slice(0, most - 1).join("") + "…" : text);
  }
  return shortened.get(name);
}

// A token that cannot turn around the text beside it.
function bdi(text, most) {
  const node = document.createElement("bdi");
  node.textContent = short(text, most);
  return node;
}

// A token and its place, which is said once where tokens are places.
function tokenInWords(tokens, at) {
  return [bdi(tokens[at], 40), tokens[at] === `${at}` ? "" : ` (${at})`];
}

function button(...content) {
  const node = document.createElement("button");
  node.append(...content);
  return node;
}

function say(text) {
  element("said").textContent = text;
}

const ruler = document.createElement("canvas").getContext("2d");
const FONT = "12px sans-serif";

// Pixels that the longest label takes.
function widestLabel(tokens, most) {
  ruler.font = FONT;
  return Math.ceil(tokens.reduce((widest, token) => Math.max(widest, ruler.measureText(short(token, most)).width), 0));
}
