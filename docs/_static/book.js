// What the book does beyond its theme: figures open large, and folds print.

// Sphinx's Chinese search calls a stemmer that it does not define
// (sphinx-doc/sphinx#14229). Its index holds the English one's stems.
Object.defineProperty(window, "ChineseStemmer", { get: () => EnglishStemmer });

// Its results show where a word stands in an article, not in the navigation,
// which has the role "main" in this theme, too.
function searchArticles() {
  if (typeof Search === "undefined") return;
  const read = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const whole = new DOMParser().parseFromString(page, "text/html");
    const article = whole.querySelector("article");
    if (!article) return read(page, anchor);
    return read(`<main role="main">${article.innerHTML}</main>`, anchor);
  };
}

function make(tag, properties) {
  return Object.assign(document.createElement(tag), properties);
}

function makeFiguresOpen() {
  const dialog = make("dialog", { className: "large" });
  dialog.ariaLabel = "Figure, large";
  const picture = make("img");
  const scrolled = make("div", { tabIndex: 0 });
  scrolled.append(picture);
  const close = make("button", { textContent: "Close", className: "btn" });
  dialog.append(close, scrolled);
  document.body.append(dialog);
  dialog.addEventListener("click", () => dialog.close());
  for (const image of document.querySelectorAll(".bd-article img[alt]")) {
    if (image.closest("a")) continue;
    const open = make("button", { textContent: "⤢", className: "enlarge" });
    open.ariaLabel = open.title = "Open the figure large";
    open.addEventListener("click", () => {
      picture.src = image.src;
      picture.alt = image.alt;
      picture.style.setProperty(
        "--ratio", image.naturalWidth / image.naturalHeight);
      dialog.showModal();
    });
    image.addEventListener("click", () => {
      open.focus({ preventScroll: true });
      open.click();
    });
    const holder = image.closest("figure, .picture");
    const link = holder?.querySelector(".headerlink");
    if (link) link.before(open); else image.after(open);
  }
}

// On a phone, the panels of a figure stand below each other. Python says where
// they lie in the picture, and which part has the names of their rows.
async function stackPanels(image) {
  await image.decode();
  const stack = make("div", { className: "panels", ariaHidden: "true" });
  const scale = image.getAttribute("width") / image.naturalWidth;
  for (const panel of image.dataset.panels.split(" ")) {
    const parts = panel.split("+").map(part =>
      part.split("-").map(share => Math.round(share * image.naturalWidth)));
    const width = parts.reduce((sum, [start, end]) => sum + end - start, 0);
    const canvas = make("canvas", { width, height: image.naturalHeight });
    canvas.style.width = `${width * scale}px`;
    let at = 0;
    for (const [start, end] of parts) {
      const box = [end - start, image.naturalHeight];
      canvas.getContext("2d").drawImage(image, start, 0, ...box, at, 0, ...box);
      at += end - start;
    }
    stack.append(canvas);
  }
  stack.addEventListener("click", () => image.click());
  image.after(stack);
}

// A table that is wider than the phone becomes a card for each row.
const PHONE = matchMedia("(max-width: 36rem)");

function stackTables() {
  for (const table of document.querySelectorAll(".bd-article table")) {
    const heads = [...table.rows[0].cells].map(cell => cell.innerText);
    for (const row of [...table.rows].slice(1)) {
      [...row.cells].forEach((cell, i) => { cell.dataset.head = heads[i]; });
    }
    table.classList.remove("stacked");
    const room = table.parentElement.clientWidth;
    const isWide = table.scrollWidth > room + 1;
    table.classList.toggle("stacked", PHONE.matches && isWide);
  }
}

// Folded parts are open while the page is printed.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll(".bd-article details:not([open])")];
  for (const details of opened) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});

// A frame knows only the system's choice of light or dark, not the book's.
const SYSTEM = "(prefers-color-scheme: dark)";

async function dressFrames() {
  const { theme } = document.documentElement.dataset;
  const dark = theme === "dark";
  for (const frame of document.querySelectorAll("iframe")) {
    if (!frame.page && matchMedia(SYSTEM).matches === dark) continue;
    frame.page ??= frame.srcdoc || await (await fetch(frame.src)).text();
    frame.srcdoc = frame.page
      .replaceAll(SYSTEM, dark ? "all" : "not all")
      .replace("color-scheme: light dark", `color-scheme: ${theme}`);
  }
}

// The frame of the start page is as high as its page.
function fitFrame(frame) {
  const { body } = frame.contentDocument;
  new ResizeObserver(() => {
    frame.style.height = `${body.offsetHeight + 32}px`;
  }).observe(body);
}

new MutationObserver(dressFrames).observe(
  document.documentElement, { attributeFilter: ["data-theme"] });

document.addEventListener("DOMContentLoaded", () => {
  makeFiguresOpen();
  for (const image of document.querySelectorAll("img[data-panels]")) {
    stackPanels(image);
  }
  stackTables();
  PHONE.addEventListener("change", stackTables);
  searchArticles();
  for (const frame of document.querySelectorAll("iframe.explorable")) {
    frame.addEventListener("load", () => fitFrame(frame));
  }
  // A notebook is saved, not shown as text in another tab.
  const source = document.querySelector("a.btn-download-source-button");
  if (source) Object.assign(source, { download: "", target: "" });
});
