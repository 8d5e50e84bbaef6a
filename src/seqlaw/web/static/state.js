// What the page holds: plain text for every control, so that what was typed is what is asked.
// The address holds all of it; a link gives the same view again.

export const DEFAULTS = {
  view: "curve",
  alpha: "1.8", theta: "1.25", r: "0.35", rho: "0.55", c_xi: "0.03", c_0: "0.3",
  one_pass: "", batch: "8", best: "", unguarded: "", // "on" where a box is checked
  M: "64", N: "4096", P: "32", d: "1024", eval_length: "",
  kind: "wsd", by: "L", L: "30000", R: "3000", gamma: "0.1", warmup: "0.1", decay: "0.2", beta: "", nesterov: "",
  along: "P",
  from_M: "8", to_M: "128", from_N: "64", to_N: "1e6", from_P: "2", to_P: "256", from_R: "10", to_R: "1e5", from_b: "1", to_b: "1024",
  style: "stacked", scale: "linear",
  sample_points: "6", sketches: "3", repetitions: "1", seed: "0", epochs: "1",
  tokens: "1e6", tests: "16, 4096",
  compute: "1e15", budget_tokens: "1e8", max_M: "", max_N: "", max_P: "", max_L: "", min_P: "",
  short: "2", long: "4096", share: "0.35", ladder_tokens: "16777216", ladder_d: "512",
  plan_d: "inf", // as `seqlaw plan` has it, so that d never limits M; the other views' d is that of `seqlaw risk`
};

export const VIEWS = [
  ["spectrum", "Spectrum"],
  ["curve", "Risk curve"],
  ["tradeoff", "Longer or more"],
  ["plan", "Planner"],
  ["ladders", "Ladders"],
  ["panels", "The paper's panels"],
];

const CHOICES = {
  view: VIEWS.map(([name]) => name), along: ["M", "N", "P", "R", "b"], kind: ["wsd", "block", "constant", "cosine"], by: ["L", "R"],
  style: ["stacked", "lines"], scale: ["log", "linear"], one_pass: ["", "on"], best: ["", "on"], unguarded: ["", "on"], nesterov: ["", "on"],
};

export const state = { ...DEFAULTS };

export function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of Object.keys(DEFAULTS)) state[name] = given.get(name) ?? DEFAULTS[name];
  for (const [name, choices] of Object.entries(CHOICES)) if (!choices.includes(state[name])) state[name] = DEFAULTS[name];
  fitAxis();
}

// One pass is a way to train, of which a spectrum knows nothing.
export const onePass = () => state.one_pass === "on" && !["spectrum", "ladders"].includes(state.view);
// There the tokens may set the steps, and each point may have its best step size (R, which that sets, has none).
export const stepsFollow = () => onePass() && (state.view === "tradeoff" || (state.view === "curve" && state.along === "b"));
export const best = () => onePass() && state.best === "on" && !(state.view === "curve" && state.along === "R");
// A step that is given can be taken as it is, and mini-batches can come round: both of steps that are not tuned.
export const stepGiven = () => onePass() && !best() && state.view !== "plan";
export const hasMomentum = () => state.kind === "constant" && !["plan", "ladders"].includes(state.view) && !onePass();

// N follows from the batch in one pass, and only there is a batch.
export function fitAxis() {
  const [gone, instead] = state.one_pass === "on" ? ["N", "b"] : ["b", "N"];
  if (state.along === gone) state.along = instead;
}

export function address() {
  return "#" + new URLSearchParams(state).toString();
}

// What is not given stays out or is null; everything else goes as it was typed: the server knows the rules.
const orNull = (text) => (text.trim() === "" ? null : text.trim());

function teacher() {
  const { alpha, theta, r, rho, c_xi, c_0 } = state;
  return { alpha, theta, r, rho, c_xi, c_0 };
}

function schedule(steps) {
  const body = { kind: state.kind };
  if (!best() && (steps || !onePass())) body.gamma = state.gamma;
  if (!steps) body.L = "1000000";
  else if (!stepsFollow()) Object.assign(body, state.by === "L" || best() ? { L: state.L } : { R: state.R });
  if (hasMomentum() && orNull(state.beta)) Object.assign(body, { beta: state.beta, nesterov: state.nesterov === "on" });
  if (state.kind === "wsd") Object.assign(body, { warmup: state.warmup, decay: state.decay });
  return body;
}

function question() {
  return {
    teacher: teacher(), M: state.M, P: state.P, d: state.d.trim(),
    schedule: schedule(true), eval_length: orNull(state.eval_length),
    ...(onePass() ? { batch: state.batch, tune: best(), safeguard: !(stepGiven() && state.unguarded === "on") } : { N: state.N }),
  };
}

function range() {
  return {
    along: state.along, start: state["from_" + state.along], stop: state["to_" + state.along],
    tokens: stepsFollow() ? state.tokens : null,
  };
}

// A point of one pass takes up to 0.3 s; the server has a ceiling of 24 trainings a question.
function points(moving, trainings = 1) {
  if (!onePass()) return { curve: moving ? 8 : 25, tradeoff: moving ? 7 : 13 }[state.view];
  const most = { curve: moving ? 6 : 17, tradeoff: moving ? 5 : 13 }[state.view];
  return Math.max(2, Math.min(most, Math.floor(24 / trainings)));
}

export const bodies = {
  spectrum: () => question(),
  curve: (moving) => ({ ...question(), ...range(), points: points(moving), quick: moving }),
  tradeoff: (moving) => {
    const eval_lengths = state.tests.split(/[\s,;]+/).filter(Boolean);
    return {
      ...question(), eval_length: null, tokens: state.tokens, eval_lengths,
      points: points(moving, best() ? 1 + eval_lengths.length : 1), // each test has a best step of its own
    };
  },
  ladders: (moving) => ({
    teacher: teacher(), M: state.M, d: state.ladder_d.trim(), schedule: schedule(true), tokens: state.ladder_tokens,
    short: state.short, long: state.long, share: state.share, eval_length: orNull(state.eval_length),
    ...(moving ? { points: 7, sketches: 2 } : { points: 13, sketches: 4 }),
  }),
  sampled: () => ({
    ...question(), ...range(), points: state.sample_points, sketches: state.sketches,
    repetitions: state.repetitions, seed: state.seed, epochs: stepGiven() ? state.epochs : "1",
  }),
  plan: () => {
    const budget = { compute: state.compute, tokens: state.budget_tokens };
    for (const name of ["max_M", "max_N", "max_P", "max_L", "min_P"])
      if (orNull(state[name])) budget[name] = state[name];
    return {
      teacher: teacher(), schedule: schedule(false), budget, d: state.plan_d.trim(),
      eval_length: orNull(state.eval_length),
    };
  },
};
