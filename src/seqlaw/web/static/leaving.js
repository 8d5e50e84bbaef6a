// What leaves the page: text to the clipboard, files to the disk.

export function toast(text) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => box.classList.remove("shown"), 1800);
}

export async function copyText(text, done) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // No clipboard outside a secure context (a remote host without TLS): the old way still works.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(done);
}

export function download(name, url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  if (url.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// The numbers of the picture, a row each.
function table(view, answer, sampled) {
  if (view === "spectrum")
    return answer.j.map((j, k) => ({ j, initial: answer.initial[k], innovation: answer.innovation[k], total: answer.total[k] }));
  if (view === "plan" && answer.by_batch) // one pass
    return ["by_batch", "by_length", "by_width"].flatMap((choice) => answer[choice].map((run) => ({ choice, ...run })));
  if (view === "plan") return answer.finite.isoflop;
  if (view === "panels")
    return answer.panels.flatMap((p) => [...p.curves, ...p.overlays].flatMap((c) => c.x.map((x, k) => ({
      regime: p.regime, quantity: p.quantity, against: c.axis, method: c.method, x, y: c.y[k], error: c.error?.[k], guide: c.guide?.[k],
    }))));
  const rows = answer.rows.map((row) => (view === "curve" ? { method: answer.method, ...row } : row));
  if (view !== "curve" || !sampled) return rows;
  const error = (row) => ({ reducible_standard_error: row.standard_error.reducible ?? "" });
  return [
    ...rows.map((row) => ({ ...row, reducible_standard_error: "" })),
    ...sampled.rows.map(({ standard_error, ...row }) => ({ method: sampled.method, ...row, ...error({ standard_error }) })),
  ];
}

export function csv(view, answer, sampled) {
  const rows = table(view, answer, sampled), names = Object.keys(rows[0]);
  return [names.join(","), ...rows.map((row) => names.map((name) => row[name] ?? "").join(","))].join("\n") + "\n";
}
