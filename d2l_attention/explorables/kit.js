"use strict";
// What all explorables share: numbers in words, sliders, a picture with axes
// that can be pulled, colours, and a voice for screen readers.

// A number with so many digits behind the point, a true minus, and no "−0.00".
function fixed(number, digits = 2) {
  const text = Math.abs(number).toFixed(digits);
  return number < 0 && Number(text) ? `−${text}` : text;
}

// A native slider over listed values: what is shown is what is computed with.
function slider(id, values, first, words, changed) {
  const input = element(id), shown = element(`${id}-shown`);
  const control = {
    get place() { return Number(input.value); },
    get value() { return values[control.place]; },
    // To the listed value nearest to a number.
    near(number) {
      const apart = values.map(value => Math.abs(value - number));
      control.to(apart.indexOf(Math.min(...apart)));
    },
    // Only the first values, of which there is at least one.
    upTo(count) {
      input.max = count - 1;
      control.name();
    },
    to(place) {
      input.value = place;
      changed();
      control.name();
    },
    name() {
      shown.textContent = words(control.value);
      input.setAttribute("aria-valuetext", words(control.value));
    },
  };
  Object.assign(input, {min: 0, max: values.length - 1, step: 1, value: first});
  input.oninput = () => control.to(control.place);
  control.name();
  return control;
}

// From the least to the greatest of a list; equal numbers get room around them.
function spread(list) {
  const [low, high] = [Math.min(...list), Math.max(...list)];
  return low < high ? [low, high] : [low - 1, high + 1];
}

// From values to pixels, along one axis.
const linear = ([low, high], [from, to]) => value => from + (value - low) / (high - low) * (to - from);
const logarithmic = ([low, high], pixels) => {
  const straight = linear([Math.log(low), Math.log(high)], pixels);
  return value => straight(Math.log(value));
};

// Round numbers from low to high, about as many as asked.
function ticks([low, high], most) {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const count = Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  return Array.from({length: count}, (_, i) => Number(((Math.ceil(low / step - 1e-9) + i) * step).toPrecision(12)));
}

const NAMESPACE = element("picture").namespaceURI;  // so that no address stands in the page

function node(name, attributes = {}, words = "") {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = words;
  return made;
}

// A line through points; it has a gap where there is none.
const path = points => points.map((point, i) => point ? `${points[i - 1] ? "L" : "M"}${point.map(pixel => pixel.toFixed(1)).join(" ")}` : "").join("");

// A picture as wide as its place. `draw(add, width)` fills it.
function paint(picture, height, draw) {
  const width = picture.clientWidth || 300;
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.style.height = `${height}px`;
  const nodes = [];
  draw((...found) => nodes.push(node(...found)), width);
  picture.replaceChildren(...nodes);
}

// Ticks with numbers below (x) or at the left (y), and the names of the axes.
function axes(add, {x, y, left, right, top, bottom, xTicks, yTicks, xName, yName, words = String}) {
  add("path", {d: `M${left} ${top}V${bottom}H${right}`, class: "axis"});
  for (const value of xTicks) {
    add("path", {d: `M${x(value)} ${bottom}v4`, class: "axis"});
    add("text", {x: x(value), y: bottom + 16, class: "middle"}, words(value));
  }
  for (const value of yTicks) {
    add("path", {d: `M${left} ${y(value)}h-4`, class: "axis"});
    add("text", {x: left - 7, y: y(value) + 4, class: "end"}, words(value));
  }
  add("text", {x: right, y: bottom + 32, class: "end"}, xName);
  add("text", {x: left - 24, y: top - 8}, yName);
}

// A press or a pull sets a place in the picture. A finger that moves up or
// down scrolls the page instead: only a tap or a pull sideways counts.
function onPull(picture, set) {
  let from = null, pulled = false;
  const tell = event => set(event.clientX - picture.getBoundingClientRect().left);
  picture.onpointerdown = event => {
    from = [event.clientX, event.clientY];
    pulled = event.pointerType === "mouse";
    if (pulled) tell(event);
    picture.setPointerCapture(event.pointerId);
  };
  picture.onpointermove = event => {
    if (!from) return;
    const [across, along] = [event.clientX - from[0], event.clientY - from[1]].map(Math.abs);
    pulled ||= across > 8 && across > along;
    if (pulled) tell(event);
  };
  picture.onpointerup = event => {
    if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < 8) tell(event);
    from = null;
  };
  picture.onpointercancel = () => { from = null; };
}

// The colours of attention weights, for a share from 0 to 1.
const viridis = Uint8Array.from(atob(data.colours), sign => sign.charCodeAt(0));
function colourAt(share) {
  const place = 3 * Math.round(255 * clamp(share, 0, 1));
  return `rgb(${viridis.subarray(place, place + 3).join(" ")})`;
}

// Black or white, whichever is seen better upon such a colour.
function inkOn(share) {
  const place = 3 * Math.round(255 * clamp(share, 0, 1));
  const [red, green, blue] = [...viridis.subarray(place, place + 3)].map(part => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000" : "#fff";
}

// Screen readers hear what came of a change, once it has come to rest.
const announce = (() => {
  let waiting = null;
  return text => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { element("said").textContent = text; }, 400);
  };
})();

// Paints at first, and when the page gets another width. (Not the event
// "resize": a frame may be drawn before it has its width.)
function paintAtAnyWidth(paintAll) {
  let width = 0;
  new ResizeObserver(() => {
    const now = element("picture").clientWidth;
    if (now === width) return;
    width = now;
    paintAll();
  }).observe(element("picture"));
  paintAll();
}

// A host that listens makes the frame as high as the page is.
new ResizeObserver(([{target}]) => parent.postMessage({height: target.offsetHeight}, "*")).observe(document.documentElement);
