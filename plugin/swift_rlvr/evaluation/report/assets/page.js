// The page of `swift-rlvr report`: curves, and a browser of completions. What a model wrote only ever becomes text
// (textContent), never HTML. Data stands in blocks, elements with the id block-..., of compressed JSON.
"use strict";

const $ = (selector) => document.querySelector(selector);
const ROW = 52; // pixels of a row of the list, as in page.css
const HIGHEST = 15e6; // pixels: browsers draw nothing below some height of an element
const LONGEST = 20000; // characters of a completion that are shown at first
const CARDS = 48, CARD_CHARACTERS = 3000, MARKS = 500;
const SLICE = 80; // milliseconds of work before the browser may draw
// Would be invisible, or change how what follows is drawn: control characters, marks of direction, lone surrogates.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

let page, columns, rewardNames, count, hasSteps;
const texts = [], prompts = [], questions = [], golds = [];
const plots = [];

/** An element with text and attributes; children are elements or texts. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The JSON of a block; its element is removed unless it is to be kept. */
async function block(name, keep = false) {
  let element;
  // The script begins before the browser has read the whole page.
  while (!(element = document.getElementById(`block-${name}`)) || (document.readyState === "loading" && !element.nextElementSibling)) {
    if (!element && document.readyState !== "loading") throw new Error("a part of the file is missing: it was not written or copied completely");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const encoded = element.textContent;
  if (!keep) element.remove();
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(encoded)
    : Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

const pause = () => new Promise((resolve) => {
  const channel = new MessageChannel(); // setTimeout waits for 4 ms
  channel.port1.onmessage = resolve;
  channel.port2.postMessage(0);
});

const number = (value) => value == null ? "none" : String(Math.round(value * 1e4) / 1e4);
const whole = (value) => value.toLocaleString("en");

// ---- Curves -------------------------------------------------------------------------------------------------------

function drawCurves() {
  const steps = [...new Set(page.panels.flatMap((panel) => panel.curves.flatMap((curve) => curve.steps)))];
  steps.sort((a, b) => a - b);
  const place = new Map(steps.map((step, i) => [step, i]));
  const spread = (curve, values) => {
    const all = new Array(steps.length).fill(null);
    curve.steps.forEach((step, i) => { all[place.get(step)] = values[i]; });
    return all;
  };
  // An evaluation has none, and of a run without a logged step the notes say so.
  $("#curves").hidden = $("nav a[href='#curves']").hidden = !page.panels.length;
  for (const plot of plots.splice(0)) plot.destroy();
  $("#panels").replaceChildren(...page.panels.map((panel) => drawPanel(panel, steps, spread)));
}

function drawPanel(panel, steps, spread) {
  const style = getComputedStyle(document.body);
  const color = (i) => style.getPropertyValue(`--curve-${i % 8}`).trim();
  const grid = { stroke: style.getPropertyValue("--grid").trim(), width: 1 };
  const axis = { stroke: style.getPropertyValue("--text").trim(), grid, ticks: grid, font: "12px system-ui, sans-serif" };
  const series = [{ label: "step", value: (_, step) => step == null ? "" : whole(step) }], data = [steps];
  panel.curves.forEach((curve, i) => {
    const dash = curve.dashed ? [6, 4] : undefined;
    const sparse = curve.steps.length < 40;
    const name = `${curve.label}`;
    series.push({ label: name, stroke: color(curve.color), width: 1, alpha: sparse ? 0.6 : 0.3, dash, spanGaps: true,
      points: { show: sparse, size: 5 }, value: valueAt });
    series.push({ label: `${name}, mean`, stroke: color(curve.color), width: 2.5, dash, spanGaps: true,
      points: { show: false }, class: "mean", value: () => "" });
    data.push(spread(curve, curve.values), spread(curve, curve.smooth));
  });
  const figure = make("figure", { tabindex: 0, "aria-label": `${panel.title}, ${panel.unit}. ${lastValues(panel)}` },
    make("figcaption", {}, make("b", {}, panel.title), ` ${panel.unit}`));
  const box = figure.appendChild(make("div", { class: panel.curves.length > 1 ? "plot" : "plot only" })); // one line: the title says what it is
  const low = Math.min(0, ...panel.curves.flatMap((curve) => curve.values));
  const range = (_, min, max) => panel.top && max <= panel.top ? [low, panel.top] : [low, max > low ? max + (max - low) * 0.05 : low + 1];
  const last = (plot) => { if (plot.cursor.idx == null) plot.setLegend({ idx: plot.data[0].length - 1 }, false); };
  const width = () => Math.max(240, box.clientWidth);
  requestAnimationFrame(() => {
    if (!box.isConnected) return;
    const plot = new uPlot({
      width: width(), height: 200, series, legend: { live: true },
      axes: [{ ...axis, space: 60, size: 34, incrs: WHOLE, values: (_, splits) => splits.map(whole) },
        { ...axis, size: 56, values: (_, splits, place, space, step) => splits.map((value) => tick(value, step)) }],
      scales: { x: { time: false }, y: { range } },
      cursor: { sync: { key: "steps", scales: ["x", null] }, drag: { x: true, y: false }, y: false },
      hooks: { setScale: [(own, key) => { if (key === "x") zoomAll(own); }], setCursor: [last],
        draw: [(own) => drawAlarms(own, panel)],
        setSeries: [(own, i) => { if (i > 0 && i % 2 && own.series[i + 1].show !== own.series[i].show) own.setSeries(i + 1, { show: own.series[i].show }); }] },
    }, data, box);
    plots.push(plot);
    last(plot);
    new ResizeObserver(() => { if (plot.width !== width()) plot.setSize({ width: width(), height: 200 }); }).observe(box);
    box.addEventListener("dblclick", () => zoom(null));
    figure.addEventListener("keydown", (event) => panelKey(event, plot));
  });
  return figure;
}

/** Distances between ticks of an axis of steps: 1, 2, 5, 10, ... */
const WHOLE = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3));

/** The label of a tick, with as many decimals as tell it from the next one, `step` away. */
function tick(value, step) {
  let decimals = 0;
  while (decimals < 12 && Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) > 1e-6) decimals++;
  return decimals > 4 ? value.toPrecision(2) : value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** What the legend shows of a curve: its value under the pointer, without one its last value. */
function valueAt(plot, value, i) {
  if (plot.cursor.idx == null) value = plot.data[i].findLast((each) => each != null);
  return value == null ? "–" : String(+value.toPrecision(4));
}

const lastValues = (panel) => panel.curves.map((curve) => `${curve.label} ${number(curve.values.at(-1))}`).join(", ");

let zooming = false;
function zoomAll(from) {
  if (zooming || !plots.includes(from)) return;
  zooming = true;
  const { min, max } = from.scales.x;
  for (const plot of plots) if (plot !== from) plot.setScale("x", { min, max });
  zooming = false;
  const steps = from.data[0];
  $("#all-steps").disabled = min <= steps[0] && max >= steps.at(-1);
}

function zoom(range) {
  const plot = plots[0];
  if (!plot) return;
  const steps = plot.data[0];
  plot.setScale("x", range ?? { min: steps[0], max: steps.at(-1) });
}

function panelKey(event, plot) {
  const steps = plot.data[0], at = plot.cursor.idx ?? steps.length - 1;
  const { min, max } = plot.scales.x;
  const closer = (factor) => ({ min: Math.max(steps[0], steps[at] - (max - min) * factor / 2), max: Math.min(steps.at(-1), steps[at] + (max - min) * factor / 2) });
  const move = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
  if (move) pointAt(Math.max(0, Math.min(steps.length - 1, at + move)), plot);
  else if (event.key === "+" || event.key === "=") zoom(closer(0.5));
  else if (event.key === "-") zoom(closer(2));
  else if (event.key === "0" || event.key === "Escape") zoom(null);
  else if (event.key === "Enter") showStep(steps[at]);
  else return;
  event.preventDefault();
}

/** Moves the cursor of all panels to a step. */
function pointAt(index, plot) {
  for (const each of plots) each.setCursor({ left: each.valToPos(plot.data[0][index], "x"), top: 0 });
}

function drawAlarms(plot, panel) {
  for (const alarm of page.alarms) {
    if (panel.runs != null && panel.runs !== alarm.run) continue;
    const x = Math.round(plot.valToPos(alarm.step, "x", true));
    if (!(x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width)) continue;
    plot.ctx.save();
    plot.ctx.strokeStyle = getComputedStyle(document.body).getPropertyValue("--alarm");
    plot.ctx.setLineDash([3, 3]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, plot.bbox.top);
    plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    plot.ctx.stroke();
    plot.ctx.restore();
  }
}

function listAlarms() {
  $("#alarms").hidden = !page.alarms.length;
  for (const alarm of page.alarms) {
    const item = make("li", {}, page.runs.length > 1 ? make("b", {}, `${page.runs[alarm.run]}: `) : "");
    const button = item.appendChild(make("button", { type: "button" }, `step ${alarm.step}`));
    button.addEventListener("click", () => showStep(alarm.step, alarm.run));
    item.append(` ${alarm.message.replace(/^step \d+: /, "")}`);
    if (alarm.completions.length) {
      const more = item.appendChild(make("details", {}, make("summary", {}, `${alarm.completions.length} completions`)));
      for (const text of alarm.completions) more.append(textBox(text, "", CARD_CHARACTERS));
    }
    $("#alarms ul").append(item);
  }
}

// ---- Filter -------------------------------------------------------------------------------------------------------

let matches = new Uint32Array(0), chosen = -1, query = 0, steady;

function showStep(step, run) {
  const form = $("#filter");
  form.reset();
  form.first.value = form.last.value = step;
  if (run != null && page.runs.length > 1) form.run.value = run;
  filter();
  $("#completions").scrollIntoView();
  $("#list").focus();
}

/** What the form asks for, as a test of one completion's figures and one of its text; null where all pass. */
function wanted(form) {
  const { step, run, prompt } = columns;
  const limit = (field, other) => field.value === "" || Number.isNaN(field.valueAsNumber) ? other : field.valueAsNumber;
  const first = limit(form.first, -Infinity), last = limit(form.last, Infinity);
  const low = limit(form.low, null), high = limit(form.high, null);
  const values = form.reward.value === "advantage" ? columns.advantage : columns.rewards[form.reward.value];
  const [reasonName, reason] = form.reason.value.split("\n");
  const reasons = columns.reasons[reasonName], reasonNumber = page.names.indexOf(reason);
  const heldOut = form.held_out.value === "" ? null : Number(form.held_out.value);
  const ofTask = form.task.value === "" ? null : page.names.indexOf(form.task.value);
  const ofRun = form.run.value === "" ? null : Number(form.run.value);
  const repeated = form.repeated.checked ? repeatedPrompts() : null;
  const none = form.low.value === "" && form.high.value === "" || !values;
  return (i) => step[i] >= first && step[i] <= last && (ofRun == null || run[i] === ofRun)
    && (heldOut == null || columns.held_out[i] === heldOut)
    && (none || (values[i] != null && (low == null || values[i] >= low) && (high == null || values[i] <= high)))
    && (!reasons || reasons[i] === reasonNumber) && (ofTask == null || columns.task[i] === ofTask) && (!repeated || repeated[prompt[i]]);
}

let manySteps = null;
function repeatedPrompts() {
  if (manySteps) return manySteps;
  const first = new Map();
  manySteps = new Uint8Array(Math.max(0, ...page.promptStarts) + 1001);
  for (let i = 0; i < count; i++) {
    const place = `${columns.run[i]} ${columns.step[i]}`, prompt = columns.prompt[i];
    if (!first.has(prompt)) first.set(prompt, place);
    else if (first.get(prompt) !== place) manySteps[prompt] = 1;
  }
  return manySteps;
}

/** How often a character is in the texts, by its code, counted in some of them. */
let frequencies = null;
function frequency(character) {
  if (!frequencies) {
    frequencies = new Map();
    for (let i = 0; i < count; i += Math.ceil(count / 200)) {
      for (const each of texts[i]?.slice(0, 2000) ?? "") frequencies.set(each, (frequencies.get(each) ?? 0) + 1);
    }
  }
  return frequencies.get(character) ?? 0;
}

/**
 * A test whether a text holds another one. It looks for the rarest character first: browsers find one character, or a
 * few from a rare one on, many times as fast as a longer text whose beginning is frequent.
 */
function searcher(text, cased) {
  if (!text) return null;
  if (!cased && /[^\x00-\x7f]/.test(text)) {
    const pattern = new RegExp(escapePattern(text), "i");
    return (value) => pattern.test(value);
  }
  const lower = text.toLowerCase(), size = text.length;
  const variants = (character) => cased ? [character] : [...new Set([character.toLowerCase(), character.toUpperCase()])];
  const often = [...text].length === size ? Array.from(text, (character) => variants(character).reduce((sum, each) => sum + frequency(each), 0)) : [0];
  const rarest = often.indexOf(Math.min(...often));
  let end = rarest + 1; // of what is written in one way only
  while (end < Math.min(size, rarest + 6) && (cased || variants(text.slice(rarest, end + 1)).length === 1)) end++;
  const anchors = variants(text.slice(rarest, end));
  const holds = (value, at) => cased ? value.startsWith(text, at) : value.slice(at, at + size).toLowerCase() === lower;
  return (value) => anchors.some((anchor) => {
    for (let at = value.indexOf(anchor); at >= 0; at = value.indexOf(anchor, at + 1)) {
      if (at >= rarest && holds(value, at - rarest)) return true;
    }
    return false;
  });
}

const escapePattern = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Finds what passes, in slices, so that typing is never held up; a later call ends an earlier one. */
async function filter() {
  const own = ++query, form = $("#filter");
  const passes = wanted(form), text = form.text.value;
  const holds = searcher(text, form.cased.checked);
  const found = new Uint32Array(count);
  const asked = new Uint8Array(questions.length); // of each question: 1 it holds the text, 2 it does not
  const inQuestion = (prompt) => {
    if (!asked[prompt]) asked[prompt] = holds(questions[prompt]) ? 1 : 2;
    return asked[prompt] === 1;
  };
  let size = 0, unread = 0, began = performance.now(), drawn = false;
  for (let i = 0; i < count; i++) {
    if (passes(i)) {
      if (!holds) found[size++] = i;
      else if (texts[i] === undefined) unread++;
      else if (holds(texts[i]) || inQuestion(columns.prompt[i])) found[size++] = i;
    }
    if ((i & 255) === 255 && performance.now() - began > SLICE) {
      if (!drawn && size > 20) { show(found.slice(0, size), `at least ${whole(size)} …`); drawn = true; }
      await pause();
      if (own !== query) return;
      began = performance.now();
    }
  }
  show(found.slice(0, size), size || unread ? `${whole(size)} of ${whole(count)} completions` + (unread ? `; ${whole(unread)} are still loading` : "")
    : `None of ${whole(count)} completions matches.`);
  if (page.total > count) $("#count").append(` (${whole(page.total)} in the run${page.runs.length > 1 ? "s" : ""})`);
  steady = { size, unread };
  remember();
}

/** The filter and the chosen completion as the page's address has them after #, so that a link opens the same. */
function address() {
  const words = new URLSearchParams();
  for (const [name, value] of new FormData($("#filter"))) if (value !== "") words.set(name, value);
  if (!words.has("low") && !words.has("high")) words.delete("reward");
  if (current >= 0 && named) words.set("completion", placeOf(current));
  return words.size ? `#${words}` : "";
}

/** RUN.HELD_OUT.STEP.NUMBER of a completion, its number among those of the step: the same while a run grows. */
function placeOf(i) {
  const group = [columns.run[i], columns.held_out[i], columns.step[i]];
  let before = 0;
  for (let other = 0; other < i; other++) before += isOf(other, group);
  return [...group, before].join(".");
}

function completionAt(place) {
  const [run, heldOut, step, number] = place.split(".").map(Number);
  for (let i = 0, left = number; i < count; i++) if (isOf(i, [run, heldOut, step]) && left-- === 0) return i;
  return -1;
}

const isOf = (i, [run, heldOut, step]) => columns.step[i] === step && columns.run[i] === run && columns.held_out[i] === heldOut;

let remembering;
function remember() {
  clearTimeout(remembering); // browsers refuse many changes of the address in a row
  remembering = setTimeout(() => {
    const words = address();
    if (words || location.hash.includes("=")) history.replaceState(null, "", words || location.pathname + location.search);
  }, 300);
}

/** Filters, and shows the completion, as the page's address says. */
async function follow() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (!location.hash.includes("=")) return; // another place of the page, such as #curves
  for (const field of $("#filter").elements) {
    if (field.type === "checkbox") field.checked = words.has(field.name);
    else if (field.name) field.value = words.get(field.name) ?? field.options?.[0].value ?? "";
  }
  $("#completions").scrollIntoView();
  await filter();
  const i = completionAt(words.get("completion") ?? "");
  if (matches.includes(i)) choose(matches.indexOf(i));
  else if (i >= 0) await showDetail(i);
}

function fillForm() {
  const form = $("#filter");
  form.run.append(make("option", { value: "" }, "all"), ...page.runs.map((run, i) => make("option", { value: i }, run)));
  $(".several-runs").hidden = page.runs.length < 2;
  const tasks = [...new Set(columns.task)].filter((task) => task >= 0).map((task) => page.names[task]).sort();
  form.task.append(make("option", { value: "" }, "all"), ...tasks.map((task) => make("option", { value: task }, task)));
  $(".tasks").hidden = tasks.length < 2;
  $(".held-out").hidden = !columns.held_out.includes(1);
  for (const field of document.querySelectorAll(".steps")) field.hidden = !hasSteps;
  for (const name of [...rewardNames, "advantage"]) form.reward.append(make("option", { value: name }, name));
  form.reason.append(make("option", { value: "" }, "any"));
  for (const [name, numbers] of Object.entries(columns.reasons)) {
    const counts = new Map();
    for (const each of numbers) counts.set(each, (counts.get(each) ?? 0) + 1);
    const group = form.reason.appendChild(make("optgroup", { label: name }));
    for (const [reason, times] of [...counts].sort((a, b) => b[1] - a[1])) {
      if (reason >= 0) group.append(make("option", { value: `${name}\n${page.names[reason]}` }, `${page.names[reason]} (${whole(times)})`));
    }
  }
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
}

// ---- List ---------------------------------------------------------------------------------------------------------

function show(found, message) {
  matches = found;
  $("#count").textContent = message;
  const height = Math.min(HIGHEST, matches.length * ROW);
  $("#rows").style.height = `${height}px`;
  chosen = matches.indexOf(current);
  drawRows();
}

let current = -1; // the completion whose details are shown
let named = false; // whether the page's address names it

const visibleRows = () => Math.ceil($("#list").clientHeight / ROW);
const ratio = () => Math.max(1, (matches.length * ROW - $("#list").clientHeight) / (HIGHEST - $("#list").clientHeight));
const stretched = () => matches.length * ROW > HIGHEST ? ratio() : 1;

function drawRows() {
  const list = $("#list"), top = list.scrollTop * stretched();
  const first = Math.max(0, Math.floor(top / ROW) - 4), last = Math.min(matches.length, first + visibleRows() + 9);
  const rows = [];
  for (let place = first; place < last; place++) {
    const row = drawRow(place);
    row.style.top = `${Math.round(place * ROW - top + list.scrollTop)}px`;
    rows.push(row);
  }
  $("#rows").replaceChildren(...rows);
  if (chosen >= 0) list.setAttribute("aria-activedescendant", `row-${chosen}`);
  else list.removeAttribute("aria-activedescendant");
}

function drawRow(place) {
  const i = matches[place];
  const row = make("div", { id: `row-${place}`, role: "option", class: "row", "aria-selected": place === chosen,
    "aria-posinset": place + 1, "aria-setsize": matches.length });
  const head = row.appendChild(make("span", { class: "head" }, stepOf(i)));
  if (page.runs.length > 1) head.append(make("span", { class: `run run-${columns.run[i] % 8}` }, page.runs[columns.run[i]]));
  if (columns.held_out[i]) head.append(make("span", { class: "hint" }, "held-out"));
  head.append(verdict(i));
  const reason = firstReason(i);
  if (reason) head.append(make("span", {}, reason));
  head.append(make("span", { class: "size" }, `${whole(columns.length[i])} chars`));
  row.append(make("span", { class: "question" }, questions[columns.prompt[i]] ?? "…"));
  row.addEventListener("click", () => choose(place));
  return row;
}


/** Of a reward: a verifier's is good where it is full, others have no colour. */
const paid = (name, value) => name in page.verifiers ? make("span", { class: `badge ${value == null ? "none" : value >= page.verifiers[name] ? "good" : "bad"}` }, number(value))
  : make("span", { class: "badge" }, number(value));

/** Whether a completion is right, for the verifier of its task. */
function verdict(i) {
  const [kind, text] = { 1: ["good", "right"], 0: ["bad", "wrong"] }[columns.success[i]] ?? ["none", "not graded"];
  return make("span", { class: `badge ${kind}` }, text);
}

const stepOf = (i) => hasSteps ? `step ${whole(columns.step[i])}` : `completion ${whole(i + 1)}`;
const firstReason = (i) => page.names[columns.why[i]] ?? "";

function choose(place) {
  if (!matches.length) return;
  chosen = Math.max(0, Math.min(matches.length - 1, place));
  const list = $("#list"), factor = stretched(), top = list.scrollTop * factor;
  if (chosen * ROW < top) list.scrollTop = chosen * ROW / factor;
  else if ((chosen + 1) * ROW > top + list.clientHeight) list.scrollTop = ((chosen + 1) * ROW - list.clientHeight) / factor;
  drawRows();
  showDetail(matches[chosen]);
}

function listKey(event) {
  const moves = { ArrowUp: -1, ArrowDown: 1, PageUp: -visibleRows(), PageDown: visibleRows(), Home: -Infinity, End: Infinity };
  if (event.key === "Enter") $("#detail").focus();
  else if (event.key in moves) choose(chosen < 0 && event.key !== "End" ? 0 : chosen + moves[event.key]);
  else return;
  event.preventDefault();
}

// ---- One completion -----------------------------------------------------------------------------------------------

/** A text as it is: what cannot be seen is written as in Python, and what was searched for is marked. */
function textBox(text, search = "", longest = LONGEST) {
  const box = make("pre", { dir: "ltr" });
  const fill = (shown) => { box.replaceChildren(); appendText(box, shown, search); };
  if (text.length <= longest) { fill(text); return box; }
  const tail = Math.floor(longest / 4);
  const outer = make("div", {}, box);
  fill(text.slice(0, longest - tail));
  const all = outer.appendChild(make("button", { type: "button" }, `show ${whole(text.length - longest)} more characters`));
  const end = outer.appendChild(make("pre", { dir: "ltr" }));
  appendText(end, text.slice(-tail), search);
  all.addEventListener("click", () => { fill(text); all.remove(); end.remove(); });
  return outer;
}

function appendText(box, text, search) {
  const escaped = (value) => value.charCodeAt(0) < 256 ? `\\x${value.charCodeAt(0).toString(16).padStart(2, "0")}` : `\\u${value.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const plain = (target, part) => {
    let from = 0;
    for (const match of part.matchAll(HIDDEN)) {
      target.append(part.slice(from, match.index), make("span", { class: "hidden-character" }, escaped(match[0])));
      from = match.index + match[0].length;
    }
    target.append(part.slice(from));
  };
  let from = 0;
  if (search) {
    const flags = $("#filter").cased.checked ? "g" : "gi";
    const pattern = new RegExp(escapePattern(search), flags);
    let marked = 0;
    for (const match of text.matchAll(pattern)) {
      if (++marked > MARKS) break;
      plain(box, text.slice(from, match.index));
      plain(box.appendChild(make("mark")), match[0]);
      from = match.index + match[0].length;
    }
  }
  plain(box, text.slice(from));
}

function blockOf(starts, i) {
  let low = 0, high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= i) low = middle; else high = middle - 1;
  }
  return low;
}

const explained = new Map(); // the last blocks that were read
async function explanation(i) {
  const place = blockOf(page.starts, i);
  if (!explained.has(place)) {
    if (explained.size > 3) explained.delete(explained.keys().next().value);
    explained.set(place, block(`explained-${place}`, true));
  }
  return (await explained.get(place))[i - page.starts[place]];
}

/** picked: by a person, and not because the page begins with it; the address then names it. */
async function showDetail(i, picked = true) {
  current = i;
  named = picked;
  remember();
  const rules = await explanation(i);
  while (texts[i] === undefined || prompts[columns.prompt[i]] === undefined) {
    $("#detail").replaceChildren(make("p", { class: "hint" }, "loading …"));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  if (current !== i) return;
  const prompt = columns.prompt[i], search = $("#filter").text.value;
  const title = make("h3", { class: "title" }, stepOf(i));
  if (columns.held_out[i]) title.append(make("span", { class: "hint" }, " held-out"));
  if (page.runs.length > 1) title.append(make("span", { class: `run run-${columns.run[i] % 8}` }, page.runs[columns.run[i]]));
  const figures = make("dl");
  const add = (name, value) => figures.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  add("verdict", verdict(i));
  for (const name of rewardNames) if (columns.rewards[name][i] != null) add(name, paid(name, columns.rewards[name][i]));
  for (const [name, numbers] of Object.entries(columns.reasons)) if (numbers[i] >= 0) add(`reason of ${name}`, page.names[numbers[i]]);
  if (columns.advantage[i] != null) add("advantage", number(columns.advantage[i]));
  add("characters", whole(columns.length[i]));
  const whole_prompt = make("details", {}, make("summary", {}, "full prompt"));
  whole_prompt.addEventListener("toggle", () => { if (whole_prompt.childElementCount === 1) whole_prompt.append(textBox(prompts[prompt])); });
  const question = make("p", { class: "question", dir: "ltr" });
  appendText(question, questions[prompt], search);
  $("#detail").replaceChildren(title, question, whole_prompt, figures, textBox(texts[i], search),
    make("h4", {}, "How it was graded"), ...drawAllRules(rules, i), ...samePrompt(i));
  $("#detail").scrollTop = 0;
  if (picked && matchMedia("(max-width: 800px)").matches) $("#detail").scrollIntoView({ block: "nearest" });
}

/** The rules of each reward; the gold answer stands beside what the verifier read, or alone where no rules are known. */
function drawAllRules(rules, i) {
  const gold = golds[columns.prompt[i]];
  const verifier = rules.findIndex(([set]) => page.rules[set].reward in page.verifiers);
  const shown = rules.map((each, place) => drawRules(each, i, place === Math.max(0, verifier) ? gold : ""));
  if (shown.length) return shown;
  const nothing = make("p", { class: "hint" }, "This page has no rules for this completion.");
  return gold ? [make("p", {}, "Gold answer:"), textBox(gold, "", 2000), nothing] : [nothing];
}

function drawRules([set, reward, reason, judged, details], i, gold) {
  const { reward: name, outcome, rules } = page.rules[set];
  const box = make("section", { class: "rules" });
  const head = box.appendChild(make("p", {}, make("b", {}, name), " ", paid(name, reward), ` ${reason}`));
  const column = columns.rewards[name];
  if (!column) head.append(make("span", { class: "hint" }, " is not a reward of this run"));
  else if (column[i] == null && columns.held_out[i]) head.append(make("span", { class: "hint" }, " is not logged for held-out tasks"));
  else if (column[i] !== (reward == null ? null : Math.round(reward * 1e4) / 1e4)) head.append(make("span", { class: "warning" }, ` logged: ${number(column[i])}; the run had other parameters, or another version`));
  if (judged === null) box.append(make("p", { class: "hint" }, "It found nothing to judge in this completion."));
  else if (judged === 1) box.append(make("p", { class: "hint" }, "It judged the whole completion."));
  if (gold || typeof judged === "string") {
    const beside = box.appendChild(make("div", { class: "beside" }));
    if (typeof judged === "string") beside.append(make("div", {}, make("p", {}, "Judged answer:"), textBox(judged, "", 2000)));
    if (gold) beside.append(make("div", { class: "gold" }, make("p", {}, "Gold answer:"), textBox(gold, "", 2000)));
  }
  const list = box.appendChild(make("ol"));
  rules.forEach((rule, place) => {
    const state = { 1: "passed", 0: "failed" }[outcome[place]] ?? (details[place] ? "" : "not checked");
    const item = list.appendChild(make("li", { class: state.replaceAll(" ", "-") }, rule));
    if (details[place]) { item.append(": "); appendText(item, details[place], ""); }
    if (state) item.append(make("span", { class: "state" }, ` ${state}`));
  });
  return box;
}

/** All completions of the same prompt side by side, those of an earlier step first. */
function samePrompt(i) {
  const prompt = columns.prompt[i], same = [];
  for (let other = 0; other < count; other++) if (columns.prompt[other] === prompt) same.push(other);
  if (same.length < 2) return [];
  const steps = new Set(same.map((other) => `${columns.run[other]} ${columns.step[other]}`));
  const many = same.length > CARDS ? `; ${CARDS} of them shown, evenly spaced` : "";
  const from = hasSteps ? ` from ${whole(steps.size)} ${steps.size === 1 ? "step" : "steps"}` : "";
  const heading = `Same prompt: ${whole(same.length)} completions${from}${many}`;
  const stride = Math.max(1, same.length / CARDS);
  const cards = make("div", { class: "cards", tabindex: 0, role: "region", "aria-label": heading });
  for (let place = 0; place < same.length; place += stride) {
    const other = same[Math.floor(place)];
    const head = make("p", {}, make("b", {}, stepOf(other)), " ");
    if (page.runs.length > 1) head.append(make("span", { class: `run run-${columns.run[other] % 8}` }, page.runs[columns.run[other]]), " ");
    head.append(verdict(other));
    head.append(` ${firstReason(other)}`);
    const text = texts[other] === undefined ? make("p", { class: "hint" }, "not loaded yet") : textBox(texts[other], "", CARD_CHARACTERS);
    cards.append(make("section", { class: other === i ? "card chosen" : "card" }, head, text));
  }
  return [make("h4", {}, heading), cards];
}

// ---- Start --------------------------------------------------------------------------------------------------------

async function readTexts() {
  const read = async (names, starts, keep) => {
    for (let place = 0; place < starts.length; place++) keep(await block(`${names}-${place}`), starts[place]);
  };
  await read("prompts", page.promptStarts, (values, start) => values.forEach(([prompt, question, gold], k) => {
    prompts[start + k] = prompt;
    questions[start + k] = question;
    golds[start + k] = gold;
  }));
  drawRows();
  document.body.dataset.state = "listed";
  await read("texts", page.starts, (values, start) => { for (let k = 0; k < values.length; k++) texts[start + k] = values[k]; });
  frequencies = null; // now of all texts
  document.body.dataset.state = "read";
  if (steady?.unread || $("#filter").text.value) filter();
}

/** Shows the first completion of the list where the address names none. */
async function showFirst() {
  if (current >= 0 || !matches.length) return;
  chosen = 0;
  drawRows();
  await showDetail(matches[0], false);
}

async function start() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old: DecompressionStream is missing");
  page = await block("page");
  drawCurves();
  listAlarms();
  $("#all-steps").addEventListener("click", () => zoom(null));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCurves);
  columns = await block("columns");
  count = columns.step?.length ?? 0;
  hasSteps = columns.step?.some(Boolean) ?? false; // completions of an evaluation are of no step
  $("#filter").hidden = $("#browser").hidden = !count;
  if (!count) { $("#count").textContent = "There are no completions in the folder."; document.body.dataset.state = "read"; return; }
  const judges = (name) => name in page.verifiers;
  rewardNames = Object.keys(columns.rewards).sort((a, b) => judges(b) - judges(a) || (a < b ? -1 : 1));
  fillForm();
  $("#list").addEventListener("scroll", () => requestAnimationFrame(drawRows));
  $("#list").addEventListener("keydown", listKey);
  addEventListener("resize", drawRows);
  addEventListener("hashchange", follow);
  await filter();
  await Promise.all([readTexts(), follow().then(showFirst)]);
}

start().catch((error) => {
  $("#problem").textContent = `The page could not be shown: ${error.message}`;
  $("#problem").hidden = false;
});
