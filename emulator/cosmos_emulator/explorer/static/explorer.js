// Everything that comes from the store is put into the page as text, never as HTML.
"use strict";

const part = (id) => document.getElementById(id);
let chosen = null; // { database, container }
let continuation = null;
let ran = ""; // the query whose pages are shown
let shown = 0;
let charge = 0;

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", body: JSON.stringify(body), headers: { "x-explorer": "1", "content-type": "application/json" },
  };
  const answer = await fetch(`/_explorer/${path}`, options);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

function element(name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  return made;
}

function complain(text) {
  part("problem").textContent = text;
  part("problem").hidden = !text;
}

async function load() {
  const databases = await ask("catalog");
  part("empty").hidden = databases.length > 0;
  part("databases").replaceChildren(...databases.map((database) => {
    const entry = element("li");
    const list = element("ul");
    for (const definition of database.containers) {
      const button = element("button", definition.id);
      button.type = "button";
      button.addEventListener("click", () => choose(database.id, definition, button));
      const item = element("li");
      item.append(button);
      list.append(item);
    }
    entry.append(element("strong", database.id), list);
    return entry;
  }));
}

function choose(database, definition, button) {
  chosen = { database, container: definition.id };
  for (const each of document.querySelectorAll("nav ul ul button")) each.removeAttribute("aria-current");
  button.setAttribute("aria-current", "true");
  part("title").textContent = `${database} / ${definition.id}`;
  const ttl = definition.defaultTtl === undefined ? "" : `, time to live ${definition.defaultTtl}`;
  part("definition").textContent = `partition key ${definition.partitionKey.paths.join(", ")}${ttl}`;
  part("form").hidden = false;
  part("query").value = "SELECT * FROM c";
  guarded(run)();
}

function run() {
  continuation = null;
  shown = charge = 0;
  ran = part("query").value;
  part("documents").replaceChildren();
  return more();
}

async function more() {
  complain("");
  const answer = await ask("query", { ...chosen, query: ran, continuation });
  part("plan").hidden = !answer.plan;
  if (answer.error !== undefined) {
    part("summary").textContent = "";
    part("more").hidden = true;
    return complain(`${answer.status}: ${answer.error}`);
  }
  continuation = answer.continuation;
  shown += answer.documents.length;
  charge += answer.charge;
  part("summary").textContent = `${shown} ${shown === 1 ? "result" : "results"}${continuation ? " so far" : ""}, ${charge.toFixed(2)} RU`;
  part("more").hidden = !continuation;
  part("plan").querySelector("pre").textContent = JSON.stringify(answer.plan?.queryInfo, null, 2);
  for (const each of answer.documents) {
    const details = element("details");
    details.append(element("summary", each.line), element("pre", each.text));
    const item = element("li");
    item.append(details);
    part("documents").append(item);
  }
}

function guarded(action) {
  return (event) => {
    event?.preventDefault();
    action().catch((error) => complain(error.message));
  };
}

part("form").addEventListener("submit", guarded(run));
part("more").addEventListener("click", guarded(more));
part("reload").addEventListener("click", guarded(load));
part("query").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) guarded(run)(event);
});
guarded(load)();
