"use strict";
// Without this script all can be read. It adds a field that filters, and times in the reader's zone.
(() => {
  const words = document.body.dataset;
  const written = (time) => time.toLocaleString("sv-SE");
  // A date only where it is another than the one before it.
  const local = (times) => {
    let day = times[0].toISOString().slice(0, 10);
    const shown = times.map(written).map((text) => {
      const sameDay = text.slice(0, 10) === day;
      day = text.slice(0, 10);
      return sameDay ? text.slice(11) : text;
    });
    return shown.join(words.to);
  };
  const add = (parent, text) => {
    const added = document.createElement("span");
    added.className = "quiet local";
    added.textContent = text;
    parent.append(added);
  };
  // Below each time of a picture the same in the reader's zone, in the same form.
  const lineHeight = 13;
  const addTicks = (svg) => {
    for (const tick of svg.querySelectorAll("text[data-time]")) {
      const text = written(new Date(tick.dataset.time));
      const form = { 5: [11, 16], 8: [11, 19] }[tick.textContent.length] ?? [5, 16];
      const added = tick.cloneNode();
      added.setAttribute("y", Number(tick.getAttribute("y")) + lineHeight);
      added.textContent = text.slice(...form);
      tick.after(added);
    }
    const [x, y, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    svg.setAttribute("viewBox", [x, y, width, height + lineHeight].join(" "));
    svg.setAttribute("height", Number(svg.getAttribute("height")) + lineHeight);
  };
  const whens = [...document.querySelectorAll(".when")];
  const timesOf = (when) => [...when.querySelectorAll("time")].map((each) => new Date(each.dateTime));
  // The page has times of a zone of its own, which may be the reader's.
  const isOther = (when) => !when.querySelector("time").textContent.startsWith(written(timesOf(when)[0]));
  if (whens.some(isOther)) {
    for (const svg of document.querySelectorAll("svg.timeline, svg.narrow")) addTicks(svg);
    for (const caption of document.querySelectorAll("figcaption.times")) add(caption, ` [${words.ticks}]`);
    for (const when of whens) add(when, ` [${local(timesOf(when))} ${words.local}]`);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const line = document.createElement("p");
    document.querySelector("header").append(line);
    add(line, `${words.zone} ${zone}`);
  }

  const section = document.getElementById("verdict");
  const heading = section.querySelector("h2");
  const said = { heading: heading.textContent, level: section.className };
  // The client ids of a group are in its row, and hold for its cards.
  const clients = new Map([...document.querySelectorAll("[data-clients]")].map((row) => [row.dataset.group, row.dataset.clients]));
  const entries = [...document.querySelectorAll("main tbody tr, .index li, main > section .problem")]
    .filter((entry) => !entry.parentElement.closest(".problem, #words") && !entry.querySelector("[href^='#cause-']"))
    .map((entry) => [entry, `${entry.textContent} ${entry.dataset.clients ?? clients.get(entry.dataset.group) ?? ""}`.toLowerCase()]);
  // A row of the table of causes is there as long as any card of its cause is.
  const causes = [...document.querySelectorAll("tr [href^='#cause-']")]
    .map((link) => [link.closest("tr"), document.getElementById(link.hash.slice(1))]);
  const rows = [...entries, ...causes].map(([row]) => row);
  const lists = [...document.querySelectorAll(".cause, .list, .index, .scroll")]
    .filter((list) => !list.closest("#words, .problem"))
    .map((list) => [list, rows.filter((row) => list.contains(row))])
    .filter(([, inner]) => inner.length);
  const tiles = [...document.querySelectorAll("[data-of]")].map((tile) => [tile.querySelector("strong"), tile.dataset.of, tile.querySelector("strong").textContent]);
  const shown = (selector) =>
    [...document.querySelectorAll(selector)].filter((each) => !each.closest("[hidden]")).length;
  // What is left is judged as the whole is: by its worst.
  const judge = (wanted) => {
    for (const [figure, of, number] of tiles) figure.textContent = wanted ? shown(of) : number;
    const level = shown(".cause .problem.critical, #groups .is-critical") ? "critical"
      : shown(".cause .problem.warning, #groups .is-warning") ? "warning"
      : shown("#groups .is-incomplete") || "gaps" in section.dataset ? "incomplete"
      : shown("#begun .problem, #passed li, #groups .is-info") ? "info" : "ok";
    const any = entries.some(([entry]) => !entry.hidden);
    heading.textContent = !wanted ? said.heading : section.dataset[any ? level : "none"];
    section.className = !wanted ? said.level : `verdict ${any ? level : ""}`;
    for (const each of [...section.querySelectorAll("p, dl, h3, ul"), ...document.querySelectorAll(".night")])
      each.hidden = wanted !== "";
  };
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = words.filter;
  field.setAttribute("aria-label", words.filter);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const [entry, text] of entries) entry.hidden = !text.includes(wanted);
    for (const [row, section] of causes)
      row.hidden = entries.every(([entry]) => entry.hidden || !section.contains(entry));
    for (const [list, inner] of lists) {
      list.hidden = inner.every((row) => row.hidden);
      if (list.tagName === "DETAILS") list.open = wanted !== "";
    }
    judge(wanted);
  });
  document.querySelector("nav").append(field);

  // A link to a card that is closed opens it.
  const open = () => {
    const card = document.getElementById(location.hash.slice(1))?.closest("details");
    if (card) card.open = true;
  };
  addEventListener("hashchange", open);
  open();
})();
