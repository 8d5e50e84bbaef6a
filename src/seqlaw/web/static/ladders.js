// The picture of two lengths one after the other, against the share of the longer.

import { COLOURS, axis, layout, line, number } from "./charts.js";
import { trained } from "./state.js";

const WAYS = { "short-to-long": ["reducible", "solid"], "long-to-short": ["bias", "dash"], mixed: ["variance", "dot"] };

export function ladders(answer, state, narrow) {
  const [short, long] = answer.candidates;
  const words = { "short-to-long": `${number(short)} first, ${number(long)} last`, "long-to-short": `${number(long)} first`, mixed: "mixed" };
  const data = Object.entries(WAYS).map(([way, [colour, dash]]) => {
    const rows = answer.rows.filter((row) => row.name === way);
    return line(rows.map((row) => row.share), rows.map((row) => row.against), words[way], COLOURS[colour], {
      line: { dash, width: way === "short-to-long" ? 2.8 : 2 }, customdata: rows.map((row) => row.against_error),
      hovertemplate: "%{y:.4~g} ± %{customdata:.1~g}",
    });
  });
  // Where ladders gain or nearly so; what is far worse leaves the picture, and a length alone that is stands in the table only.
  const low = Math.min(...answer.rows.map((row) => row.against)), top = Math.max(1.15, 1 + 3 * (1 - low));
  for (const row of answer.rows.filter((one) => one.name === "only" && one.against <= top))
    data.push(line([0, 1], [row.against, row.against], `only ${number(Number(row.trained))}`, COLOURS.approx, { line: { dash: row.share ? "dashdot" : "longdash", width: 1.4 } }));
  const here = answer.rows.find((row) => row.name === "short-to-long" && row.share === Number(state.share));
  data.push({
    type: "scatter", mode: "markers", x: [here.share], y: [here.against], name: `here: ${number(100 * here.share, 3)} % last, ${number(here.against, 4)} ± ${number(here.against_error, 1)}`,
    marker: { color: COLOURS.bias, size: 13, symbol: "diamond" }, hoverinfo: "skip",
  });
  const title = `Regime ${answer.regime}, ${number(answer.tokens)} tokens, M = ${number(Number(state.M))}, ${trained()}, tested at length ${number(answer.eval_length)}`;
  return {
    data,
    layout: layout(title, { ...axis(narrow ? `share of ${number(long)}` : `share of ${number(long)}, of the steps and of the tokens`, "linear"), range: [0, 1] },
      { ...axis("risk over the better length alone", "linear"), range: [low - 0.06 * (top - low), top] }, narrow),
  };
}
