// The colours that were chosen, before anything is painted.
"use strict";

document.documentElement.classList.add("js");
try {
  const chosen = localStorage.getItem("explore-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage is turned off */ }
