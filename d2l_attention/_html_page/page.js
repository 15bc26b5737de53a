"use strict";
// What every page has: what Python put in, and a button for light and dark.

const data = JSON.parse(document.getElementById("data").textContent);
const element = id => document.getElementById(id);
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

// The page follows its host. Not every host tells its scheme, so a button
// turns to the other; the document then has the event "theme".
const wishesDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.style.colorScheme || (wishesDark.matches ? "dark" : "light")) === "dark";

function nameTheme() {
  element("theme").textContent = isDark() ? "Light" : "Dark";
}

element("theme").onclick = () => {
  document.documentElement.style.colorScheme = isDark() ? "light" : "dark";
  nameTheme();
  document.dispatchEvent(new Event("theme"));
};
wishesDark.addEventListener("change", nameTheme);
nameTheme();
