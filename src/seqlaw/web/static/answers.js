// The words and numbers around the picture: the regime's badge, tables with accuracy, notes and flags.

import { element } from "./controls.js";
import { number, pretty, short, sign, whole } from "./charts.js";
import { state } from "./state.js";
import { worded } from "./words.js";

const byId = (id) => document.getElementById(id);

function row(cells, tag = "td") {
  const line = element("tr");
  for (const cell of cells) {
    const { text, kind = "", node } = typeof cell === "object" && cell !== null && !(cell instanceof Node) ? cell : { text: cell };
    line.append(element(tag, { className: kind }, node ?? String(text ?? "–")));
  }
  return line;
}

function table(head, rows, caption = "") {
  // A narrow page puts the soft cells on lines of their own, under the numbers.
  const columns = head.filter((cell) => cell.kind !== "soft").length;
  const folds = columns < head.length ? " folds" : "";
  const out = element("table", { className: `numbers${folds}${columns > 5 ? (folds ? " headed" : " dense") : ""}`, "aria-label": caption },
    element("thead", {}, row(head, "th")), element("tbody", {}, ...rows.map((cells) => row(cells))));
  out.style.setProperty("--others", columns - 1);
  // The caption wraps with the page, while a wide table may scroll under it.
  const words = caption ? [element("p", { className: "caption" }, ...worded(caption))] : [];
  return element("div", { className: "block" }, ...words, element("div", { className: "scroll" }, out));
}

const n = (text) => ({ text, kind: "n" });
const soft = (text) => ({ text, kind: "soft" });
// Of a slope: a standard error has its sign; where nothing is drawn, what is left beside the line is its curvature.
const fitError = (se, kind) => (se === null ? "–" : se < 1e-6 ? "< 1e-6" : `${kind === "curvature" ? "" : "± "}${number(se, 2)}`);
const CURVATURE = "Curvature: how far from a straight line on logarithmic axes, as an error of its slope.";
const KEYS = { approx: "approx", bias: "bias", variance: "variance", cross: "cross", reducible: "ink" };
const term = (name) => ({
  node: element("span", {}, Object.assign(element("span", { className: "key" }), { style: `background:var(--${KEYS[name] ?? "edge"})` }), ...worded(name)),
});

// Each accuracy once, after the names of the terms that have it.
function accuracies(accuracy, names) {
  const found = new Map();
  for (const name of names) if (accuracy[name]) found.set(accuracy[name], [...(found.get(accuracy[name]) ?? []), name]);
  return `Accuracy: ${[...found].map(([words, terms]) => `${terms.join(", ")}: ${pretty(words)}`).join("; ")}.`;
}

// c_0 κ^−θ and P^(1/(α−θ)) with the signs below and above the line.
function scripted(text) {
  const out = element("span");
  let from = 0;
  for (const found of text.matchAll(/([_^])(?:\(((?:[^()]|\([^()]*\))*)\)|([−-]?[\p{L}\d]+))/gu)) {
    out.append(text.slice(from, found.index), element(found[1] === "_" ? "sub" : "sup", {}, found[2] ?? found[3]));
    from = found.index + found[0].length;
  }
  out.append(text.slice(from));
  return out;
}

// ---- the badge -----------------------------------------------------------------------------------------

export function showBadge(badge, moving) {
  const pill = byId("regime");
  pill.textContent = badge.covered ? `Regime ${badge.regime}` : "Outside the theorem";
  pill.dataset.regime = badge.covered ? badge.regime : "outside";
  byId("sentence").replaceChildren(scripted(pretty(badge.sentence)));
  drawRuler(badge);
  const known = badge.conditions.filter((c) => c.holds !== null);
  const held = known.filter((c) => c.holds).length;
  const open = badge.conditions.length - known.length;
  byId("conditions-summary").textContent = badge.conditions.length
    ? `The theorem's conditions: ${held} of ${known.length} hold, ${open} carry unnamed constants`
    : "The theorem has no exponents here";
  if (moving && !byId("conditions").open) return; // nobody sees the table; the resting slider fills it
  const rows = badge.conditions.map((c) => {
    const mark = c.holds === null
      ? soft("constant unnamed")
      : { node: element("span", { className: c.holds ? "yes" : "no" }, c.holds ? "✓ holds" : "✗ fails") };
    return [{ node: scripted(pretty(c.name)) }, n(c.value === null ? "∞" : number(c.value)), n(pretty(`${c.relation} ${number(c.needed)}`)), n(c.needed > 0 ? number(c.ratio, 3) : "–"), n(number(c.ratio_scaled, 3)), mark];
  });
  const head = ["condition", n("value"), n("needed"), n("ratio"), n("with scales"), ""];
  byId("conditions-table").replaceChildren(
    element("thead", {}, row(head, "th")), element("tbody", {}, ...rows.map((cells) => row(cells))));
}

function drawRuler({ theta, alpha, edge, regime, covered }) {
  const svg = byId("ruler"), width = 250;
  const low = Math.min(edge, theta) - 0.35, high = Math.max(alpha, theta) + 0.35;
  const at = (value) => 6 + ((value - low) / (high - low)) * (width - 12);
  const make = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    return node;
  };
  const parts = [
    [low, edge, "out"], [edge, alpha, "two"], [alpha, high, "one"],
  ].map(([a, b, fill]) => make("rect", { x: at(a), y: 18, width: Math.max(0, at(b) - at(a)), height: 8, style: `fill:var(--${fill}-pale)` }));
  const apart = at(alpha) - at(edge) > 40;
  svg.replaceChildren(
    ...parts,
    ...(apart ? [make("text", { x: at(edge), y: 40, "text-anchor": "middle" }, pretty("alpha") + "−2r")] : []),
    make("text", { x: at(alpha), y: 40, "text-anchor": "middle" }, pretty("alpha")),
    make("circle", { cx: at(theta), cy: 22, r: 6, style: `fill:var(--${covered ? { I: "one", II: "two" }[regime] : "out"})`, stroke: "#fff", "stroke-width": 2 }),
    make("text", { x: at(theta), y: 11, "text-anchor": "middle", class: "here" }, "θ"));
  svg.setAttribute("aria-label", pretty(`theta = ${theta}, alpha = ${alpha}, alpha − 2r = ${number(edge)}`));
}

// ---- the numbers of each view ------------------------------------------------------------------------------

const near = (ends) => `within 1 %: ${[...new Set(ends)].map((size) => short(size)).join(" – ")}`;
const tile = (label, value, under) => {
  const out = element("div", { className: "tile" }, element("span", {}, label), element("b", {}, value), element("span", {}, under));
  out.style.setProperty("--ems", 0.7 * value.length); // no bold digit is wider: the style sheet makes them fit
  return out;
};

function termsAt({ terms, accuracy }) {
  const names = ["approx", "bias", "variance", "cross"], share = (name) => `${(100 * terms[name] / terms.reducible).toFixed(0)} %`;
  const rows = names.map((name) => [term(name), n(number(terms[name])), n(share(name))]);
  return table(["term at the optimum", n("value"), n("share")], rows, accuracies(accuracy, names));
}

function planOnce({ finite: best, budget, by_length }) {
  const least = Math.min(...by_length.map((run) => run.reducible));
  const others = by_length.map((run) => [n(short(run.P)), n((run.reducible / least).toFixed(3)), n(short(run.M)), n(short(run.batch)), n(short(run.L)), n(number(run.gamma, 3))]);
  return [
    element("div", { className: "tiles" },
      tile("M, width", whole(best.M), near(best.flat.M)), tile("b, sequences a step", whole(best.batch), near(best.flat.batch)),
      tile("P, length", whole(best.P), near(best.flat.P)), tile("L, steps", whole(best.L), `N = b·L = ${short(best.N)}`),
      tile("γ, peak step", number(best.gamma, 3), "within a few percent"), tile("reducible risk", number(best.terms.reducible), "approx + bias + variance"),
      tile("compute used, b·P·L·M²", short(best.compute, 4), `of ${number(budget.compute)}; tokens ${short(best.tokens, 4)} of ${number(budget.tokens)}`)),
    table([n("if P were"), n("risk over the least"), n("M"), n("b"), n("L"), n("γ")], others, "Longer or more, in one pass: each length has its own best step size; the batch or the tokens a step are kept."),
    termsAt(best),
  ];
}

const SHOWERS = {
  spectrum(answer) {
    const rows = answer.numbers.map((x) => {
      const name = element("span", {}, element("b", {}, scripted(x.name)), " ", Object.assign(scripted(x.meaning), { className: "meaning" }));
      return [{ node: name }, n(number(x.value)), soft(x.accuracy)];
    });
    return [table(["quantity", n("value"), soft("accuracy")], rows)];
  },

  curve(answer) {
    const names = ["approx", "bias", "variance", "cross", "reducible", "irreducible", "total"];
    const rows = names.map((name) => {
      const slope = answer.slopes[name];
      return [term(name), n(number(answer.point[name], 5)), n(slope ? slope.slope.toFixed(3) : "–"), n(slope ? fitError(slope.se, answer.se_is) : "–")];
    });
    const { M, N, P, d, L, R, eval_length, batch, epochs, gamma, beta, nesterov } = answer.point;
    const once = batch === null ? "" : `in ${epochs > 1 ? `${number(epochs)} epochs` : "one pass"} with b = ${number(batch)}, γ = ${number(gamma, 3)}, `;
    const momentum = beta === undefined ? "" : `, ${nesterov ? "Nesterov's " : ""}momentum ${number(beta)}`;
    const caption = `At M = ${number(M)}, ${once}N = ${number(N)}, P = ${number(P)}, d = ${d === null ? "∞" : number(d)}, L = ${number(L)} (R = ${number(R)})${momentum}, tested at length ${number(eval_length)}. ${accuracies({ ...answer.accuracy, irreducible: "exact for the teacher" }, names)} ${CURVATURE}`;
    return [table(["term", n("value here"), n(`slope along ${sign(answer.along)}`), n(answer.se_is)], rows, caption)];
  },

  tradeoff(answer) {
    const tests = [...new Set(answer.rows.map((r) => r.tested))]; // JavaScript would sort the keys of `best`
    const rows = tests.map((name) => {
      const [low, high] = answer.best[name];
      const own = answer.rows.filter((r) => r.tested === name);
      const risks = own.map((r) => r.reducible ?? Infinity), best = Math.min(...risks), worst = Math.max(...risks);
      const range = low === high ? number(low) : `${number(low)} to ${number(high)}`;
      return [name === "own" ? "own length (the paper)" : `length ${number(Number(name))}`, n(range), n(number(best, 4)), n(`${number(worst / best, 3)}×`)];
    });
    return [table(["tested at", n("best P, within 1 %"), n("risk there"), n("worst over best")], rows,
      `"Own length" tests each student at its own training length, so the test changes along the curve. Choose a common test length to compare fairly. Risks: ${answer.accuracy}.`)];
  },

  plan(answer) {
    if (answer.by_batch) return planOnce(answer);
    const best = answer.finite, { flat, terms: risk } = best, of = (name) => `of ${number(answer.budget[name])}`;
    const range = (name) => near(flat[name]);
    const tiles = element("div", { className: "tiles" },
      tile("M, width", whole(best.M), range("M")), tile("N, trajectories", whole(best.N), range("N")),
      tile("P, length", whole(best.P), range("P")), tile("L, steps", whole(best.L), range("L")),
      tile("reducible risk", number(risk.reducible), "approx + bias + variance + cross"),
      tile("tokens used, N·P", whole(best.tokens), of("tokens")), tile("compute used, N·P·M²·L", short(best.compute, 4), of("compute")));
    const line = (name, e) => e === null
      ? [name, n("–"), n("–"), n("–"), n("–"), n("–"), soft("no allocation satisfies it")]
      : [name, ...["M", "N", "P", "R", "risk"].map((key) => {
          const [low, high] = e.ranges?.[key] ?? [0, 0];
          return n(high - low > 1e-6 ? `${low.toFixed(3)} … ${high.toFixed(3)}` : e.exponents[key].toFixed(3));
        }), soft(e.binding ? pretty(e.binding.join(", ")) : "as printed")];
    const rows = [line("corollary", answer.corollary), line("paper: spend all, conditions", answer.program.paper),
      line("proved: ceilings, conditions", answer.program.proved), line("free: ceilings, risk alone", answer.program.free)];
    const phase = answer.phase ? `, ${answer.phase} (τ = ${number(answer.tau, 3)}, critical ${number(answer.tau_crit, 3)})` : "";
    const lengths = best.by_length.filter((a) => a.reducible !== null);
    const least = Math.min(...lengths.map((a) => a.reducible));
    const others = lengths.map((a) => [n(short(a.P)), n((a.reducible / least).toFixed(3)), n(short(a.M)), n(short(a.N)), n(short(a.L))]);
    const out = [tiles,
      table([n("if P were"), n("risk over the least"), n("M"), n("N"), n("L")], others, "Longer or more: each length with its own best sizes."),
      termsAt(best)];
    if (answer.corollary)
      out.push(table(["exponents of K = γC", n("M"), n("N"), n("P"), n("R"), n("risk"), soft("binding")], rows, `K = ${number(answer.K, 3)}${phase}. Exponents are exact but say nothing about constants.`));
    return out;
  },

  ladders(answer) {
    const over = (r) => n(`${number(r.against, 4)} ± ${number(r.against_error, 1)}`);
    const here = answer.rows.filter((r) => r.share === Number(state.share) || r.name === "only");
    const name = (r) => (r.name === "only" ? `only ${r.trained}` : r.name);
    const rows = here.map((r) => [name(r), n(number(r.reducible, 4)), over(r), n(number(r.bias, 3))]);
    const [short, long] = answer.candidates;
    return [table(["trained", n("reducible risk"), n("over the better alone"), n("bias")], rows,
      `With ${number(100 * Number(state.share), 3)} % of ${number(long)} and the rest of ${number(short)}, tested at length ${number(answer.eval_length)}. Exact given the sketch: ${answer.accuracy}.`)];
  },

  panels(answer) {
    const rows = answer.panels.flatMap((panel) => panel.curves.map((c) => [
      panel.regime, `${panel.quantity} vs. ${c.axis}`, n(c.slope.toFixed(3)), n(fitError(c.se, c.se_is)), n(c.guide_slope.toFixed(3)), n(c.paper.toFixed(3)),
    ]));
    const kinds = ["standard error", "curvature"].filter((kind) => answer.panels.some((panel) => panel.curves.some((c) => c.se_is === kind)));
    const words = kinds.map((kind) => (kind === "curvature" ? CURVATURE : "±: standard error over the sketches.")).join(" ");
    return [table(["regime", "slope of", n("here"), n(kinds.join(" or ")), n("its guide"), n("paper")], rows,
      `Slopes on logarithmic axes, ${answer.source}. ${words} The paper's slopes come from few sampled repetitions.`)];
  },
};

function list(node, items, remarks = []) {
  node.hidden = !items?.length && !remarks.length;
  const line = (className) => (text) => element("li", { className }, ...worded(pretty(text)));
  node.replaceChildren(...(items ?? []).map(line("")), ...remarks.map(line("remark")));
}

export function clearAnswer() {
  byId("numbers").replaceChildren();
  list(byId("notes"), []);
  list(byId("flags"), []);
  byId("conditions-summary").textContent = "The theorem's conditions";
  byId("conditions-table").replaceChildren();
}

// Sampled points measure the cross term, so beside them its absence from the curve is news; elsewhere it is not.
export function showFlags(answer, sampled) {
  list(byId("flags"), [...new Set([...answer.flags, ...(sampled?.flags ?? [])])], sampled ? answer.remarks : []);
}

export function showAnswer(view, answer, sampled) {
  byId("numbers").replaceChildren(...SHOWERS[view](answer));
  list(byId("notes"), answer.notes);
  showFlags(answer, sampled);
}

// The legend under the picture of a narrow page, from `charts.names`.
export function showLegend(keys) {
  byId("legend").replaceChildren(...keys.map(([name, color, dash]) => {
    const mark = element("span");
    mark.style.borderColor = color;
    mark.className = ["ring", "diamond"].includes(dash) ? dash : "";
    mark.style.borderTopStyle = { solid: "solid", ring: "solid", diamond: "solid", dot: "dotted" }[dash] ?? "dashed";
    return element("li", {}, mark, scripted(name));
  }));
}
