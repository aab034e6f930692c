// Keeps an open page true: parts that the service made anew take the place of the old ones. Nothing else needs a script.

import { Stream } from "./stream.js";

const MOST_LINES = 1000;
const TIMES_MS = 10000;
const AGAIN_MS = 200;
const shown = new Map();
const newest = new Map();
const view = document.body.dataset.view;
const log = document.querySelector("[data-log]");
let send = null;

function receive(event) {
  if (event.status) connection(event.status);
  if (event.parts) for (const [id, html] of Object.entries(event.parts)) place(id, html);
  if (event.lines) append(event.lines);
  if (event.over && log) log.dataset.over = "yes";
}

// Parts

function place(id, html) {
  if (id === "gone") return notice(html, "gone");
  newest.set(id, html);
  const old = document.getElementById(id);
  if (!old || shown.get(id) === html) return;
  // A button that is being pressed must not be taken away from under the finger; it is let go soon.
  if (old.querySelector(":active")) return void setTimeout(() => newest.get(id) === html && place(id, html), AGAIN_MS);
  shown.set(id, html);
  const focused = focusIn(old);
  const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
  old.innerHTML = html;
  for (const one of open) document.getElementById(one)?.setAttribute("open", "");
  focused?.()?.focus({ preventScroll: true });
  const say = old.querySelector("[data-say]")?.dataset.say;
  const heard = document.getElementById("heard");
  if (say && heard && heard.textContent !== say) heard.textContent = say;
}

// How to find what has the focus again, when the part that it is in was made anew. Buttons have ids; links lead somewhere.
function focusIn(old) {
  const one = document.activeElement;
  if (!old.contains(one)) return null;
  if (one.id) return () => document.getElementById(one.id);
  const alike = () => [...old.querySelectorAll(one.tagName)].filter((other) => other.getAttribute("href") === one.getAttribute("href"));
  const number = alike().indexOf(one);
  return () => alike()[number];
}

// Logs

function append(lines) {
  if (!log) return;
  const last = Number(log.dataset.after);
  const wasAtEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
  const rows = lines.filter((line) => line.number > last).slice(-MOST_LINES).map(row);
  if (!rows.length) return;
  log.append(...rows);
  log.dataset.after = lines.at(-1).number;
  while (log.childElementCount > MOST_LINES) log.firstElementChild.remove();
  if (wasAtEnd) log.scrollTop = log.scrollHeight;
}

function row(line) {
  const made = document.createElement("li");
  const time = document.createElement("span");
  made.className = line.level;
  time.className = "at";
  time.textContent = line.at.slice(11, 19);
  made.append(time, ` ${line.text}`);
  return made;
}

// Times

function age(seconds) {
  const distance = Math.abs(seconds);
  if (distance < 5) return "now";
  const [, divisor, unit] = [[60, 1, "s"], [3600, 60, " min"], [172800, 3600, " h"], [Infinity, 86400, " days"]].find(([limit]) => distance < limit);
  const said = `${Math.floor(distance / divisor)}${unit}`;
  return seconds > 0 ? `in ${said}` : `${said} ago`;
}

function times() {
  if (document.hidden) return;
  for (const one of document.querySelectorAll("time[datetime]")) {
    const text = age((Date.parse(one.dateTime) - Date.now()) / 1000);
    if (one.textContent !== text) one.textContent = text;
  }
}

// The connection

const TROUBLE = {
  lost: "The service does not answer. This page goes on by itself when it is back.",
  expired: "Your login has ended.",
};

function connection(status) {
  const text = TROUBLE[status];
  const bar = document.getElementById("connection");
  if (!text) bar.hidden = bar.dataset.kind !== "gone";
  else notice(text, status);
}

function notice(text, kind) {
  const bar = document.getElementById("connection");
  if (bar.dataset.kind === kind && !bar.hidden) return;
  const link = document.createElement("a");
  const here = location.pathname + location.search;
  const others = location.pathname.startsWith("/crawls") ? ["/crawls", "All crawls"] : ["/jobs", "All jobs"];
  link.href = kind === "expired" ? `/login?next=${encodeURIComponent(here)}` : kind === "gone" ? others[0] : here;
  link.textContent = { expired: "Log in again", gone: others[1] }[kind] ?? "Load the page again";
  bar.dataset.kind = kind;
  bar.replaceChildren(`${text} `, link);
  bar.hidden = false;
}

// Watching, as long as somebody looks

function connect() {
  try {
    const port = new SharedWorker("/static/worker.js", { type: "module", name: "inchworm" }).port;
    port.onmessage = ({ data }) => receive(data);
    port.start();
    return (message) => port.postMessage(message);
  } catch {
    const stream = new Stream(receive);
    return ({ watch, after, drop }) => (watch ? stream.watch(watch, after) : (drop ?? []).forEach((one) => stream.drop(one)));
  }
}

function names() {
  return [view, log && !log.dataset.over ? `log:${log.dataset.log}` : ""].filter(Boolean);
}

function watch() {
  if (send || document.hidden || !names().length) return;
  send = connect();
  for (const name of names()) send({ watch: name, after: name.startsWith("log:") ? Number(log.dataset.after) : null });
}

function leave() {
  send?.({ drop: names() });
  send = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? leave() : watch()));
addEventListener("pagehide", leave);
addEventListener("pageshow", watch);
setInterval(times, TIMES_MS);
if (log) log.scrollTop = log.scrollHeight;
watch();
