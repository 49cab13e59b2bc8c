"use strict";
// Without this script all can be read. It adds a field that filters, and times in the reader's zone.
(() => {
  const words = document.body.dataset;
  const written = (time) => time.toLocaleString("sv-SE");
  const local = (times) => {
    const [first, ...others] = times.map(written);
    const sameDay = (text) => text.slice(0, 10) === first.slice(0, 10);
    return [first, ...others.map((text) => (sameDay(text) ? text.slice(11) : text))].join(words.to);
  };
  const add = (parent, text) => {
    const added = document.createElement("span");
    added.className = "quiet local";
    added.textContent = text;
    parent.append(added);
  };
  const whens = [...document.querySelectorAll(".when")];
  const timesOf = (when) => [...when.querySelectorAll("time")].map((each) => new Date(each.dateTime));
  if (whens.some((when) => timesOf(when).some((time) => time.getTimezoneOffset() !== 0))) {
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
