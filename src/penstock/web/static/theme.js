// Before anything is painted: the theme that was chosen, or that of the system.
(() => {
  const chosen = localStorage.getItem("penstock.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
