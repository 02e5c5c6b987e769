/**
 * Light or dark theme: the visitor's choice if there is one, else the system's preference.
 *
 * Loaded as a classic script in the head, before the first paint, so that no page flashes.
 */
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("grove-theme");
  const apply = () => {
    const theme = chosen() ?? (system.matches ? "dark" : "light");
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    root.dispatchEvent(new CustomEvent("themechange", { bubbles: true }));
  };
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("[data-theme-toggle]")) return;
    localStorage.setItem("grove-theme", root.dataset.theme === "dark" ? "light" : "dark");
    apply();
  });
})();
