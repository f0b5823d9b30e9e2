"use strict";
// Filters, sorts and opens what is there; writes text and attributes, never markup.
(() => {
  const byId = (id) => document.getElementById(id);

  const theme = byId("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : dark.matches;
  };
  const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  showTheme();

  // what a link leads to may be folded away
  const open = () => {
    const target = byId(location.hash.slice(1));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) {
      if (e.tagName === "DETAILS") e.open = true;
    }
    const summary = target.tagName === "DETAILS" ? target.firstElementChild : target;
    summary.focus({ preventScroll: true });
    target.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  // the same link once more changes no hash
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) open();
  });
  open();

  const table = byId("rows");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const search = byId("search");
  const source = byId("source");
  const kinds = Array.from(document.querySelectorAll("button[data-kind]"));
  let kind = "";

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits =
        (!kind || row.dataset.kind === kind) &&
        (!source.value || row.dataset.source === source.value) &&
        words.every((word) => text.includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    byId("count").textContent = `${shown} of ${rows.length} rows`;
    byId("nothing").hidden = shown > 0;
  };
  byId("filter").hidden = false;
  search.addEventListener("input", filter);
  source.addEventListener("change", filter);
  for (const button of kinds) {
    button.addEventListener("click", () => {
      kind = button.dataset.kind;
      for (const other of kinds) {
        other.setAttribute("aria-pressed", String(other === button));
      }
      filter();
    });
  }

  const heads = Array.from(table.tHead.rows[0].cells);
  const value = (row, column, isNumber) => {
    const cell = row.cells[column];
    if (!isNumber) return cell.textContent.trim().toLowerCase();
    return cell.dataset.value ? Number(cell.dataset.value) : -Infinity;
  };
  heads.forEach((head, column) => {
    const isNumber = head.dataset.sort === "number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // figures start with the largest, which is the worst for most of them
      const first = isNumber ? "descending" : "ascending";
      const second = isNumber ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const sorted = rows.slice().sort((a, b) => {
        const x = value(a, column, isNumber);
        const y = value(b, column, isNumber);
        return x < y ? -sign : x > y ? sign : 0;
      });
      body.append(...sorted);
    });
  });
})();
