// What a word of the house means: the table is the library's, sent at the start. In a text a word is a button
// that shows it, to a mouse that rests on it and to a finger.

import { pretty } from "./charts.js";
import { element } from "./controls.js";

let meanings = {}, pattern = /$^/;
const box = document.getElementById("meaning");

export function setWords(table) {
  meanings = Object.fromEntries(Object.entries(table).map(([word, text]) => [word, pretty(text)]));
  pattern = new RegExp(`(?<![\\w-])(${Object.keys(table).join("|")})(?:e?s)?(?![\\w-])`, "gi");
  document.getElementById("words").append(element("dl", {}, ...Object.entries(meanings).flatMap(
    ([word, text]) => [element("dt", {}, word), element("dd", {}, text)])));
}

const meaning = (word) => `${word}: ${meanings[word]}.`;

// What stands in a title: the meaning of every word in a text, or the text.
export const explained = (text) =>
  [...new Set([...text.matchAll(pattern)].map((found) => meaning(found[1].toLowerCase())))].join(" ") || text;

// A text with each word, at its first use, as a button.
export function worded(text) {
  const out = [], seen = new Set();
  let from = 0;
  for (const found of text.matchAll(pattern)) {
    const word = found[1].toLowerCase();
    if (seen.has(word)) continue;
    seen.add(word);
    const button = element("button", { type: "button", className: "word", title: meaning(word) }, found[0]);
    button.addEventListener("click", () => show(button, meaning(word)));
    out.push(text.slice(from, found.index), button);
    from = found.index + found[0].length;
  }
  return [...out, text.slice(from)];
}

function show(button, text) {
  const { left, bottom } = button.getBoundingClientRect();
  box.textContent = text;
  box.showPopover();
  box.style.left = `${Math.max(8, Math.min(left, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.min(bottom + 4, innerHeight - box.offsetHeight - 8)}px`;
}
