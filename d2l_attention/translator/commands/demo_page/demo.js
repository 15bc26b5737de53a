"use strict";

const $ = (id) => document.getElementById(id);
const form = document.querySelector("form");
const button = document.querySelector("form button");
let asked = 0; // only the last answer is shown

async function translate(text) {
  const answer = await fetch("translate", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ text }),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function show(text, { translation, unknown }) {
  $("found").hidden = false;
  $("translation").value = translation || "(nothing)";
  $("unknown").textContent = unknown.length
    ? `Never seen, and read as [UNK]: ${unknown.join(", ")}.`
    : "";
  $("map").src = `map?${new URLSearchParams({ text, translation })}`;
}

function busy(yes) {
  button.setAttribute("aria-disabled", yes);
  button.textContent = yes ? "Translating …" : "Translate";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const number = ++asked, text = $("text").value.trim().replace(/\s+/g, " ");
  busy(true);
  $("error").textContent = "";
  try {
    const found = await translate(text);
    if (number === asked) show(text, found);
  } catch (error) {
    if (number !== asked) return;
    $("found").hidden = true;
    $("error").textContent =
      error instanceof TypeError
        ? "No answer. Is the command still running?"
        : error.message;
  } finally {
    if (number === asked) busy(false);
  }
});

// What the run is, and sentences of it. The first is translated at once,
// unless somebody has begun to type.
async function offer() {
  const { run, examples } = await (await fetch("about")).json();
  $("about").textContent = run;
  $("examples").hidden = !examples.length;
  const translateIt = (text) => {
    $("text").value = text;
    $("text").select();
    form.requestSubmit();
  };
  for (const text of examples) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "example", dir: "auto" });
    button.textContent = text;
    button.addEventListener("click", () => translateIt(text));
    $("examples").append(" ", button);
  }
  if (examples.length && !$("text").value) translateIt(examples[0]);
}

offer();

$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

// As high as the map in it, which grows and shrinks.
$("map").addEventListener("load", () => {
  const inside = $("map").contentDocument;
  if (!inside) return;
  const fit = () => {
    $("map").style.height = `${inside.documentElement.offsetHeight + 4}px`;
  };
  new ResizeObserver(fit).observe(inside.documentElement);
  fit();
});
