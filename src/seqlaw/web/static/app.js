// The flow: state → question → answer → picture. One question is under way at a time; while a slider moves
// only the newest is kept for after it, so that nothing stale queues up.

import { VIEWS, address, bodies, onePass, readAddress, state, takeOptions, trains } from "./state.js";
import { buildControls, clearErrors, element, showDerived, showError, showState } from "./controls.js";
import * as charts from "./charts.js";
import { clearAnswer, showAnswer, showBadge, showFlags, showLegend } from "./answers.js";
import { setWords } from "./words.js";
import { copyText, csv, download, toast } from "./leaving.js";

const byId = (id) => document.getElementById(id);
const plot = byId("plot");
const NARROW = "(max-width: 860px)"; // as in style.css
const narrow = () => window.matchMedia(NARROW).matches;
// On a narrow page the controls are folded away: the picture and its numbers come first.
const fold = () => { byId("fold").open = !narrow(); };

let last = null; // { view, answer, body } of the picture on the screen
let sampled = null; // the points measured for it
let under = null; // the question under way: { controller, moving }
let waiting = null; // the newest question since
let job = null; // the sampling under way: { key, id, cancelled }
let retry = null;
const ofView = () => (last.view === "curve" ? sampled?.answer : undefined); // the points that the picture holds

// ---- questions ---------------------------------------------------------------------------------------

async function call(path, { body, method = "POST", signal } = {}) {
  const response = await fetch(path, {
    method, signal, headers: body ? { "content-type": "application/json" } : {},
    body: body ? JSON.stringify(body) : undefined,
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error.message), { problem: answer.error, status: response.status });
  return answer;
}

function refresh(moving = false) {
  clearTimeout(retry);
  const request = { view: state.view, moving, began: performance.now(), controller: new AbortController() };
  request.body = state.view === "panels" ? null : bodies[state.view](moving);
  if (state.view === "plan" && onePass()) {
    // Seconds: a job for the setting at rest; a hand that moves on stops it.
    under?.controller.abort();
    request.job = { cancelled: false };
    under = request;
    waiting = null;
    busy(true);
    planning();
    if (!moving) retry = setTimeout(() => send(request), 400);
  } else if (under && !under.job && under.view === request.view && !(moving && !under.moving)) waiting = request;
  else {
    if (under) under.controller.abort();
    waiting = null;
    send(request);
  }
}

function busy(on) {
  plot.closest(".chart").setAttribute("aria-busy", String(on));
}

async function send(request) {
  under = request;
  busy(true);
  try {
    const path = "api/" + request.view;
    const answer = request.job ? await planned(request)
      : request.body ? await call(path, { body: request.body, signal: request.controller.signal })
      : await call(path, { method: "GET", signal: request.controller.signal });
    if (answer && request.view === state.view) {
      await show(request, answer);
      if (request.moving)
        performance.measure("slider-to-picture", { start: request.began, end: performance.now() });
    }
  } catch (error) {
    if (error.name !== "AbortError" && request.view === state.view) fail(error);
  }
  if (under !== request) return; // aborted: another took its place
  under = null;
  if (waiting) { const next = waiting; waiting = null; send(next); }
  else busy(false);
}

// The job of a plan; null where a newer question has stopped it.
async function planned({ job, body, controller }) {
  controller.signal.addEventListener("abort", () => { job.cancelled = true; job.wake?.(); });
  return job.cancelled || controller.signal.aborted ? null : watch("one-pass", job, body, () => {});
}

function planning() {
  status("").append(element("span", { className: "work" }, element("progress"), "Searching the best single pass, for some seconds …"));
}

async function show(request, answer) {
  last = { view: request.view, answer, body: request.body };
  if (request.view === "curve") dropStaleSamples(request.body);
  clearErrors();
  status("");
  await draw();
  if (last?.answer !== answer) return; // another view was chosen meanwhile
  if (answer.badge) showBadge(answer.badge, request.moving);
  if (answer.derived) showDerived(answer.derived);
  // While a slider moves the other views are coarse; a plan is whole, and its sizes are what one watches.
  if (!request.moving || request.view === "plan") showAnswer(request.view, answer, ofView());
  showCopies();
}

// Another view: nothing of the one before may pass for its answer.
function leave() {
  under?.controller.abort();
  under = waiting = last = null;
  busy(false);
  window.Plotly.purge(plot);
  plot.classList.toggle("tall", state.view === "panels");
  plot.style.height = "";
  byId("legend").replaceChildren();
  byId("copies").hidden = true;
  for (const button of document.querySelectorAll(".downloads button")) button.disabled = true;
  clearAnswer();
}

function fail(error) {
  const busy = error.problem?.field === "server" && [429, 503].includes(error.status);
  if (busy || error instanceof TypeError) {
    status("The server is busy or away; trying again …", true);
    retry = setTimeout(() => refresh(), 1000);
    return;
  }
  if (!error.problem) throw error;
  const placed = showError(error.problem);
  // Where there is no picture yet, the message stands in its place too: the field may be out of sight.
  if (last?.view !== state.view) status(`${error.message}.`, true);
  else status(`${placed ? "" : error.message + ". "}Showing the last good picture.`, true);
}

async function draw() {
  const { data, layout } = charts[last.view](last.answer, state, narrow(), ofView());
  const tall = last.view === "panels";
  plot.classList.toggle("tall", tall);
  plot.style.height = tall ? `${60 + 281 * layout.grid.rows}px` : "";
  plot.closest(".chart").classList.toggle("long", tall);
  showLegend(narrow() && !tall ? charts.names(data) : []);
  await window.Plotly.react(plot, data, layout, { displayModeBar: false, responsive: true });
  // `react` keeps the size of the picture before, and the panels' is larger than the other views'.
  const drawn = plot.querySelector(".main-svg");
  if (!drawn) return; // the view has been left
  const { width, height } = drawn.getBoundingClientRect();
  if (Math.abs(width - plot.clientWidth) > 1 || Math.abs(height - plot.clientHeight) > 1) await window.Plotly.Plots.resize(plot);
}

function status(text, problem = false) {
  const line = byId("status");
  line.replaceChildren(text);
  line.classList.toggle("problem", problem);
  return line;
}

// ---- sampled points, in the background --------------------------------------------------------------------

// The answer of a job, null once `own` is cancelled.
async function watch(kind, own, body, onProgress) {
  const first = await call("api/jobs/" + kind, { body });
  own.id = first.id;
  for (let now = first; ;) {
    if (own.cancelled) { await call("api/jobs/" + own.id, { method: "DELETE" }).catch(() => {}); return null; }
    if (now.state === "cancelled") return null;
    if (now.state === "failed") throw Object.assign(new Error(now.error.message), { problem: now.error, status: 422 });
    if (now.state === "done") return now.answer;
    onProgress(now);
    await new Promise((wake) => { own.wake = wake; setTimeout(wake, 250); });
    if (!own.cancelled) now = await call("api/jobs/" + own.id, { method: "GET" });
  }
}

function stopSamples(words) {
  if (job) { job.cancelled = true; job.wake?.(); job = null; }
  sampling(false, words);
}

// What sampled points belong to: everything but how they are measured, how many there are and the range they span.
const sampleKey = (body) => {
  const { points, quick, sketches, repetitions, seed, method, network, optimizer, start, stop, ...rest } = body;
  return JSON.stringify(rest);
};

function dropStaleSamples(body) {
  const key = sampleKey(body);
  const note = byId("sample-status");
  if (sampled && sampled.key !== key) { sampled = null; note.textContent = ""; }
  if (job && job.key !== key) stopSamples("Cancelled: the setting has changed.");
}

function sampling(on, text = "") {
  byId("sample").disabled = on;
  byId("sample-cancel").disabled = !on;
  byId("sample-status").replaceChildren(text);
}

async function runSamples() {
  const body = bodies.sampled(), key = sampleKey(body);
  sampling(true, "Waiting for a worker …");
  clearErrors();
  try {
    const answer = await watch("sampled", (job = { key, cancelled: false }), body, (now) => {
      const bar = element("progress", now.total ? { value: now.done, max: now.total } : {});
      byId("sample-status").replaceChildren(bar, now.total ? `${charts.short(now.done)} of ${charts.short(now.total)} ${trains() ? "tokens" : "data sets"}` : "sampling …");
    });
    if (!answer) return;
    job = null;
    sampled = { key, answer };
    sampling(false, `${body.sketches} sketches × ${body.repetitions} data sets, bars: ± standard error.`);
    if (last?.view === "curve") await draw();
    if (last?.view === "curve") { showFlags(last.answer, answer); showCopies(); } // not left meanwhile
  } catch (error) {
    job = null;
    if (!error.problem) throw error;
    const placed = showError(error.problem);
    sampling(false, placed ? "" : error.message);
  }
}

// ---- leaving: copies and downloads -----------------------------------------------------------------------

function showCopies() {
  const texts = { command: last.answer.copy.command, python: last.answer.copy.python };
  const points = ofView();
  if (points) {
    texts.command += "\n" + points.copy.command;
    texts.python += "\n" + points.copy.python;
  }
  byId("command").textContent = texts.command;
  byId("python").textContent = texts.python;
  byId("copies").hidden = false;
  for (const button of document.querySelectorAll(".downloads button")) button.disabled = false;
}

function saveCsv() {
  const text = csv(last.view, last.answer, ofView());
  download(`seqlaw-${last.view}.csv`, URL.createObjectURL(new Blob([text], { type: "text/csv" })));
}

async function savePicture(format) {
  const tall = last.view === "panels";
  charts.takeColours("light"); // on white, for paper, whatever the screen
  const figure = charts[last.view](last.answer, state, false, ofView()); // the wide one on any screen
  charts.takeColours();
  const url = await window.Plotly.toImage(figure, { format, width: 1200, height: tall ? 120 + 340 * figure.layout.grid.rows : 640, scale: format === "png" ? 2 : 1 });
  download(`seqlaw-${last.view}.${format}`, url);
}

// ---- the page ----------------------------------------------------------------------------------------------

let addressTimer = null;
function remember() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => history.replaceState(null, "", address()), 200);
}

function onInput(moving, name) {
  remember();
  if (name === "one_pass" && state.view === "plan") leave(); // seconds are long for the other plan to stand there
  refresh(moving);
}

function onDescent() {
  stopSamples("");
  go("curve");
  runSamples();
}

function showTabs() {
  document.body.dataset.view = state.view;
  for (const tab of byId("tabs").children) {
    const chosen = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) tab.scrollIntoView({ inline: "center", block: "nearest" });
  }
  const options = byId("options");
  options.hidden = state.view !== "curve";
  for (const button of options.querySelectorAll("button"))
    button.setAttribute("aria-pressed", String(state[button.dataset.name] === button.dataset.value));
  // The buttons' height, by which the picture of a narrow page may scroll away.
  plot.closest(".chart").style.setProperty("--buttons", `${document.querySelector(".toolbar").offsetHeight}px`);
}

function go(view) {
  state.view = view;
  status("");
  if (document.body.dataset.view !== view) leave();
  showTabs();
  showState();
  clearErrors();
  remember();
  refresh();
}

function buildTabs() {
  for (const [view, words] of VIEWS) {
    const tab = element("button", { type: "button", role: "tab", id: "tab-" + view }, words);
    tab.dataset.view = view;
    tab.addEventListener("click", () => go(view));
    byId("tabs").append(tab);
  }
  byId("tabs").addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const names = VIEWS.map(([view]) => view);
    go(names[(names.indexOf(state.view) + move + names.length) % names.length]);
    byId("tab-" + state.view).focus();
  });
}

function buildOptions() {
  for (const [name, choices] of [["style", [["stacked", "Stacked"], ["lines", "Terms"]]], ["scale", [["log", "Log risk"], ["linear", "Linear"]]]]) {
    const box = element("div", { className: "segments", role: "group", "aria-label": name });
    for (const [value, words] of choices) {
      const button = element("button", { type: "button", id: `${name}-${value}` }, words);
      Object.assign(button.dataset, { name, value });
      button.addEventListener("click", () => {
        state[name] = value;
        // Heights add up on a linear axis only, slopes show on a logarithmic one; the other can still be chosen.
        if (name === "style") state.scale = { stacked: "linear", lines: "log" }[value];
        showTabs();
        remember();
        if (last?.view === "curve") draw();
      });
      box.append(button);
    }
    byId("options").append(box);
  }
}

function load() {
  readAddress();
  if (document.body.dataset.view !== state.view) leave();
  showTabs();
  showState();
  refresh();
}

async function begin() {
  const start = await call("api/start", { method: "GET" });
  charts.setSigns(start.signs);
  charts.takeColours();
  setWords(start.words);
  takeOptions(start.controls);
  buildTabs();
  buildOptions();
  buildControls(byId("fold"), start.presets, onInput, onDescent);
  byId("sample").addEventListener("click", runSamples);
  byId("sample-cancel").addEventListener("click", () => stopSamples("Cancelled."));
  byId("copy-link").addEventListener("click", () => { history.replaceState(null, "", address()); copyText(location.href, "Link copied"); });
  byId("copy-command").addEventListener("click", () => copyText(byId("command").textContent, "Command copied"));
  byId("copy-python").addEventListener("click", () => copyText(byId("python").textContent, "Python copied"));
  byId("save-csv").addEventListener("click", saveCsv);
  byId("save-png").addEventListener("click", () => savePicture("png"));
  byId("save-svg").addEventListener("click", () => savePicture("svg"));
  window.addEventListener("hashchange", ({ newURL }) => {
    clearTimeout(addressTimer);
    if (newURL) history.replaceState(null, "", newURL); // the timer may have written the state before it since
    load();
  });
  window.addEventListener("scheme", () => { charts.takeColours(); if (last) draw(); });
  window.matchMedia(NARROW).addEventListener("change", () => { fold(); if (last) draw(); });
  fold();
  // Opened by hand below the picture: bring it up, so that the sliders are seen with it.
  byId("fold").addEventListener("toggle", () => { if (narrow() && byId("fold").open) plot.scrollIntoView(); });
  load();
}

begin().catch((error) => toast(`The explorer could not start: ${error.message}`));
