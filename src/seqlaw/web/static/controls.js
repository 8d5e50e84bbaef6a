// The controls: a slider and a field for each number, both views of one text in the state.

import { pretty, whole } from "./charts.js";
import { explained } from "./words.js";
import { AXES, best, chooses, fitAxis, hasEpochs, hasMomentum, hasPower, onePass, options, positions, state, stepGiven, stepsFollow, trains } from "./state.js";

const ALL = ["spectrum", "curve", "tradeoff", "plan", "ladders"];
const STUDENT = ["spectrum", "curve", "tradeoff", "ladders"];
const NO_SIZES = ["tradeoff", "ladders"]; // whose N and P follow from the tokens
// The signs of controls that have another than their name's.
const SIGNS = {
  batch: "b", epochs: "K", eval_length: "P′", tests: "P′", tokens: "T", budget_tokens: "T", ladder_tokens: "T", compute: "C", plan_d: "d", ladder_d: "d", precondition: "p",
  max_M: "M", max_N: "N", max_P: "P", max_L: "L", min_P: "P",
  ...Object.fromEntries(["nesterov", "warmup", "decay", "method", "network", "optimizer", "sample_points", "sketches", "repetitions", "seed"].map((name) => [name, ""])),
};
const ONCE = { tokens: "tokens b·P·L", budget_tokens: "tokens b·P·L", compute: "compute b·P·L·M²" }; // the words in one pass
// Controls that are no option of a question. `check` is a box to tick; `derived` is read from that field of an answer.
const FIELDS = {
  one_pass: { symbol: "", words: "mini-batches: one pass, or epochs", check: true },
  once_N: { symbol: "N", words: "trajectories = b·L/K", derived: "N" },
  once_tokens: { symbol: "T", words: "tokens = N·P", derived: "tokens" },
  best: { symbol: "γ", words: "the best at each point", check: true },
  chosen: { symbol: "γ", words: "the best at each point", check: true },
  unguarded: { symbol: "γ", words: "as given, without the safeguard", check: true },
  short: { symbol: "P", words: "the shorter length", low: 1, high: 1e4, log: true, whole: true },
  long: { symbol: "P", words: "the longer length", low: 2, high: 1e5, log: true, whole: true },
  share: { symbol: "", words: "share of the last phase", low: 0.02, high: 0.98, step: 0.01 },
};
for (const axis of Object.keys(AXES))
  for (const end of ["from", "to"]) FIELDS[`${end}_${axis}`] = { symbol: "", words: `${end} ${axis} =`, slider: false, whole: axis !== "R" };

// The rest are the server's: a slider moves in equal ratios unless it has a step; `left`/`right` is the text that stands for its end.
function takeFields() {
  for (const [name, { step, low, ...field }] of Object.entries(options))
    FIELDS[name] = {
      ...field, symbol: SIGNS[name], once: ONCE[name], low, step, log: step === null, slider: low !== undefined,
      left: field.left ?? undefined, right: field.right ?? undefined, wide: name === "tests",
    };
  FIELDS.tests.placeholder = "16, 4096";
}

const GROUPS = [
  { title: "Along", views: ["curve"], fields: Object.keys(AXES).flatMap((axis) => ["from_" + axis, "to_" + axis]) },
  { title: "Tokens", views: ["curve", "tradeoff"], fields: ["tokens", "tests"] },
  { title: "Short first, long last", views: ["ladders"], fields: ["share", "short", "long", "ladder_tokens"] },
  { title: "Budgets", views: ["plan"], fields: ["compute", "budget_tokens"] },
  { title: "Teacher", views: ALL, fields: ["alpha", "theta", "r", "rho", "c_xi", "c_0"] },
  { title: "Student and data", views: ALL, fields: ["one_pass", "batch", "epochs", "M", "N", "P", "d", "plan_d", "ladder_d", "eval_length", "once_N", "once_tokens"] },
  { title: "Training", views: ALL, fields: ["L", "R", "best", "chosen", "gamma", "precondition", "unguarded", "beta", "nesterov", "warmup", "decay"] },
  { title: "Ceilings, and a floor", views: ["plan"], fields: ["max_M", "max_N", "max_P", "max_L", "min_P"] },
  {
    title: "Sampled points", views: ["curve"],
    fields: ["method", "network", "optimizer", "sample_points", "sketches", "repetitions", "seed"],
    hint: "Trains students on simulated data in the background, for seconds at d = 256, up to minutes at d = 1024; error bars are standard errors. With mini-batches, also networks (needs torch).",
  },
];
// The field of an API error → the control that shows it.
const ALIASES = {
  start: () => "from_" + state.along, stop: () => "to_" + state.along, from: () => "from_" + state.along,
  points: () => "sample_points", sampled: () => "sample_points", schedule: () => "kind", momentum: () => "beta", shares: () => "share",
  gamma: () => (best() ? (chooses() ? "chosen" : "best") : "gamma"), eval_length: () => (state.view === "tradeoff" ? "tests" : "eval_length"),
  tokens: () => ({ plan: "budget_tokens", ladders: "ladder_tokens" }[state.view] ?? "tokens"), candidates: () => "long", s: () => "gamma", safeguard: () => "unguarded",
  d: () => ({ plan: "plan_d", ladders: "ladder_d" }[state.view] ?? "d"),
};

const SHOWN_IF = {
  one_pass: () => !["spectrum", "ladders"].includes(state.view),
  batch: () => onePass() && state.view !== "plan",
  once_N: () => onePass() && state.view === "curve",
  once_tokens: () => onePass() && state.view === "curve" && !stepsFollow(),
  tokens: () => state.view === "tradeoff" || stepsFollow(),
  tests: () => state.view === "tradeoff",
  N: () => STUDENT.includes(state.view) && !NO_SIZES.includes(state.view) && !onePass(),
  P: () => STUDENT.includes(state.view) && !NO_SIZES.includes(state.view),
  M: () => STUDENT.includes(state.view),
  d: () => !["plan", "ladders"].includes(state.view),
  plan_d: () => state.view === "plan",
  ladder_d: () => state.view === "ladders",
  eval_length: () => ["curve", "plan", "ladders"].includes(state.view) && !positions(),
  L: () => state.view !== "plan" && !stepsFollow() && (state.by === "L" || best()),
  R: () => state.view !== "plan" && !stepsFollow() && state.by === "R" && !best(),
  best: () => state.view === "curve" && state.along !== "R",
  chosen: () => chooses() && !(onePass() && state.view === "plan"), // the plan of one pass chooses it in any case
  gamma: () => !best(),
  precondition: hasPower,
  unguarded: stepGiven,
  epochs: hasEpochs,
  method: onePass,
  network: trains,
  optimizer: trains,
  beta: hasMomentum,
  nesterov: () => hasMomentum() && state.beta.trim() !== "",
  warmup: () => state.kind === "wsd",
  decay: () => state.kind === "wsd",
};
for (const axis of Object.keys(AXES))
  SHOWN_IF["from_" + axis] = SHOWN_IF["to_" + axis] = () => state.along === axis;

// Risk against N through the interpolation peak near N·P = M: training so long that it saturates, sizes that are sampled in a
// second. The teacher stays.
const DESCENT = {
  one_pass: "", beta: "", best: "", precondition: "0",
  along: "N", from_N: "2", to_N: "400", M: "48", N: "12", P: "4", d: "192", eval_length: "", kind: "constant", by: "L", L: "1e7", gamma: "0.1",
  style: "lines", scale: "log", sample_points: "13", sketches: "8", repetitions: "4",
};

export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties))
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const STEPS = 1000;

function toSlider(field, text) {
  const value = Number(text);
  if (field.left !== undefined && text.trim() === field.left) return 0;
  if (field.right !== undefined && text.trim() === field.right) return STEPS;
  if (!Number.isFinite(value)) return null;
  const share = field.log
    ? Math.log(value / field.low) / Math.log(field.high / field.low)
    : (value - field.low) / (field.high - field.low);
  return Math.round(STEPS * Math.min(1, Math.max(0, share)));
}

function fromSlider(field, position) {
  const share = position / STEPS;
  if (field.left !== undefined && share === 0) return field.left;
  if (field.right !== undefined && share === 1) return field.right;
  if (!field.log) return String(Number((field.low + share * (field.high - field.low)).toFixed(2)));
  const value = Number((field.low * (field.high / field.low) ** share).toPrecision(3));
  return tidy(field.whole ? Math.round(value) : value);
}

function tidy(value) {
  return value >= 1e6 ? value.toExponential().replace("e+", "e") : String(value);
}

// onInput(moving): called after every change of the state, with whether a slider is still moving. onDescent(): after that button.
export function buildControls(place, presets, onInput, onDescent) {
  takeFields();
  for (const group of GROUPS) {
    const box = element("fieldset", { className: "group" }, element("legend", {}, group.title));
    box.dataset.views = group.views.join(" ");
    if (group.title === "Along") box.append(chooser("along", Object.keys(AXES), onInput, descentButton(onDescent)));
    if (group.title === "Teacher") box.append(presetButtons(presets, onInput));
    if (group.title === "Training") box.append(kindField(onInput), byField(onInput));
    if (group.hint) box.append(element("p", { className: "hint" }, group.hint));
    for (const name of group.fields) box.append(makeField(name, onInput));
    if (group.title === "Sampled points")
      box.append(
        element("div", { className: "row" },
          element("button", { type: "button", id: "sample", className: "primary" }, "Sample"),
          element("button", { type: "button", id: "sample-cancel", disabled: true }, "Cancel")),
        element("p", { className: "hint work", id: "sample-status", role: "status" }));
    place.append(box);
  }
  place.closest("form").addEventListener("submit", (event) => event.preventDefault());
}

function makeField(name, onInput) {
  const field = FIELDS[name];
  if (field.choices?.length) return choiceField(name, field.words, onInput);
  const symbol = field.symbol ?? pretty(name);
  const id = "field-" + name;
  const box = element("div", { className: field.wide ? "field wide" : "field" });
  box.dataset.name = name;
  const label = element("label", { htmlFor: id, title: explained(field.words) });
  if (symbol) label.append(mathSymbol(symbol));
  label.append(element("span", {}, field.words));
  const error = element("p", { className: "error", id: id + "-error", role: "alert" });
  if (field.derived) {
    box.append(label, element("output", { id, name }));
    return box;
  }
  if (field.check) {
    const tick = element("input", { type: "checkbox", id, name });
    tick.addEventListener("change", () => { state[name] = tick.checked ? "on" : ""; fitAxis(); showState(); onInput(false, name); });
    box.classList.add("check");
    box.append(tick, label, error);
    return box;
  }
  const text = element("input", {
    type: "text", id, name, inputMode: field.wide ? "text" : "decimal", spellcheck: false,
    placeholder: field.placeholder ?? "",
  });
  text.setAttribute("aria-describedby", id + "-error");
  text.addEventListener("input", () => {
    state[name] = text.value;
    if (name === "beta") showState(); // what kind of momentum, once there is some
    const position = field.slider === false ? null : toSlider(field, text.value);
    if (position !== null) slider.value = position;
    onInput(false, name);
  });
  box.append(label, text);
  let slider = null;
  if (field.slider !== false) {
    const step = field.log ? 1 : (STEPS * field.step) / (field.high - field.low); // an arrow key is one step of the number
    slider = element("input", { type: "range", min: 0, max: STEPS, step, name: name + "-slider" });
    slider.setAttribute("aria-label", `${field.words} ${symbol}`.trim());
    slider.addEventListener("input", () => {
      state[name] = text.value = fromSlider(field, Number(slider.value));
      if (name === "beta") showState();
      onInput(true, name);
    });
    slider.addEventListener("change", () => onInput(false, name));
    box.append(slider);
  }
  box.append(error);
  return box;
}

// What follows from the controls, as the server has it.
export function showDerived(values) {
  for (const [name, field] of Object.entries(FIELDS))
    if (field.derived) document.getElementById("field-" + name).value = values[field.derived] === undefined ? "" : whole(values[field.derived]);
}

export function mathSymbol(text) {
  const [base, below] = text.split("_");
  const node = element("i", {}, base);
  if (below) node.append(element("sub", {}, below));
  return node;
}

function descentButton(onDescent) {
  const title = "Risk against N through the interpolation peak near N·P = M, with sampled points";
  const button = element("button", { type: "button", id: "descent", title }, "Double descent");
  button.addEventListener("click", () => { Object.assign(state, DESCENT); onDescent(); });
  return button;
}

function chooser(name, choices, onInput, ...more) {
  const box = element("div", { className: "segments", role: "group", "aria-label": name });
  box.dataset.choice = name;
  for (const choice of choices) {
    const button = element("button", { type: "button" }, choice);
    button.dataset.value = choice;
    button.addEventListener("click", () => { state[name] = choice; showState(); onInput(false, name); });
    box.append(button);
  }
  return element("div", { className: "row" }, box, ...more);
}

function presetButtons(presets, onInput) {
  const box = element("div", { className: "row", role: "group", "aria-label": "Presets" });
  for (const [name, numbers] of Object.entries(presets)) {
    const title = name === "regime1" ? "The paper's Regime I" : "The paper's Regime II";
    const button = element("button", { type: "button", title, id: "preset-" + name }, title.slice(12));
    button.addEventListener("click", () => {
      for (const [key, value] of Object.entries(numbers)) state[key] = String(value);
      showState();
      onInput(false, "preset");
    });
    box.append(button);
  }
  return box;
}

const kindField = (onInput) => choiceField("kind", "schedule", onInput, { wsd: "WSD (theorem)", block: "block (experiments)" });

function choiceField(name, label, onInput, words = {}) {
  const id = "field-" + name, select = element("select", { id, name });
  for (const value of options[name].choices) select.append(element("option", { value }, words[value] ?? value));
  select.addEventListener("change", () => { state[name] = select.value; showState(); onInput(false, name); });
  const box = element("div", { className: "field wide" },
    element("label", { htmlFor: id }, element("span", {}, label)), select,
    element("p", { className: "error", role: "alert" }));
  box.dataset.name = name;
  return box;
}

function byField(onInput) {
  const row = chooser("by", ["L", "R"], onInput);
  row.id = "by-row";
  row.prepend(element("span", { className: "hint" }, "length given as"));
  return row;
}

// The DOM after the state: texts, sliders, which controls this view has.
export function showState() {
  for (const box of document.querySelectorAll("#controls fieldset")) {
    box.hidden = !box.dataset.views.split(" ").includes(state.view);
  }
  for (const box of document.querySelectorAll(".field[data-name]")) {
    const name = box.dataset.name;
    box.hidden = SHOWN_IF[name] ? !SHOWN_IF[name]() : false;
    const select = box.querySelector("select");
    if (select) { select.value = state[name]; continue; }
    if (FIELDS[name].once) box.querySelector("label span").textContent = FIELDS[name][onePass() ? "once" : "words"];
    if (FIELDS[name].derived) continue;
    if (FIELDS[name].check) { box.querySelector("input").checked = state[name] === "on"; continue; }
    const text = box.querySelector("input[type=text]");
    if (text.value !== state[name]) text.value = state[name];
    const slider = box.querySelector("input[type=range]");
    const position = slider ? toSlider(FIELDS[name], state[name]) : null;
    if (position !== null) slider.value = position;
  }
  for (const box of document.querySelectorAll("[data-choice]"))
    for (const button of box.children)
      button.setAttribute("aria-pressed", String(button.dataset.value === state[box.dataset.choice]));
  for (const button of document.querySelectorAll("[data-choice=along] button")) button.hidden = !AXES[button.dataset.value]();
  document.getElementById("by-row").hidden = state.view === "plan" || stepsFollow() || best();
  for (const box of document.querySelectorAll("#controls fieldset:not([hidden])"))
    box.hidden = [...box.querySelectorAll(".field")].every((field) => field.hidden); // a title alone
}

export function clearErrors() {
  for (const box of document.querySelectorAll(".field.invalid")) {
    box.classList.remove("invalid");
    box.querySelector(".error").textContent = "";
    box.querySelector("input, select").removeAttribute("aria-invalid");
  }
}

// The message next to its control; false where no control on this view has that field.
export function showError(problem) {
  clearErrors();
  const parts = problem.field.split(".").filter((part) => Number.isNaN(Number(part)));
  for (const part of parts.reverse()) {
    const name = ALIASES[part] ? ALIASES[part]() : part;
    const box = document.querySelector(`.field[data-name="${CSS.escape(name)}"]`);
    if (box && !box.hidden && !box.closest("fieldset").hidden) {
      box.classList.add("invalid");
      box.closest("details").open = true;
      box.querySelector(".error").textContent = problem.rule.startsWith("=") ? `${part} ${problem.rule}` : problem.rule;
      box.querySelector("input, select").setAttribute("aria-invalid", "true");
      return true;
    }
  }
  return false;
}
