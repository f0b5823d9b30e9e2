"use strict";
// Filters, sorts and opens what is there; writes text and attributes, never markup.
(() => {
  const byId = (id) => document.getElementById(id);

  const { dataset } = document.documentElement;
  const theme = byId("theme");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (dataset.theme ? dataset.theme === "dark" : dark.matches);
  const showTheme = () => theme.setAttribute("aria-pressed", String(isDark()));
  theme.hidden = false;
  theme.onclick = () => {
    dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  };
  dark.onchange = showTheme;
  showTheme();

  // what a link leads to may be folded away
  const open = () => {
    const target = byId(location.hash.slice(1));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    const summary = target.tagName === "DETAILS" ? target.firstElementChild : target;
    summary.focus({ preventScroll: true });
    target.scrollIntoView();
  };
  window.onhashchange = open;
  // the same link once more changes no hash
  document.onclick = ({ target }) => {
    if (target.closest("a[href^='#']")?.hash === location.hash) open();
  };
  open();

  const table = byId("rows");
  if (!table) return;
  const rows = Array.from(table.tBodies[0].rows);
  const search = byId("search");
  const source = byId("source");
  const kinds = Array.from(document.querySelectorAll("button[data-kind]"));
  let kind = "";

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden =
        (kind && row.dataset.kind !== kind) ||
        (source.value && row.dataset.source !== source.value) ||
        !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    byId("count").textContent = `${shown} of ${rows.length} rows`;
    byId("nothing").hidden = shown > 0;
  };
  byId("filter").hidden = false;
  search.oninput = source.onchange = filter;
  for (const button of kinds) {
    button.onclick = () => {
      kind = button.dataset.kind;
      kinds.forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      filter();
    };
  }

  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    // figures start with the largest, which is the worst for most of them
    const isNumber = head.dataset.sort === "number";
    const orders = isNumber ? ["descending", "ascending"] : ["ascending", "descending"];
    const value = ({ cells }) => {
      const cell = cells[column];
      if (!isNumber) return cell.textContent.trim().toLowerCase();
      return cell.dataset.value ? Number(cell.dataset.value) : -Infinity;
    };
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.onclick = () => {
      const order = orders[Number(head.getAttribute("aria-sort") === orders[0])];
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const compare = (x, y) => (x < y ? -sign : x > y ? sign : 0);
      table.tBodies[0].append(...rows.toSorted((a, b) => compare(value(a), value(b))));
    };
  });
})();
