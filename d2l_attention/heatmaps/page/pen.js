"use strict";
// Two pens with the same strokes: one paints on a canvas, one writes SVG.
// Each view is drawn once and serves the screen and both exports.

function canvasPen(context, ratio) {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  context.font = FONT;
  context.textBaseline = "middle";

  function stroke(colour, width, trace) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    trace();
    context.stroke();
  }

  return {
    box(x, y, width, height, colour) {
      context.fillStyle = colour;
      context.fillRect(x, y, width, height);
    },
    frame(x, y, width, height, colour, thickness) {
      stroke(colour, thickness, () => context.rect(x, y, width, height));
    },
    lines(segments, colour, thickness = 1, opacity = 1) {
      context.globalAlpha = opacity;
      stroke(colour, thickness, () => {
        for (const [x1, y1, x2, y2] of segments) {
          context.moveTo(x1, y1);
          context.lineTo(x2, y2);
        }
      });
      context.globalAlpha = 1;
    },
    // `anchor` is start, middle or end; `upward` text runs from below.
    text(words, x, y, colour, {anchor = "start", upward = false, bold = false} = {}) {
      context.save();
      context.font = bold ? `bold ${FONT}` : FONT;
      context.fillStyle = colour;
      context.textAlign = {start: "left", middle: "center", end: "right"}[anchor];
      context.translate(x, y);
      if (upward) context.rotate(-Math.PI / 2);
      context.fillText(words, 0, 0);
      context.restore();
    },
    // `part` is the piece of the picture that is drawn: x, y, width, height.
    picture(image, part, x, y, width, height) {
      context.drawImage(image, ...part, x, y, width, height);
    },
  };
}

// The document knows the namespace, so that no address stands in the page.
const SVG = element("namespace").namespaceURI;
const MOST_RECTANGLES = 4096;  // of a file; further cells are written as pixels

function svgNode(name, attributes, words = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (words) node.textContent = words;
  return node;
}

function svgPen(width, height, title) {
  const root = svgNode("svg", {width, height, viewBox: `0 0 ${width} ${height}`});
  root.append(svgNode("title", {}, title));
  const add = (...found) => root.append(svgNode(...found));
  let rectangles = 0;
  const round = number => Math.round(number * 100) / 100;

  return {
    root,
    box(x, y, width, height, colour) {
      add("rect", {x: round(x), y: round(y), width: round(width), height: round(height), fill: colour});
    },
    frame(x, y, width, height, colour, thickness) {
      add("rect", {x, y, width, height, fill: "none", stroke: colour, "stroke-width": thickness});
    },
    lines(segments, colour, thickness = 1, opacity = 1) {
      const path = segments.map(([x1, y1, x2, y2]) => `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}`);
      add("path", {d: path.join(""), stroke: colour, "stroke-width": round(thickness), "stroke-opacity": round(opacity), fill: "none"});
    },
    text(words, x, y, colour, {anchor = "start", upward = false, bold = false} = {}) {
      const turn = upward ? ` rotate(-90)` : "";
      add("text", {
        transform: `translate(${round(x)} ${round(y)})${turn}`, fill: colour, "text-anchor": anchor,
        "dominant-baseline": "central", "font-family": "sans-serif", "font-size": 12,
        "font-weight": bold ? "bold" : "normal", style: "white-space: pre; unicode-bidi: isolate",
      }, words);
    },
    picture(image, part, x, y, width, height) {
      const piece = Object.assign(document.createElement("canvas"), {width: part[2], height: part[3]});
      piece.getContext("2d").drawImage(image, ...part, 0, 0, part[2], part[3]);
      rectangles += part[2] * part[3];
      if (rectangles > MOST_RECTANGLES) {
        add("image", {x, y, width, height, href: piece.toDataURL(), preserveAspectRatio: "none", style: "image-rendering: pixelated"});
        return;
      }
      const pixels = piece.getContext("2d").getImageData(0, 0, part[2], part[3]).data;
      const [w, h] = [width / part[2], height / part[3]];
      for (let i = 0; i < part[2] * part[3]; i++) {
        const [red, green, blue, opaque] = pixels.subarray(4 * i, 4 * i + 4);
        const [column, row] = [i % part[2], Math.floor(i / part[2])];
        if (opaque) this.box(x + column * w, y + row * h, w, h, `rgb(${red} ${green} ${blue})`);
      }
    },
  };
}
