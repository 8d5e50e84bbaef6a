// What the page holds: plain text for every control, so that what was typed is what is asked.
// The address holds all of it; a link gives the same view again.

// What is the page's alone; every option of a question has its default from the server.
export const DEFAULTS = {
  view: "curve", one_pass: "", best: "", chosen: "on", unguarded: "", by: "L", along: "P", style: "stacked", scale: "linear",
  from_M: "8", to_M: "128", from_N: "64", to_N: "1e6", from_P: "2", to_P: "256", from_R: "10", to_R: "1e5", from_b: "1", to_b: "1024", from_epochs: "1", to_epochs: "16",
  from_position: "0", to_position: "255",
  short: "2", long: "4096", share: "0.35",
};

// Controls whose option has another name, or belongs to one view: control → view, option.
const OPTIONS = {
  kind: ["curve", "schedule"], beta: ["curve", "momentum"], tests: ["tradeoff", "eval_length"],
  plan_d: ["plan", "d"], budget_tokens: ["plan", "tokens"], ladder_d: ["ladders", "d"], ladder_tokens: ["ladders", "tokens"],
  sample_points: ["sampled", "points"], sketches: ["sampled", "sketches"], repetitions: ["sampled", "repetitions"],
  seed: ["sampled", "seed"],
  method: ["sampled", "method"], network: ["sampled", "network"], optimizer: ["sampled", "optimizer"],
};
const LIMITS = ["max_M", "max_N", "max_P", "max_L", "min_P"];
for (const name of ["compute", ...LIMITS]) OPTIONS[name] = ["plan", name];
const TEACHER = ["alpha", "theta", "r", "rho", "c_xi", "c_0"];
for (const name of [...TEACHER, "batch", "epochs", "M", "N", "P", "d", "eval_length", "L", "R", "gamma", "warmup", "decay", "nesterov", "tokens", "precondition"])
  OPTIONS[name] = ["curve", name];

// name → { words, value, low, high, step, … } of each control that is an option.
export const options = {};

export function takeOptions(controls) {
  for (const [name, [view, option]] of Object.entries(OPTIONS)) {
    options[name] = controls[view][option];
    DEFAULTS[name] = options[name].value;
  }
  for (const name of ["method", "network", "optimizer"]) CHOICES[name] = options[name].choices;
  Object.assign(state, DEFAULTS);
}

export const VIEWS = [
  ["spectrum", "Spectrum"],
  ["curve", "Risk curve"],
  ["tradeoff", "Longer or more"],
  ["plan", "Planner"],
  ["ladders", "Ladders"],
  ["panels", "The paper's panels"],
];

const CHOICES = {
  view: VIEWS.map(([name]) => name), along: ["M", "N", "P", "R", "b", "epochs", "position"], kind: ["wsd", "block", "constant", "cosine"], by: ["L", "R"],
  style: ["stacked", "lines"], scale: ["log", "linear"], one_pass: ["", "on"], best: ["", "on"], chosen: ["", "on"], unguarded: ["", "on"], nesterov: ["", "on"],
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
// There the tokens may set the steps.
export const stepsFollow = () => onePass() && (state.view === "tradeoff" || (state.view === "curve" && state.along === "b"));
// A view that chooses has the best step size at each point unless one is given; a curve has it if asked (along R, which the step
// sets, it cannot). One pass plans the step in any case.
export const chooses = () => ["tradeoff", "plan", "ladders"].includes(state.view);
export const best = () => chooses() ? state.chosen === "on" || (onePass() && state.view === "plan") : state.view === "curve" && state.best === "on" && state.along !== "R";
export const hasPower = () => state.view === "curve" || state.view === "tradeoff" || (state.view === "plan" && !onePass());
// The step and the optimizer, for the title of a picture.
export const trained = () => [best() ? "best step" : `γ = ${state.gamma}`, ...(hasPower() && Number(state.precondition) > 0 ? [`p = ${state.precondition}`] : [])].join(", ");
// A step that is given can be taken as it is.
export const stepGiven = () => onePass() && !best() && state.view !== "plan";
// Points are measured by training students step by step, which takes mini-batches.
export const trains = () => onePass() && state.method === "trained";
export const hasMomentum = () => state.kind === "constant" && !["plan", "ladders"].includes(state.view) && !onePass();

// How often each sequence is used; along the epochs the line says.
export const hasEpochs = () => onePass() && ["curve", "tradeoff"].includes(state.view) && !(state.view === "curve" && state.along === "epochs");
export const repeated = () => (hasEpochs() ? Math.max(1, Number(state.epochs) || 1) : 1);

// N follows from the batch, and only with one is there a batch, or are there epochs.
export const AXES = { M: () => true, N: () => !onePass(), P: () => true, R: () => true, b: onePass, epochs: onePass, position: () => true };
// Along the position every point has a test of its own.
export const positions = () => state.view === "curve" && state.along === "position";
export function fitAxis() {
  if (state.along in AXES && !AXES[state.along]()) state.along = onePass() ? "b" : "N";
}

export function address() {
  return "#" + new URLSearchParams(state).toString();
}

// What is not given stays out or is null; everything else goes as it was typed: the server knows the rules.
const orNull = (text) => (text.trim() === "" ? null : text.trim());

const teacher = () => Object.fromEntries(TEACHER.map((name) => [name, state[name]]));

function schedule(steps) {
  const body = { schedule: state.kind };
  if (steps && best()) body.gamma = "best";
  else if (steps || !onePass()) body.gamma = state.gamma;
  if (steps && !stepsFollow()) Object.assign(body, state.by === "L" || best() ? { L: state.L } : { R: state.R });
  if (hasMomentum() && orNull(state.beta)) Object.assign(body, { momentum: state.beta, nesterov: state.nesterov === "on" });
  if (hasPower()) body.precondition = state.precondition;
  if (state.kind === "wsd") Object.assign(body, { warmup: state.warmup, decay: state.decay });
  return body;
}

const student = () => ({ ...teacher(), M: state.M, d: state.d.trim(), ...schedule(true) });
const batch = () => (onePass() ? { batch: state.batch, ...(hasEpochs() ? { epochs: state.epochs } : {}), safeguard: !(stepGiven() && state.unguarded === "on") } : {});

function question() {
  return { ...student(), ...batch(), ...(onePass() ? {} : { N: state.N }), P: state.P, eval_length: positions() ? null : orNull(state.eval_length) };
}

function range() {
  return {
    along: state.along, start: state["from_" + state.along], stop: state["to_" + state.along],
    tokens: stepsFollow() ? state.tokens : null,
  };
}

// A point of one pass takes up to 0.3 s; the server has a ceiling of 24 trainings a question.
function points(moving, trainings = 1) {
  if (!onePass()) return { curve: moving ? 8 : 25, tradeoff: moving ? 6 : 13 }[state.view];
  const most = { curve: moving ? 5 : 17, tradeoff: moving ? 5 : 13 }[state.view];
  if (state.view === "curve" && state.along === "epochs") return moving ? 3 : 7; // the last of which have many
  return Math.max(2, Math.min(most, Math.floor(24 / trainings / (1 + repeated() / 16))));
}

// Shares of the longer length: evenly spread, and the one on the page.
function shares(count) {
  const even = Array.from({ length: count }, (_, k) => Number((0.02 + (0.96 * k) / (count - 1)).toFixed(4)));
  return [...new Set([...even, state.share])].sort((a, b) => Number(a) - Number(b));
}

const measured = () => trains()
  ? { method: state.method, network: state.network === "linear" ? null : state.network, optimizer: state.optimizer === "sgd" ? null : state.optimizer }
  : {};

export const bodies = {
  spectrum: () => ({ ...student(), P: state.P, points: "240" }),
  curve: (moving) => ({ ...question(), ...range(), points: points(moving), quick: moving }),
  tradeoff: (moving) => {
    const eval_length = state.tests.split(/[\s,;]+/).filter(Boolean);
    // Each test has a best step of its own.
    return { ...student(), ...batch(), tokens: state.tokens, eval_length, points: points(moving, best() ? 1 + eval_length.length : 1), quick: moving };
  },
  ladders: (moving) => ({
    ...student(), d: state.ladder_d.trim(), tokens: state.ladder_tokens, candidates: [state.short, state.long],
    shares: shares(moving ? 5 : 13), sketches: moving ? "2" : "4", eval_length: orNull(state.eval_length) ?? state.long,
  }),
  sampled: () => ({
    ...question(), ...range(), points: state.sample_points, sketches: state.sketches,
    repetitions: state.repetitions, seed: state.seed, ...measured(),
  }),
  plan: () => {
    const limits = LIMITS.filter((name) => orNull(state[name])).map((name) => [name, state[name]]);
    return {
      ...teacher(), ...schedule(false), compute: state.compute, tokens: state.budget_tokens, ...Object.fromEntries(limits),
      d: state.plan_d.trim(), eval_length: orNull(state.eval_length),
    };
  },
};
