// Keeps lists and conversations up to date, and shows the state at the slider's position.
// Everything on the page also works without it.
"use strict";

const byId = (id) => document.getElementById(id);
const news = byId("news");
const IS_STATIC = "static" in document.documentElement.dataset;
const visible = () => document.visibilityState === "visible";

async function page(address, signal) {
  const answer = await fetch(address, { signal, credentials: "same-origin" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function tell(text, link) {
  news.textContent = text;
  if (!link) return;
  const made = document.createElement("a");
  made.href = link.href;
  made.textContent = link.text;
  news.append(" ", made);
}

// Takes over what is new. What was open stays open, what was loaded stays, and what had the focus
// keeps it. Parts that are the same are left alone, so that nothing flickers.
function replace(old, made) {
  for (const each of made.querySelectorAll("details[id]")) {
    const before = byId(each.id);
    if (!before || !old.contains(before)) continue;
    each.open = before.open;
    if (before.dataset.loaded) each.replaceWith(before.cloneNode(true));
  }
  for (const each of old.querySelectorAll(".whole[id]")) {
    made.querySelector(`#${CSS.escape(each.id)}`)?.classList.add("whole");
  }
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const kept = [...made.childNodes].map((each) => {
    const before = each.id && byId(each.id);
    return before && before.parentNode === old && before.isEqualNode(each) ? before : each;
  });
  old.replaceChildren(...kept);
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

// --- Times: keeps "5 minutes ago" up to date.

function ago(seconds) {
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    const count = Math.floor(seconds / size);
    if (count) return `${count} ${unit}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

setInterval(() => {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const seconds = (Date.now() - Date.parse(each.dateTime)) / 1000;
    if (seconds >= 0 && seconds < 30 * 86400) each.textContent = ago(seconds);
  }
}, 20000);

// --- Content that is loaded when it is unfolded.

document.addEventListener("toggle", async (event) => {
  const folded = event.target;
  if (!folded.open || !folded.dataset?.load || folded.dataset.loaded) return;
  try {
    const made = await page(folded.dataset.load);
    folded.querySelector(".loaded").replaceChildren(...made.getElementById("content").childNodes);
    folded.dataset.loaded = "yes";
  } catch {
    tell("This cannot be loaded now.");
  }
}, true);

document.addEventListener("click", async (click) => {
  const link = click.target.closest?.("a[data-unfold]");
  if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
  click.preventDefault();
  const event = link.closest("article");
  const shown = event.querySelector(".unfolded");
  shown?.remove();
  link.setAttribute("aria-expanded", String(!shown));
  if (shown) return;
  try {
    const made = (await page(link.href)).getElementById("content");
    made.removeAttribute("id");
    made.className = "unfolded";
    event.append(made);
  } catch {
    tell("This cannot be loaded now.");
  }
});

// --- Copying, and long texts.

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = document.createElement("textarea");
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    return done;
  }
}

document.addEventListener("click", async (click) => {
  const button = click.target.closest?.("button.copy, button.unfold");
  if (!button) return;
  if (button.matches(".unfold")) {
    const whole = byId(button.dataset.of).classList.toggle("whole");
    button.textContent = whole ? "Show less" : "Show all of it";
    button.setAttribute("aria-expanded", String(whole));
    return;
  }
  const text = button.dataset.copy ?? button.closest(".code").querySelector("pre").textContent;
  const before = button.textContent;
  button.textContent = (await copied(text)) ? "copied" : "not copied";
  setTimeout(() => { button.textContent = before; }, 1500);
});

// --- Live: the server reports a change, and the page is requested again.

const REST = 1500; // milliseconds between two requests
const AGAIN = 4000; // milliseconds after a failed request
const LATE = [2500, 5000, 10000]; // a list follows the events of its sessions after some seconds

class Live {
  constructor(shown) {
    this.shown = shown;
    this.light = byId("live");
    this.source = null;
    this.opened = false;
    this.due = 0;
    this.timer = 0;
    this.late = 0;
    this.failed = false;
    this.awaited = new Map();
    document.addEventListener("visibilitychange", () => this.look());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", () => this.look());
    this.look();
  }

  // A browser allows few connections to one server: a hidden page releases its own.
  look() {
    if (visible()) this.open();
    else this.close();
  }

  open() {
    if (this.source) return;
    const source = (this.source = new EventSource(this.shown.dataset.live));
    source.addEventListener("live", () => this.status(true, "live"));
    source.addEventListener("waiting", () => this.status(false, "waiting for the store"));
    source.addEventListener("changed", (message) => this.changed(JSON.parse(message.data)));
    source.onopen = () => {
      if (this.opened) this.changed({}); // changes may have been missed
      this.opened = true;
    };
    source.onerror = () => {
      this.status(false, "reconnecting");
      if (source.readyState !== EventSource.CLOSED) return;
      this.close();
      setTimeout(() => this.look(), 15000);
    };
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  status(on, text) {
    this.light.hidden = false;
    this.light.className = on ? "live on" : "live";
    if (this.light.textContent !== text) this.light.textContent = text;
  }

  changed(sessions) {
    for (const [id, revision] of Object.entries(sessions)) this.awaited.set(id, revision);
    this.late = 0;
    this.soon(0);
  }

  soon(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), Math.max(pause, this.due - Date.now()));
  }

  async refresh() {
    this.due = Date.now() + REST;
    const mode = this.shown.dataset.mode;
    if (mode === "tell") {
      tell("There is something new.", { href: location.href, text: "Search again" });
      return;
    }
    try {
      if (mode === "list") await this.list();
      else await this.session();
      if (this.failed) this.status(true, "live");
      this.failed = false;
    } catch {
      this.failed = true;
      this.status(false, "the server does not answer");
      this.soon(AGAIN);
    }
  }

  async list() {
    const made = (await page(location.href)).getElementById(this.shown.id);
    if (!made) return;
    for (const row of made.querySelectorAll("tr[data-revision]")) {
      const before = byId(row.id);
      if (!before || before.dataset.revision !== row.dataset.revision) row.classList.add("fresh");
      if (this.awaited.get(row.id) <= Number(row.dataset.revision)) this.awaited.delete(row.id);
    }
    replace(this.shown, made);
    if (this.awaited.size && this.late < LATE.length) this.soon(LATE[this.late++]);
    else this.awaited.clear();
  }

  async session() {
    if ("follows" in this.shown.dataset && !point?.moved) {
      const at_end = byId("end").getBoundingClientRect().top < innerHeight + 200;
      const made = await page(location.href);
      if (!made.getElementById(this.shown.id)) throw new Error("gone");
      replace(this.shown, made.getElementById(this.shown.id));
      if (byId("aside") && made.getElementById("aside")) {
        const slider = made.getElementById("slider");
        replace(byId("state"), made.getElementById("state"));
        if (slider && point) point.extend(slider.max, true);
        else if (slider) location.reload(); // the first event: now there is a slider
      }
      for (const id of ["title", "facts"]) replace(byId(id), made.getElementById(id));
      document.title = made.title;
      if (at_end) toEnd();
      else tell("There are newer events below.", { href: "#end", text: "Show them" });
    } else {
      const last = Math.max(0, ...this.awaited.values());
      if (last) point?.extend(last, false);
      tell("There are newer events.", { href: byId("when").dataset.page, text: "Show them" });
    }
    this.awaited.clear();
  }
}

// --- The slider.

class Point {
  constructor(form) {
    this.form = form;
    this.number = byId("at");
    this.slider = byId("slider");
    this.moved = new URLSearchParams(location.search).has("at");
    this.under_way = null;
    this.timer = 0;
    this.slider.hidden = false;
    byId("show").hidden = true;
    this.slider.addEventListener("input", () => this.go(this.slider.value));
    this.number.addEventListener("change", () => this.number.checkValidity() && this.go(this.number.value));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.number.checkValidity()) this.go(this.number.value);
    });
    document.addEventListener("click", (click) => {
      const link = click.target.closest?.("a[data-at]");
      if (!link || click.ctrlKey || click.metaKey || click.shiftKey) return;
      click.preventDefault();
      this.go(link.dataset.at);
    });
    document.addEventListener("keydown", (key) => {
      if (key.target.matches("input, textarea, select") || key.ctrlKey || key.metaKey || key.altKey) return;
      if (key.key === "j") this.go(this.at + 1);
      if (key.key === "k") this.go(this.at - 1);
    });
    this.name();
    if (this.moved && !location.hash) byId(`e${this.at}`)?.scrollIntoView({ block: "center" });
  }

  get at() { return Number(this.slider.value); }

  extend(last, follow) {
    this.slider.max = this.number.max = last;
    byId("last").textContent = Number(last).toLocaleString("en");
    if (follow) this.put(last);
    this.name();
  }

  put(value) {
    this.slider.value = value;
    this.number.value = this.slider.value;
    for (const [id, step] of [["back", -1], ["forth", 1]]) {
      const link = byId(id);
      const to = Math.min(Math.max(this.at + step, Number(this.slider.min)), Number(this.slider.max));
      link.dataset.at = to;
      if (!IS_STATIC) link.href = `${this.form.dataset.page}&at=${to}`;
    }
  }

  go(value) {
    this.put(value);
    this.moved = true;
    this.mark();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(), 180);
  }

  // Tells screen readers the position of the slider.
  name() {
    const event = byId(`e${this.at}`);
    const said = event?.querySelector(".text")?.textContent.trim().slice(0, 60) ?? "";
    this.slider.setAttribute("aria-valuetext", `event ${this.at}${event ? `, ${event.dataset.author}: ${said}` : ""}`);
  }

  mark() {
    for (const each of document.querySelectorAll(".event.at")) each.classList.remove("at");
    const event = byId(`e${this.at}`);
    event?.classList.add("at");
    event?.scrollIntoView({ block: "nearest" });
    this.name();
    artifactsAt(this.at);
    return event;
  }

  async show() {
    this.under_way?.abort();
    this.under_way = new AbortController();
    const { signal } = this.under_way;
    const at = this.at;
    const kept = byId(`state-${at}`); // on a page without a server
    if (kept || IS_STATIC) {
      if (kept) replace(byId("state"), kept.content.cloneNode(true));
      byId("state").dataset.at = at;
      return;
    }
    const near = byId(`e${at}`) || at === Number(this.slider.min);
    try {
      const made = await page(`${near ? this.form.dataset.state : this.form.dataset.page}&at=${at}`, signal);
      if (!near) {
        replace(byId("conversation"), made.getElementById("conversation"));
        replace(byId("extras"), made.getElementById("extras"));
      }
      const state = byId("state");
      const open = byId("own-state")?.open;
      replace(state, near ? made.body : made.getElementById("state"));
      if (byId("own-state")) byId("own-state").open = open ?? true;
      state.dataset.at = at;
      if (!near) byId("conversation").removeAttribute("data-follows");
      history.replaceState(null, "", `${this.form.dataset.page}&at=${at}`);
      this.mark();
    } catch (problem) {
      if (problem.name !== "AbortError") tell("The state cannot be read now.");
    }
  }
}

// Artifacts that were saved after the event are not of that time.
function artifactsAt(at) {
  for (const each of document.querySelectorAll("[data-since]")) each.hidden = Number(each.dataset.since) > at;
}

function toEnd() {
  byId("end").scrollIntoView({ block: "end" });
}

const when = byId("when");
const point = when ? new Point(when) : null;
// On a narrow screen the slider stays in view, and the state unfolds on demand.
if (when && matchMedia("(max-width: 60rem)").matches) {
  for (const each of document.querySelectorAll(".side details[open]")) each.open = false;
}
// A session opens at its end, where something may happen, unless the address says where.
const follows = document.querySelector("[data-follows]");
if (follows && !location.hash && byId("end")) {
  history.scrollRestoration = "manual";
  toEnd();
  // Images that are loaded late move the end, until the reader scrolls.
  const late = new ResizeObserver(toEnd);
  late.observe(follows);
  setTimeout(() => late.disconnect(), 3000);
  for (const each of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    addEventListener(each, () => late.disconnect(), { once: true, passive: true });
  }
}
document.querySelectorAll("[data-live]").forEach((shown) => new Live(shown));
byId("find")?.addEventListener("change", (change) => {
  if (change.target.matches("select, [type=checkbox]")) byId("find").requestSubmit();
});

// --- Light and dark.

const THEMES = { system: "◐", light: "○", dark: "●" };

function theme(step) {
  const root = document.documentElement;
  const names = Object.keys(THEMES);
  const now = names[(names.indexOf(root.dataset.theme ?? "system") + step) % names.length];
  if (now === "system") delete root.dataset.theme;
  else root.dataset.theme = now;
  const button = byId("theme");
  button.textContent = THEMES[now];
  button.title = button.ariaLabel = `Colours: ${now === "system" ? "those of the system" : now}`;
  try {
    localStorage.setItem("explore-theme", now);
  } catch { /* storage is turned off */ }
}

theme(0);
byId("theme").addEventListener("click", () => theme(1));
byId("help").addEventListener("click", () => byId("keys").showModal());

// --- Keys.

let error = null; // that was shown last

// The one after it or, if the reader has moved on, after the beginning of the window.
function nextError() {
  const all = [...document.querySelectorAll("article.failed")];
  const box = error?.getBoundingClientRect();
  const here = box && box.bottom > 0 && box.top < innerHeight;
  const next = here ? all.indexOf(error) + 1 : all.findIndex((each) => each.getBoundingClientRect().top > 0);
  error = all[next] ?? all[0];
  if (error) error.scrollIntoView({ block: "start" });
  else tell("There is no error on this page.");
}

const KEYS = {
  "/": () => { byId("q")?.focus(); byId("q")?.select(); },
  "?": () => byId("keys").showModal(),
  t: () => theme(1),
  g: () => document.querySelector("article.event")?.scrollIntoView({ block: "start" }),
  G: () => byId("end") && toEnd(),
  e: nextError,
  o: () => {
    const all = [...document.querySelectorAll("article details:not([data-load])")];
    const open = all.some((each) => !each.open);
    for (const each of all) each.open = open;
  },
  "[": () => document.querySelector("a[rel=prev]")?.click(),
  "]": () => document.querySelector("a[rel=next]")?.click(),
};

document.addEventListener("keydown", (key) => {
  if (key.ctrlKey || key.metaKey || key.altKey || key.target.matches("input, textarea, select")) return;
  if (!Object.hasOwn(KEYS, key.key) || byId("keys").open) return;
  key.preventDefault();
  KEYS[key.key]();
});
