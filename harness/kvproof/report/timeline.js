"use strict";
// Draws the story: a lane for each thing, a column for each step. Cells that do not change are one element.
const story = JSON.parse(document.getElementById("story").textContent);
const by = (id) => document.getElementById(id);
const LAST = story.steps.length;
const MOST_ON_PAPER = 24; // more columns cannot be read there: the lanes are left out, the commands are not
const cellOf = (picture, lane) => (picture && picture[lane] >= 0 ? story.cells[picture[lane]] : null);
const make = (tag, kind, text) => {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  if (text !== undefined) element.textContent = text;
  return element;
};

let at = LAST;
let wanted = [];
const heads = [];
const spans = []; // {element, lane, from, to}
const labels = [];

function drawHeader() {
  const bad = story.property !== null;
  by("headline").textContent = bad ? "REFUTED " + story.property : "All accounted for";
  by("headline").classList.toggle("bad", bad);
  by("sentence").textContent = story.sentence;
  by("about").textContent = story.title + " · " + LAST + (LAST === 1 ? " command" : " commands");
}

function drawGrid() {
  const grid = make("div", "grid");
  grid.style.gridTemplateColumns = "minmax(11ch, max-content) repeat(" + (LAST + 1) + ", minmax(5ch, 22ch))";
  grid.style.setProperty("--columns", LAST + 1);
  grid.classList.toggle("long", LAST > MOST_ON_PAPER);
  const corner = make("div", "corner", "step");
  corner.style.gridRow = 1;
  corner.style.gridColumn = 1;
  grid.append(corner);
  for (let step = 0; step <= LAST; step++) {
    const head = make("div", "head" + (story.property !== null && step === LAST ? " broken" : ""), step ? String(step) : "start");
    head.style.gridRow = 1;
    head.style.gridColumn = step + 2;
    head.title = step ? story.steps[step - 1][0] : "before the first command";
    head.dataset.step = step;
    heads.push(head);
    grid.append(head);
  }
  let row = 1;
  let group = null;
  story.lanes.forEach(([name, about], lane) => {
    if (about !== group) {
      group = about;
      row += 1;
      const title = make("div", "group", about + "s");
      title.style.gridRow = row;
      title.style.gridColumn = 1;
      grid.append(title);
    }
    row += 1;
    const label = make("button", "lane" + (story.disputed.includes(name) ? " disputed" : ""), name);
    label.style.gridRow = row;
    label.style.gridColumn = 1;
    label.title = "show " + name + " alone, or everything again";
    label.dataset.lane = name;
    labels.push(label);
    grid.append(label);
    let from = 0;
    for (let step = 1; step <= LAST + 1; step++) {
      if (step <= LAST && story.pictures[step][lane] === story.pictures[from][lane]) continue;
      const cell = cellOf(story.pictures[from], lane);
      if (cell) {
        const element = make("div", "cell " + cell[1]);
        element.append(make("span", "", cell[0]));
        element.style.gridRow = row;
        element.style.gridColumnStart = from + 2;
        element.style.gridColumnEnd = step + 2;
        element.title = cell[2];
        element.dataset.step = from;
        grid.append(element);
        spans.push({ element, lane, from, to: step - 1 });
      }
      from = step;
    }
  });
  grid.addEventListener("click", (event) => {
    const target = event.target.closest("[data-lane], [data-step]");
    if (target === null) return;
    if (target.dataset.lane !== undefined) {
      by("filter").value = by("filter").value.trim() === target.dataset.lane ? "" : target.dataset.lane;
      filter();
    } else if (target.dataset.step !== undefined) {
      go(Number(target.dataset.step));
    }
  });
  by("timeline").append(grid);
}

// What is on paper alone: there is no stepping there.
function drawCommands() {
  story.steps.forEach(([command, note], step) => {
    const line = make("li", story.property !== null && step + 1 === LAST ? "broken" : "", command + " ");
    line.append(make("small", "", note));
    by("commands").append(line);
  });
}

function isWanted(lane) {
  return !wanted.length || wanted.includes(lane) || wanted.includes(lane.split(" ")[0]);
}

function filter() {
  const words = by("filter").value.trim();
  const names = story.lanes.map(([name]) => name);
  // "job 1" is one name: the longest names are taken first
  let rest = " " + words + " ";
  wanted = [];
  for (const name of [...names].sort((a, b) => b.length - a.length)) {
    if (rest.includes(" " + name + " ")) {
      wanted.push(name);
      rest = rest.replace(" " + name + " ", "  ");
    }
  }
  for (const word of rest.split(/\s+/)) if (names.some((name) => name.startsWith(word + " "))) wanted.push(word);
  labels.forEach((label, lane) => label.classList.toggle("dim", !isWanted(names[lane])));
  for (const span of spans) span.element.classList.toggle("dim", !isWanted(names[span.lane]));
  drawStep();
}

function addRow(table, kind, cells) {
  const row = make("tr", kind);
  for (const text of cells) row.append(make("td", "", text));
  table.append(row);
}

function drawStep() {
  const box = by("step");
  box.replaceChildren();
  const broken = story.property !== null && at === LAST;
  const title = make("h2", "", at ? at + ". " + story.steps[at - 1][0] + " " : "Before the first command");
  if (at) title.append(make("small", "", story.steps[at - 1][1]));
  box.append(title);
  const before = at ? story.pictures[at - 1] : story.pictures[0];
  const sides = broken && story.contract && story.target;
  const after = sides ? story.contract : story.pictures[at];
  const table = make("table");
  const head = make("tr");
  for (const text of sides ? ["", "before", "contract", "target"] : ["", "before", "after"]) head.append(make("th", "", text));
  table.append(head);
  let foremost = true;
  const rows = [[], [], []];
  story.lanes.forEach(([name], lane) => {
    if (!isWanted(name)) return;
    const words = (picture) => (cellOf(picture, lane) || ["", "", "nothing"])[2];
    const cells = sides ? [name, words(before), words(after), words(story.target)] : [name, words(before), words(after)];
    if (sides && after[lane] !== story.target[lane]) {
      rows[0].push(["parted" + (foremost ? " foremost" : ""), cells]);
      foremost = false;
    } else if (before[lane] !== after[lane]) rows[1].push(["changed", cells]);
    else if (cellOf(after, lane)) rows[2].push(["", cells]);
  });
  for (const [kind, cells] of rows.flat()) addRow(table, kind, cells);
  if (broken && !sides && story.facts.length) {
    const facts = make("table");
    const line = make("tr");
    for (const text of ["", "contract", "target"]) line.append(make("th", "", text));
    facts.append(line);
    for (const fact of story.facts) addRow(facts, "parted", ["", ...fact]);
    box.append(facts);
  }
  box.append(table);
  if (broken && story.reasons) box.append(make("p", "reasons", story.reasons));
}

function go(step) {
  const previous = at;
  at = Math.max(0, Math.min(LAST, step));
  heads[previous].classList.remove("at");
  heads[at].classList.add("at");
  for (const span of spans) {
    const here = span.from <= at && at <= span.to;
    if (here !== (span.here || false)) {
      span.here = here;
      span.element.classList.toggle("at", here);
    }
  }
  by("slider").value = at;
  by("place").textContent = "step " + at + " of " + LAST;
  const box = by("timeline");
  const head = heads[at];
  const label = labels.length ? labels[0].offsetWidth : 0;
  if (head.offsetLeft - label < box.scrollLeft) box.scrollLeft = head.offsetLeft - label;
  if (head.offsetLeft + head.offsetWidth > box.scrollLeft + box.clientWidth) {
    box.scrollLeft = head.offsetLeft + head.offsetWidth - box.clientWidth;
  }
  drawStep();
}

drawHeader();
drawGrid();
drawCommands();
by("slider").max = LAST;
by("slider").addEventListener("input", () => go(Number(by("slider").value)));
by("first").addEventListener("click", () => go(0));
by("back").addEventListener("click", () => go(at - 1));
by("on").addEventListener("click", () => go(at + 1));
by("last").addEventListener("click", () => go(LAST));
by("filter").addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") return;
  const keys = { ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - 10, PageDown: at + 10, Home: 0, End: LAST };
  if (event.key in keys) {
    go(keys[event.key]);
    event.preventDefault();
  } else if (event.key === "/") {
    by("filter").focus();
    event.preventDefault();
  } else if (event.key === "Escape") {
    by("filter").value = "";
    filter();
  }
});
go(LAST);
