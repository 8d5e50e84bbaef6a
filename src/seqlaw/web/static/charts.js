// The pictures: an answer of the API in, Plotly's traces and layout out.

import { repeated, trained } from "./state.js";

// The colours are those of style.css, as the page or a part of it has them: `takeColours` reads them.
export const COLOURS = {};
const PALE = {}, INK = {};
const SERIES = [];
export function takeColours(scheme = "") {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.colorScheme = scheme; // that of the page unless told
  const read = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  for (const name of ["ink", "soft", "card", "grid", "axis", "mark-1", "mark-2"]) INK[name] = read(name);
  for (const name of ["approx", "bias", "variance", "cross"]) { COLOURS[name] = read(name); PALE[name] = faded(COLOURS[name], 0.28); }
  COLOURS.reducible = INK.ink;
  SERIES.splice(0, Infinity, INK.ink, COLOURS.approx, COLOURS.bias, COLOURS.variance, COLOURS.cross);
  probe.remove();
}
const faded = (colour, share) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${share})`);
const TERMS = ["approx", "bias", "variance"]; // those that the theorem has a guide of; cross has none
const WORDS = { M: "width M", N: "trajectories N", P: "trajectory length P", R: "horizon R", batch: "batch b", epochs: "epochs K", position: "position p of the test" };
const FONT = { family: 'system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif', size: 12.5 };

export const number = (value, digits = 4) => {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size >= 1e-3 && size < 1e5) return String(Number(value.toPrecision(digits)));
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  return `${Number(mantissa)}e${Number(power)}`;
};

const signed = (value) => value.toFixed(3).replace("-", "−");

// A whole size as a person reads it: 1,000,950.
export const whole = (value) => (Number.isInteger(value) && Math.abs(value) < 1e15 ? value.toLocaleString("en-US") : number(value, 6));
// The same where there is little room, or nothing to gain from the last digits.
export const short = (value, digits = 3) => (value < 1e6 ? whole(value) : number(value, digits));

// The library's plain text as a reader of the paper would write it; the table is the library's, sent at the start.
let signs = [];
export function setSigns(table) {
  const whole = ([from, to]) => [/^[a-z]/.test(from) ? new RegExp(`(?<![A-Za-z])${from}(?![A-Za-z])`, "g") : new RegExp(from.replace(/\|/g, "\\|"), "g"), to];
  signs = [...Object.entries(table).map(whole), [/\bsum\(γ\)/g, "Σγ"], [/ \* /g, "·"]];
}
export const pretty = (text) => signs.reduce((out, [from, to]) => out.replace(from, to), text);

function axis(title, type = "log") {
  return {
    title: { text: title, standoff: 8, font: { size: 13 } }, tickfont: { size: 12 }, type, automargin: true, gridcolor: INK.grid, zeroline: false,
    linecolor: INK.axis, ticks: "outside", ticklen: 4, tickcolor: INK.axis,
    exponentformat: "power", showexponent: "all", minor: { ticks: "" },
  };
}

// Ticks of a logarithmic axis, all written alike: powers of ten where there are several decades, else digits.
function decades(values, type = "log") {
  const good = values.filter((v) => v > 0 && Number.isFinite(v));
  if (type !== "log" || good.length === 0) return {};
  const low = Math.log10(Math.min(...good)), high = Math.log10(Math.max(...good));
  const span = high - low, several = span > 1.6, step = span > 12 ? Math.ceil(span / 8) : 1;
  const tickvals = [], ticktext = [];
  for (let power = Math.floor(low) - 1; power <= high + 1; power += step)
    for (const digit of several ? [1] : span > 0.5 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
      const value = digit * 10 ** power;
      tickvals.push(value);
      ticktext.push(several ? `10<sup>${power}</sup>`.replace("-", "−") : number(Number(value.toPrecision(1))));
    }
  const seen = tickvals.filter((value) => value >= 10 ** low && value <= 10 ** high);
  if (seen.length < 2) return { exponentformat: "e", nticks: 6 }; // none of these in so short a range
  return { tickmode: "array", tickvals, ticktext };
}

function wrapped(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1).replace(/<[^>]*>/g, "").length + word.length > width) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
  }
  return lines.join("<br>");
}

function layout(title, x, y, narrow) {
  return {
    font: { ...FONT, color: INK.ink }, paper_bgcolor: INK.card, plot_bgcolor: INK.card,
    margin: { l: narrow ? 50 : 66, r: narrow ? 10 : 16, t: narrow ? 46 : 58, b: 46 },
    title: {
      text: narrow ? wrapped(title, 44) : title, font: { size: narrow ? 12 : 13.5 }, x: narrow ? 0.02 : 0, xref: narrow ? "container" : "paper", xanchor: "left",
      y: 1, yref: "container", yanchor: "top", pad: { t: narrow ? 12 : 8 },
    },
    xaxis: x, yaxis: y, hovermode: "x unified", hoverlabel: { font: { size: 12, color: INK.ink }, bgcolor: INK.card, bordercolor: INK.axis },
    legend: { orientation: "h", traceorder: "normal", x: 0, xanchor: "left", y: 1.01, yanchor: "bottom", font: { size: 12.5 } },
    showlegend: !narrow, // a narrow page lists the names itself
  };
}

const line = (x, y, name, color, more = {}) => ({
  type: "scatter", mode: "lines", x, y, name, line: { color, width: 2.2, ...(more.line ?? {}) },
  hovertemplate: "%{y:.4~g}", ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "line")),
});

export function spectrum(answer, state, narrow) {
  const data = [
    line(answer.j, answer.initial, "initialization", COLOURS.bias),
    line(answer.j, answer.innovation, "innovations", COLOURS.approx),
    line(answer.j, answer.total, "h<sub>P</sub>, their sum", COLOURS.reducible, { line: { width: 3 } }),
  ];
  const all = [...answer.total, ...answer.initial, ...answer.innovation].filter((v) => v > 0);
  const top = Math.max(...answer.total), bottom = Math.max(Math.min(...all), top * 1e-14);
  const out = layout(`Averaged covariance h<sub>P</sub> at P = ${number(Number(state.P))}`,
    { ...axis("mode j"), ...decades(answer.j) },
    { ...axis("variance"), ...decades([bottom, top]), range: [Math.log10(bottom) - 0.2, Math.log10(top) + 0.35] },
    narrow);
  const marks = [["m_P", "m<sub>P</sub>", INK["mark-1"], "dash"], ["kappa", pretty("kappa"), INK["mark-2"], "dot"], ["M", "M", INK.soft, "dashdot"]];
  marks.filter(([name]) => answer.marks[name] >= 1 && answer.marks[name] <= answer.j.at(-1))
    .forEach(([name, label, color, dash], row) => mark(out, answer.j, answer.marks[name], `${label} = ${number(answer.marks[name], 3)}`, { color, dash, row }));
  return { data, layout: out };
}

// A line across a picture whose logarithmic x axis shows these values, with its name `row` lines from the top, or at the foot.
function mark(out, values, at, text, { color = INK.soft, dash = "dash", row = 0, foot = false } = {}) {
  const from = Math.log10(values[0]), right = Math.log10(at) - from > (foot ? 0.25 : 0.75) * (Math.log10(values.at(-1)) - from);
  out.shapes = [...(out.shapes ?? []), { type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color, width: 1.6, dash } }];
  out.annotations = [...(out.annotations ?? []), {
    x: Math.log10(at), y: foot ? 0.01 : 0.985 - 0.075 * row, yref: "paper", text, showarrow: false, xanchor: right ? "right" : "left", xshift: right ? -4 : 4,
    font: { color, size: 12.5 }, bgcolor: faded(INK.card, 0.85),
  }];
}

export const sign = (name) => (name === "batch" ? "b" : name);

// Where a value stands on a logarithmic axis: position 0 an octave left of 1, and marked as 0.
const ZERO = 0.5;
const placed = (key, values) => (key === "position" ? values.map((value) => value || ZERO) : values);
function ticked(key, x) {
  const ticks = decades(x);
  if (key !== "position" || x[0] !== ZERO || !ticks.tickvals) return ticks;
  return { ...ticks, tickvals: [ZERO, ...ticks.tickvals], ticktext: ["0", ...ticks.ticktext] };
}

function tested(answer) {
  if (answer.tested === "position") return "tested at each position";
  return answer.tested === "own" ? "tested at the training length" : `tested at length ${number(answer.tested)}`;
}

export function curve(answer, state, narrow, sampled) {
  const key = answer.along;
  const x = placed(key, answer.rows.map((row) => row[key]));
  const column = (name) => answer.rows.map((row) => row[name]);
  const data = [];
  const total = column("reducible");
  const stacked = state.style === "stacked";
  const positive = TERMS.flatMap(column).filter((v) => v > 0);
  // The cross term, of either sign, where it can be seen.
  const terms = answer.rows.some((row) => Math.abs(row.cross) > 1e-3 * row.reducible) ? [...TERMS, "cross"] : TERMS;
  const guideSum = TERMS.every((name) => answer.guides[name])
    ? x.map((_, k) => (answer.guides.approx[k] === null ? null : TERMS.reduce((sum, name) => sum + answer.guides[name][k], 0))) : null;
  const known = total.some((v) => v !== null) ? total.filter((v) => v !== null) : [1]; // null: without end
  let low = 0, high = Math.max(...known, ...(guideSum ?? [0]));
  if (stacked) {
    const floor = state.scale === "log" ? Math.min(...known) / 12 : 0;
    low = floor;
    let below = x.map(() => floor);
    data.push({ type: "scatter", mode: "lines", x, y: below, line: { width: 0 }, showlegend: false, hoverinfo: "skip" });
    let sum = x.map(() => 0);
    for (const name of terms) {
      const own = column(name).map((value) => value ?? NaN);
      sum = sum.map((value, k) => value + own[k]);
      data.push({
        type: "scatter", mode: "lines", x, y: sum.map((v) => Math.max(v, floor)), name, fill: "tonexty", fillcolor: PALE[name],
        line: { color: COLOURS[name], width: 1.4 }, customdata: own, hovertemplate: "%{customdata:.4~g}",
      });
    }
    data.push(line(x, total, "reducible risk", COLOURS.reducible, { line: { width: 2.8 } }));
    if (guideSum) data.push(line(x, guideSum, "theorem's guide", COLOURS.reducible, { line: { dash: "dot", width: 1.8 } }));
  } else {
    for (const name of terms) {
      data.push(line(x, column(name), name, COLOURS[name]));
      if (answer.guides[name])
        data.push(line(x, answer.guides[name], `${name}, guide`, COLOURS[name], { line: { dash: "dot", width: 1.5 }, showlegend: false, legendgroup: "guides" }));
    }
    data.push(line(x, total, "reducible risk", COLOURS.reducible, { line: { width: 2.8 } }));
    if (Object.keys(answer.guides).length) // one entry for all of them, without a line of its own
      data.push(line([x[0]], [null], "theorem's guides (dotted)", INK.soft, { line: { dash: "dot", width: 1.8 }, hoverinfo: "skip", legendgroup: "guides" }));
    low = state.scale === "log" ? Math.max(Math.min(...positive), Math.min(...known) * 1e-4) / 2 : 0; // a bias may fall to nothing
  }
  if (sampled) {
    const at = placed(key, sampled.rows.map((row) => row[key]));
    const first = sampled.rows[0], steps = sampled.method === "trained"; // whose terms are not apart
    const how = steps ? `${first.network ?? "linear"} by ${first.optimizer ?? "sgd"}` : "sampled";
    for (const name of stacked || steps ? ["reducible"] : [...terms, "reducible"]) {
      data.push({
        type: "scatter", mode: "markers", x: at, y: sampled.rows.map((row) => row[name]),
        name: name === "reducible" ? how : `${name}, ${how}`, showlegend: name === "reducible",
        marker: { color: INK.card, size: 7.5, line: { color: COLOURS[name], width: 2 } },
        error_y: {
          type: "data", array: sampled.rows.map((row) => row.standard_error[name] ?? 0), color: COLOURS[name],
          thickness: 1.5, width: 4,
        },
        hovertemplate: "%{y:.4~g} ± %{error_y.array:.2~g}",
      });
      high = Math.max(high, ...sampled.rows.map((row) => row[name] + (row.standard_error[name] ?? 0)));
    }
  }
  const y = { ...axis("risk", state.scale), ...decades([low, high], state.scale) };
  y.range = state.scale === "log" ? [Math.log10(low), Math.log10(high) + 0.12] : [0, high * 1.08];
  const once = answer.rows[0].batch !== null, sizes = once ? ["M", "P", "batch"] : ["M", "N", "P"];
  const fixed = sizes.filter((name) => name !== key).map((name) => `${sign(name)} = ${number(answer.rows[0][name])}`);
  if (once && key !== "epochs") fixed.unshift(passes(answer.rows[0].epochs));
  if (answer.tokens !== null) fixed.push(`${number(answer.tokens)} tokens`);
  const title = `${answer.badge.covered ? `Regime ${answer.badge.regime}` : "Outside the theorem"}, ${fixed.join(", ")}, ${trained()}, ${tested(answer)}`;
  const out = layout(title, { ...axis(WORDS[key]), ...ticked(key, x) }, y, narrow);
  if (answer.mark) mark(out, x, answer.mark.at, answer.mark.words, { foot: true }); // the peak is at the top
  return { data, layout: out };
}

const passes = (epochs) => (epochs > 1 ? `${number(epochs)} epochs` : "one pass");

export function tradeoff(answer, state, narrow) {
  const names = [...new Set(answer.rows.map((row) => row.tested))];
  const once = answer.batch !== null, follows = once ? "L" : "N";
  const data = [];
  names.forEach((name, k) => {
    const rows = answer.rows.filter((row) => row.tested === name);
    const [low, high] = answer.best[name];
    const near = rows.filter((row) => row.P >= low && row.P <= high);
    const label = name === "own" ? "own length (the paper)" : `length ${number(Number(name))}`;
    data.push(line(rows.map((row) => row.P), rows.map((row) => row.reducible), label, SERIES[k % SERIES.length], {
      legendgroup: name, customdata: rows.map((row) => row[follows]), hovertemplate: `%{y:.4~g} (${follows} = %{customdata})`,
      line: { dash: name === "own" ? "dash" : "solid" },
    }));
    data.push({
      type: "scatter", mode: "markers", x: near.map((row) => row.P), y: near.map((row) => row.reducible),
      marker: { color: SERIES[k % SERIES.length], size: 10, symbol: "circle" }, legendgroup: name, showlegend: false,
      hoverinfo: "skip",
    });
  });
  const title = `${number(answer.tokens)} tokens${once ? `, ${passes(repeated())}, b = ${number(answer.batch)}` : ""}, M = ${number(Number(state.M))}, ${trained()}: risk at each test length (dots: within 1 %)`;
  const all = answer.rows.map((row) => row.reducible);
  return {
    data,
    layout: layout(title, { ...axis(once ? `trajectory length P, L = ${repeated() > 1 ? "K · " : ""}tokens / (b·P)` : narrow ? "length P = tokens / N" : "trajectory length P, N = tokens / P"), ...decades(answer.rows.map((row) => row.P)) },
      { ...axis("reducible risk"), ...decades(all) }, narrow),
  };
}

export function plan(answer, state, narrow) {
  if (answer.by_batch) return planOnce(answer, narrow);
  const rows = answer.finite.isoflop.filter((row) => row.reducible !== null);
  const sizes = (row, write = whole) => ["M", "N", "P", "L"].map((name) => `${name} = ${write(row[name])}`).join(", ");
  const best = answer.finite, hovertemplate = "%{text}<br>reducible risk %{y:.4~g}<extra></extra>";
  const data = [
    {
      ...line(rows.map((row) => row.M), rows.map((row) => row.reducible), "least risk at each width searched", COLOURS.approx, { line: { width: 1.2 } }),
      mode: "lines+markers", marker: { size: 7.5, color: COLOURS.approx }, text: rows.map((row) => sizes(row)), hovertemplate,
    },
    {
      type: "scatter", mode: "markers", x: [best.M], y: [best.reducible], name: `optimum: ${sizes(best, narrow ? short : whole)}`,
      marker: { color: COLOURS.bias, size: 14, symbol: "diamond" }, text: [`optimum: ${sizes(best)}`], hovertemplate,
    },
  ];
  const out = layout(`C = ${number(answer.budget.compute)}, T = ${number(answer.budget.tokens)}, ${trained()}, ${tested(answer)}`,
    { ...axis(narrow ? "width M (N, P, L chosen anew)" : "width M; N, P and L chosen anew at each"), ...decades(rows.map((row) => row.M)) },
    { ...axis("reducible risk"), ...decades(rows.map((row) => row.reducible)) }, narrow);
  out.hovermode = "closest";
  return { data, layout: out };
}

// One pass: the least risk at other tokens a step, which is what a large batch wastes.
function planOnce(answer, narrow) {
  const rows = answer.by_batch, best = answer.finite, x = rows.map((row) => row.batch * row.P);
  const sizes = (row) => `M = ${short(row.M)}, b = ${short(row.batch)}, P = ${short(row.P)}, L = ${short(row.L)}, γ = ${number(row.gamma, 3)}`;
  const hovertemplate = "%{text}<br>reducible risk %{y:.4~g}<extra></extra>";
  const data = [
    {
      ...line(x, rows.map((row) => row.reducible), "least risk at each batch searched", COLOURS.approx, { line: { width: 1.2 } }),
      mode: "lines+markers", marker: { size: 7.5, color: COLOURS.approx }, text: rows.map(sizes), hovertemplate,
    },
    {
      type: "scatter", mode: "markers", x: [best.batch * best.P], y: [best.terms.reducible], name: `optimum: ${sizes(best)}`,
      marker: { color: COLOURS.bias, size: 14, symbol: "diamond" }, text: [`optimum: ${sizes(best)}`], hovertemplate,
    },
  ];
  const out = layout(`One pass, C = ${number(answer.budget.compute)}, T = ${number(answer.budget.tokens)}, ${tested(answer)}`,
    { ...axis(narrow ? "tokens a step b·P" : "tokens a step b·P; the step size tuned at each"), ...decades(x) },
    { ...axis("reducible risk"), ...decades(rows.map((row) => row.reducible)) }, narrow);
  out.hovermode = "closest";
  const critical = answer.diagnostics.critical_tokens;
  if (critical !== null && critical <= x.at(-1)) mark(out, x, critical, "critical");
  return { data, layout: out };
}

// As the report draws them: measured solid, the paper's guides in short dashes above it, other methods below.
export function panels(answer, state, narrow) {
  const overlays = Object.entries(answer.overlay).map(([method, { words }]) => `; ${words}: ${method} method`).join("");
  const data = [], out = layout(`The paper's panels. Solid: ${answer.source}; short dashes: the paper's guides${overlays}`, undefined, undefined, narrow);
  delete out.xaxis; delete out.yaxis;
  out.showlegend = false;
  out.hovermode = "closest";
  out.margin.t = narrow ? 34 + 15 * out.title.text.split("<br>").length : 58;
  const columns = narrow ? 1 : Math.min(3, answer.panels.length);
  out.grid = { rows: Math.ceil(answer.panels.length / columns), columns, pattern: "independent", xgap: 0.18, ygap: narrow ? 0.42 : 0.34 };
  out.annotations = [];
  answer.panels.forEach((panel, k) => {
    const n = k === 0 ? "" : String(k + 1), axes = { xaxis: "x" + n, yaxis: "y" + n };
    const together = panel.relative !== null;
    const colour = (i) => (together ? SERIES[1 + i] : COLOURS[panel.quantity]);
    const hover = (one, what = "") => ({ customdata: one.x, hovertemplate: `${what}${one.axis} = %{customdata:.4~g}: %{y:.4~g}<extra></extra>` });
    panel.overlays.forEach((one, i) => data.push({
      ...line(one.shown, one.y, `${one.method} method, ${one.axis}`, colour(i % panel.curves.length), { line: { dash: answer.overlay[one.method].dash, width: 1.6 } }), ...axes, ...hover(one, `${one.method} method, `),
    }));
    panel.curves.forEach((one, i) => {
      // N and P lie on each other in Regime I: an open, larger marker lets both be seen.
      const marker = { size: i === 1 ? 9 : 5.5, symbol: ["circle", "square", "diamond"][i] + (i === 1 ? "-open" : ""), color: colour(i) };
      data.push({
        ...line(one.shown, one.y, `against ${one.axis}`, colour(i)), mode: "lines+markers", marker, ...axes, ...hover(one),
        error_y: one.error ? { type: "data", array: one.error, color: colour(i), thickness: 1.3, width: 3 } : undefined,
      });
    });
    for (const one of panel.curves)
      data.push({ ...line(one.shown, one.guide, `guide against ${one.axis}`, INK.ink, { line: { dash: "4px,3px", width: 1.2 } }), ...axes, ...hover(one, "guide, ") });
    const text = panel.curves.map((one, i) =>
      `<span style="color:${colour(i)}">${one.axis}: slope ${signed(one.slope)}</span> (guide ${signed(one.guide_slope)})`);
    const bar = (one, sign) => one.y.map((y, i) => y + sign * (one.error ? one.error[i] : 0)).filter((y) => y > 0);
    const values = [...panel.curves.flatMap((one) => [...bar(one, -1), ...bar(one, 1), ...one.guide]), ...panel.overlays.flatMap((one) => one.y)], xs = panel.curves.flatMap((one) => one.shown);
    out["xaxis" + n] = { ...axis(together ? panel.relative : WORDS[panel.curves[0].axis]), ...decades(xs) };
    out["yaxis" + n] = { ...axis(""), ...decades(values) };
    const span = Math.log10(Math.max(...values) / Math.min(...values));
    out["yaxis" + n].range = [Math.log10(Math.min(...values)) - 0.08 * span - 0.03, Math.log10(Math.max(...values)) + (0.16 + (narrow ? 0.16 : 0.11) * text.length) * span];
    out.annotations.push(
      { xref: `x${n} domain`, yref: `y${n} domain`, x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", showarrow: false, text: `<b>${panel.title}</b>`, font: { size: 12.5 } },
      { xref: `x${n} domain`, yref: `y${n} domain`, x: 0.98, y: 0.98, xanchor: "right", yanchor: "top", align: "right", showarrow: false, text: text.join("<br>"), font: { size: 11.5 } });
  });
  return { data, layout: out };
}

export { axis, layout, line };
export { ladders } from "./ladders.js";

// The legend of a narrow page: [name, colour, dash, "ring" or "diamond"] of every trace that has one.
export function names(data) {
  return data.filter((trace) => trace.showlegend !== false && trace.name)
    .map((trace) => [trace.name.replace(/<sub>/g, "_").replace(/<[^>]*>/g, ""), trace.mode === "markers" ? trace.marker.line?.color ?? trace.marker.color : trace.line.color,
      trace.mode === "markers" ? (trace.marker.symbol === "diamond" ? "diamond" : "ring") : trace.line.dash ?? "solid"]);
}
