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
  if (whens.some((when) => timesOf(when).some((time) => time.getTimezoneOffset() !== 0))) {
    for (const svg of document.querySelectorAll("svg.timeline, svg.narrow")) addTicks(svg);
    for (const caption of document.querySelectorAll("figcaption.times")) add(caption, ` [${words.ticks}]`);
    for (const when of whens) add(when, ` [${local(timesOf(when))} ${words.local}]`);
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const line = document.createElement("p");
    document.querySelector("header").append(line);
    add(line, `${words.zone} ${zone}`);
  }

  const entries = [...document.querySelectorAll("main tbody tr, .index li, article")]
    .filter((entry) => !entry.parentElement.closest("article, #words"))
    .map((entry) => [entry, entry.textContent.toLowerCase()]);
  const causes = [...document.querySelectorAll(".cause")];
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = words.filter;
  field.setAttribute("aria-label", words.filter);
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const [entry, text] of entries) entry.hidden = !text.includes(wanted);
    for (const cause of causes)
      cause.hidden = entries.every(([entry]) => entry.hidden || !cause.contains(entry));
  });
  document.querySelector("nav").append(field);
})();
