// The table of docs/structures/results.md: reads results.json and shows the rows that the selectors choose.
// The URL fragment holds the choice: #function=exp&first=Banded&second=Dense&structured=1
"use strict";

document.addEventListener("DOMContentLoaded", async () => {
  const form = document.getElementById("structure-results");
  if (!form) return;
  const LIMIT = 100;
  const body = form.querySelector("tbody");
  const count = form.querySelector("output");
  const { first, second, structured } = form.elements;
  const search = form.elements["function"];
  const file = form.dataset.file;

  let rows;
  try {
    const response = await fetch(file);
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    rows = rowsOf(await response.json());
  } catch (error) {
    count.replaceChildren("The results cannot be read: ", `${error.message}. `, link(file, "Open the JSON file"));
    return;
  }

  // One row for each use and each combination of operands.
  function rowsOf(page) {
    const found = [];
    for (const use of page.uses) {
      const seconds = use.second ?? [""];
      use.results.forEach((number, i) => {
        if (number < 0) return;
        const one = page.structures[Math.floor(i / seconds.length)];
        const written = seconds[i % seconds.length];
        const other = written === page.same ? one : written;
        if (written !== page.same || !seconds.includes(one)) {
          const [result, how] = page.outcomes[number];
          found.push({ name: use.function, code: use.code, one, other, structured: Boolean(use.structured), result, how });
        }
      });
    }
    return found;
  }

  function link(address, text) {
    const a = document.createElement("a");
    a.href = address;
    a.textContent = text;
    return a;
  }

  // Exact names come first, then names that begin with the text.
  function rank(row, text) {
    const name = row.name.split(".").pop();
    if (!text || row.name === text || name === text) return 0;
    return name.startsWith(text) ? 1 : 2;
  }

  function show() {
    const text = search.value.trim().toLowerCase();
    const chosen = rows.filter(
      (row) =>
        row.structured === structured.checked &&
        (!first.value || row.one === first.value) &&
        (!second.value || row.other === (second.value === "none" ? "" : second.value)) &&
        (row.name.toLowerCase().includes(text) || row.code.toLowerCase().includes(text)),
    );
    chosen.sort((a, b) => rank(a, text) - rank(b, text));
    body.replaceChildren(...chosen.slice(0, LIMIT).map(line));
    const all = chosen.length.toLocaleString("en");
    count.textContent = chosen.length > LIMIT ? `The first ${LIMIT} of ${all} results` : `${all} results`;
  }

  function line(row) {
    const tr = document.createElement("tr");
    const cells = [row.code, [row.one, row.other].filter(Boolean).join("; "), row.result, row.how || "–"];
    ["function", "operands", "result", "how"].forEach((title, i) => {
      const td = document.createElement("td");
      td.dataset.title = title;
      const text = document.createElement(title === "function" ? "code" : "span");
      text.textContent = cells[i];
      td.append(text);
      if (title === "how" && row.how.includes("dense form")) tr.className = "dense-form";
      tr.append(td);
    });
    return tr;
  }

  // A value of the fragment that is no option stands for the first option that begins with it: Triangular.
  function choose(select, value) {
    const options = [...select.options];
    const option = options.find((o) => o.value === value) ?? options.find((o) => value && o.value.startsWith(value));
    select.value = option ? option.value : "";
  }

  function readFragment() {
    const given = new URLSearchParams(location.hash.slice(1));
    search.value = given.get("function") ?? "";
    choose(first, given.get("first") ?? "");
    choose(second, given.get("second") ?? "");
    structured.checked = given.get("structured") === "1";
    second.disabled = structured.checked;
    show();
  }

  function writeFragment() {
    second.disabled = structured.checked;
    if (structured.checked) second.value = "";
    const chosen = new URLSearchParams();
    for (const field of [search, first, second]) if (field.value) chosen.set(field.name, field.value);
    if (structured.checked) chosen.set("structured", "1");
    history.replaceState(null, "", `#${chosen}`);
    show();
  }

  form.addEventListener("input", writeFragment);
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", readFragment);
  readFragment();
});
