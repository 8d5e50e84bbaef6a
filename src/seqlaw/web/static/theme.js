// Dark or light: as the system has it, unless the button was pressed. Loaded before the page is painted, so that
// a choice does not flash; kept in this browser only, since a copied link is of the view and not of the reader.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement, KEY = "seqlaw-scheme";
  const stored = (() => { try { return localStorage; } catch { return {}; } })(); // a browser may refuse it
  const scheme = () => stored[KEY] ?? (system.matches ? "dark" : "light");
  const apply = () => {
    root.style.colorScheme = stored[KEY] ?? "";
    dispatchEvent(new Event("scheme")); // for who has taken the colours: the picture
  };
  apply();
  system.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => document.getElementById("scheme").addEventListener("click", () => {
    const other = scheme() === "dark" ? "light" : "dark";
    if (other === (system.matches ? "dark" : "light")) delete stored[KEY]; // and follow the system again
    else stored[KEY] = other;
    apply();
  }));
})();
