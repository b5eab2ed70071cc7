"use strict";
// The page is whole without this: links open what they lead to, all can be opened, nodes be found.
(() => {
  const nodes = [...document.querySelectorAll("article.node")];
  const openTo = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const visits = target.querySelectorAll(":scope > details.visit");
    if (visits.length === 1) visits[0].open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openTo);
  openTo();
  const tools = document.querySelector(".tools");
  if (!tools) return;
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    const open = event.target.dataset ? event.target.dataset.open : undefined;
    if (open === undefined) return;
    for (const node of nodes) {
      if (node.hidden) continue;
      for (const each of node.querySelectorAll("details.visit")) each.open = Boolean(open);
    }
  });
  const find = document.getElementById("find");
  const found = document.getElementById("found");
  if (!find) return;
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    let count = 0;
    for (const node of nodes) {
      node.hidden = Boolean(wanted) && !node.dataset.name.includes(wanted);
      count += node.hidden ? 0 : 1;
    }
    found.textContent = wanted ? `${count} of ${nodes.length}` : "";
  });
})();
