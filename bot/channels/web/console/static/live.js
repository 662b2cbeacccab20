// Parts with data-live are loaded anew when something happens. The server renders them, so that there is one place that
// says how things look; nothing that a customer wrote becomes markup here.

import { say } from "./notices.js";

const AGAIN = 2000; // milliseconds until a lost stream is asked for again
const REST = 400; // at least so long between two refreshes

// Follow the event stream for as long as the page is open. `notify` gets each event.
export async function followEvents(path, notify) {
  let last = "";
  for (;;) {
    try {
      last = await followOnce(path, last, notify);
    } catch (error) {
      if (!(error instanceof TypeError) && error.name !== "AbortError") throw error;
      if (error.name !== "AbortError") lost(true);
    }
    await new Promise((resume) => setTimeout(resume, AGAIN));
    await visible();
  }
}

// A browser has few connections to a server, so that hidden pages follow only if they notify.
function visible() {
  if (!document.hidden || notifies()) return Promise.resolve();
  return new Promise((resume) => document.addEventListener("visibilitychange", resume, { once: true }));
}

const notifies = () => "Notification" in window && Notification.permission === "granted";

async function followOnce(path, last, notify) {
  const stop = new AbortController();
  const leave = () => document.hidden && !notifies() && stop.abort();
  document.addEventListener("visibilitychange", leave);
  try {
    const headers = last ? { "Last-Event-ID": last } : {};
    const answer = await fetch(path, { headers, signal: stop.signal });
    if (answer.status === 401) leaveFor(`${document.body.dataset.console}/login`);
    if (!answer.ok) throw new TypeError(answer.statusText);
    lost(false);
    soon(); // for what happened before the stream was there
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return last;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const lines = Object.fromEntries(event.split("\n").map((line) => line.split(/: (.*)/s, 2)));
        if (!lines.data) continue; // a sign of life
        last = lines.id;
        notify(lines.event, JSON.parse(lines.data));
        soon();
      }
    }
  } finally {
    document.removeEventListener("visibilitychange", leave);
  }
}

function lost(isLost) {
  const place = document.getElementById("lost");
  place.textContent = isLost ? document.body.dataset.lost : "";
  place.hidden = !isLost;
}

let planned = 0;
let begun = 0; // refreshes
let held = 0; // forms that are being sent, and a page that is being left
let asking = new AbortController();

function soon() {
  planned ||= setTimeout(() => {
    planned = 0; // what happens from here on needs another refresh
    if (held) soon();
    else refresh().catch(() => {}); // the stream says if the server is gone
  }, REST);
}

// Refresh nothing until `act` has ended: what the page shows may be gone then, and its answer says what comes next.
export async function unrefreshed(act) {
  held++;
  asking.abort();
  try {
    return await act();
  } finally {
    held--;
    if (asking.signal.aborted) soon();
  }
}

// Go to another page. This one is not refreshed any more, unless the reader comes back to it.
export function leaveFor(address) {
  held++;
  asking.abort();
  addEventListener("pageshow", () => held--, { once: true });
  location.assign(address);
}

// Load the live parts anew. A form that is sent meanwhile stops it.
export async function refresh() {
  if (!document.querySelector("[data-live]")) return;
  asking = new AbortController();
  try {
    await load(asking.signal);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

async function load(signal) {
  const mine = ++begun;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal });
  if (answer.redirected) return leaveFor(answer.url);
  if (answer.status === 404) return say(document.body.dataset.gone, { isBad: true });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== begun) return; // a newer one shows more
  const focused = document.activeElement?.id;
  for (const part of document.querySelectorAll("[data-live]")) {
    const its = fresh.getElementById(part.id);
    if (its) merge(part, its);
  }
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

// Make `old` like `fresh`, and leave alone what is the same, opened by the reader, or being written.
function merge(old, fresh) {
  for (const each of fresh.querySelectorAll("details[id]")) {
    if (document.getElementById(each.id)?.open) each.open = true;
  }
  if (old.isEqualNode(fresh) || isWritten(old)) return;
  if (old.tagName !== fresh.tagName || !old.id || !isKeyed(old) || !isKeyed(fresh)) {
    const only = old.children.length === 1 && fresh.children.length === 1 && !old.id.startsWith("step-");
    if (only && isKeyed(old.firstElementChild) && isKeyed(fresh.firstElementChild)) {
      return mergeKeyed(old.firstElementChild, fresh.firstElementChild);
    }
    return old.replaceWith(fresh);
  }
  mergeKeyed(old, fresh);
}

const isKeyed = (list) => "keyed" in (list.dataset ?? {});

// Merge two lists whose members have ids: a picture that has been loaded is not loaded again.
function mergeKeyed(old, fresh) {
  for (const gone of [...old.children]) if (!fresh.querySelector(`:scope > #${CSS.escape(gone.id)}`)) gone.remove();
  [...fresh.children].forEach((each, place) => {
    const known = each.id ? old.querySelector(`:scope > #${CSS.escape(each.id)}`) : null;
    if (known) merge(known, each);
    else old.insertBefore(each, old.children[place] ?? null);
  });
}

function isWritten(part) {
  return [...part.querySelectorAll("input:not([type=hidden]), textarea, select")].some(hasChanged);
}

function hasChanged(field) {
  if (field.tagName === "SELECT") return [...field.options].some((each) => each.selected !== each.defaultSelected && each.index > 0);
  return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}
