// Keeps lists and conversations up to date, and shows the state where the slider stands.
// Everything on the page works without it.
"use strict";

const INTERVAL = 5000;
const news = document.getElementById("news");

async function page(address, signal) {
  const answer = await fetch(address, { signal, credentials: "same-origin" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// What was open stays open, and what had the focus keeps it.
function replace(old, made) {
  const open = new Set([...old.querySelectorAll("details[open][id]")].map((each) => each.id));
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  for (const each of made.querySelectorAll("details[id]")) each.open = open.has(each.id);
  old.replaceChildren(...made.childNodes);
  if (focused) document.getElementById(focused)?.focus();
}

function follow(live) {
  let failed = false;
  async function look() {
    if (document.visibilityState !== "visible") return;
    try {
      const answer = await fetch(live.dataset.live, { credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      const { version } = await answer.json();
      if (failed) news.textContent = "";
      failed = false;
      if (version === live.dataset.version) return;
      const made = await page(location.href);
      const next = made.getElementById(live.id);
      if (!next) return;
      live.dataset.version = version;
      replace(live, next);
      extend(made.getElementById("at"));
      news.textContent = "Updated.";
    } catch {
      failed = true;
      news.textContent = "The server does not answer: this is how it was.";
    }
  }
  async function again() {
    await look();
    setTimeout(again, INTERVAL);
  }
  setTimeout(again, INTERVAL);
}

const slider = document.getElementById("at");

function extend(newer) {
  if (slider && newer) slider.max = newer.max;
}

if (slider) {
  const form = document.getElementById("when");
  const state = document.getElementById("state");
  const shown = document.getElementById("shown-at");
  let under_way = null;
  let timer = 0;

  const show = async () => {
    under_way?.abort();
    under_way = new AbortController();
    const at = slider.value;
    try {
      const made = await page(`${form.dataset.state}&at=${at}`, under_way.signal);
      replace(state, made.body);
      state.dataset.at = at;
      for (const each of document.querySelectorAll("article.at")) each.classList.remove("at");
      const event = document.getElementById(`e${at}`);
      event?.classList.add("at");
      event?.scrollIntoView({ block: "nearest" });
    } catch (problem) {
      if (problem.name !== "AbortError") news.textContent = "The state cannot be read.";
    }
  };
  const move = () => {
    shown.textContent = slider.value;
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  };
  slider.addEventListener("input", move);
  form.querySelector("button").hidden = true;
  document.addEventListener("click", (click) => {
    const link = click.target.closest?.("a[data-at]");
    if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
    click.preventDefault();
    slider.value = link.dataset.at;
    move();
  });
}

document.querySelectorAll("[data-live]").forEach(follow);
