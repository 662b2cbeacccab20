// Forms with data-api are sent to it as JSON.
//
// data-api     the path; {name} stands for the field of this name
// data-method  POST if it is not given
// data-then    "refresh": load the live parts anew; "reload": the page; otherwise the address to go to, in which {name}
//              stands for a field of the answer
// data-said    what to say when it is done, unless the answer has a field "said"; {name} as in data-then
// data-undo    the path that takes it back, for a button; {name} as in data-then
// data-shows   what to show of the answer in the form's <output>, such as a secret that is told once
// data-resets  empty the form when it is done
// data-quiet   say and refresh nothing when it is done
// data-once    sending it twice counts once
// data-confirm a question to confirm before it is sent
// A field has a data-type if it is no text: "number", "lines" (a list, one a line), "words" (a list, by commas), "each"
// (a checkbox whose value is in the list of its name if it is checked).
// An empty field with data-optional is left out. A name such as "action.kind" stands for a field of an object.

import { leaveFor, refresh, unrefreshed } from "./live.js";
import { keep, kept, say } from "./notices.js";

const texts = document.body.dataset;

export function serveForms() {
  const notice = kept();
  if (notice) tell(notice.text, notice.undo);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.api) return;
    event.preventDefault();
    send(form, event.submitter);
  });
}

// The code of a log-in link stands behind the #. It is sent at once, unless somebody is logged in already: a link from a
// stranger must not change who one is without a click.
export function logInByLink() {
  const form = document.getElementById("login");
  const code = location.hash.slice(1);
  if (!form || !code) return;
  form.elements.code.value = code;
  form.hidden = false;
  history.replaceState(null, "", location.pathname);
  if (!("asks" in form.dataset)) send(form, form.querySelector("button"));
}

async function send(form, button) {
  const busy = [...form.querySelectorAll("button")];
  if (busy.some((each) => each.ariaBusy === "true")) return;
  const question = button?.dataset.confirm ?? form.dataset.confirm;
  if (question && !confirm(question)) return;
  complain(form, "");
  for (const each of busy) each.ariaBusy = "true";
  try {
    const fields = fieldsOf(form, button);
    const path = form.dataset.api.replace(/\{(\w+)\}/g, (_, name) => {
      const value = fields[name];
      delete fields[name];
      return encodeURIComponent(value);
    });
    await unrefreshed(async () => {
      const answer = await ask(form.dataset.method ?? "POST", path, fields, keyOf(form));
      if (answer.status === 401 && texts.events) return; // it leaves for the log-in page
      const body = await answer.json().catch(() => ({}));
      if (!answer.ok) return complain(form, body.detail ?? answer.statusText, body.field);
      delete form.dataset.key;
      await done(form, body);
    });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch says so if nobody answers
    complain(form, texts.unreachable);
  } finally {
    for (const each of busy) each.ariaBusy = "false";
  }
}

// Ask the server. A page whose session is over leaves for the log-in page; the answer to a program would be English.
export async function ask(method, path, body, key = "") {
  const headers = { "X-Requested-By": "console" };
  const options = { method, headers };
  if (method !== "DELETE" && body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  if (key) headers["Idempotency-Key"] = key;
  const answer = await fetch(path, options);
  if (answer.status === 401 && texts.events) leaveFor(`${texts.console}/login`);
  return answer;
}

// The values of the fields of a form, or of a part of it.
export function fieldsOf(form, button) {
  const fields = {};
  for (const field of [...form.elements, button]) {
    const isOther = field?.tagName === "BUTTON" && field !== button;
    if (!field?.name || field.matches(":disabled") || isOther || (field.type === "radio" && !field.checked)) continue;
    if (field.value === "" && "optional" in field.dataset) continue;
    const [name, inside] = field.name.split(".");
    if (inside) (fields[name] ??= {})[inside] = valueOf(field);
    else if (field.dataset.type === "each") fields[name] = [...(fields[name] ?? []), ...(field.checked ? [field.value] : [])];
    else fields[name] = valueOf(field);
  }
  return fields;
}

function valueOf(field) {
  if (field.type === "checkbox") return field.checked;
  if (field.dataset.type === "number") return Number(field.value);
  const parts = { lines: "\n", words: /[,，、]/ }[field.dataset.type];
  if (parts) return field.value.split(parts).map((each) => each.trim()).filter(Boolean);
  return field.value;
}

// Names one request, also when it is sent again because its answer was lost.
function keyOf(form) {
  if (!("once" in form.dataset)) return "";
  form.dataset.key ||= Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16)).join("");
  return form.dataset.key;
}

async function done(form, body) {
  const then = form.dataset.then ?? "refresh";
  if (then === "reload") return location.reload();
  const said = body.said ?? filled(form.dataset.said ?? texts.done, body);
  const undo = filled(form.dataset.undo ?? "", body, encodeURIComponent);
  if (then !== "refresh") {
    if (undo) keep({ text: said, undo });
    return leaveFor(filled(then, body, encodeURIComponent));
  }
  if ("resets" in form.dataset) form.reset();
  if (form.dataset.shows) {
    form.querySelector("output").textContent = filled(form.dataset.shows, body);
  }
  for (const field of form.elements) settle(field);
  if ("quiet" in form.dataset) return;
  await refresh();
  document.dispatchEvent(new CustomEvent("answered", { detail: { form, body } })); // the form may be replaced by now
  if (said) tell(said, undo, body.alert === true);
}

// What was sent is no longer being written, so that a refresh may replace it.
function settle(field) {
  if ("defaultValue" in field && field.type !== "file") field.defaultValue = field.value;
  if ("defaultChecked" in field) field.defaultChecked = field.checked;
  for (const option of field.options ?? []) option.defaultSelected = option.selected;
}

// Say what was done, with a button that takes it back: it asks the path `undo`, "" for none.
function tell(text, undo = "", isBad = false) {
  say(text, undo ? { button: texts.undo, act: () => takeBack(undo) } : { isBad });
}

async function takeBack(path) {
  const answer = await ask("POST", path).catch(() => null);
  if (!answer) return say(texts.unreachable, { isBad: true });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) return say(body.detail ?? answer.statusText, { isBad: true });
  await refresh();
  say(texts.undone);
}

// Fill in the fields of an answer: {name}.
export function filled(text, body, write = inWords) {
  return text.replace(/\{(\w+)\}/g, (_, name) => write(body[name]));
}

const TIME = /^\d{4}-(\d\d-\d\d)T(\d\d:\d\d)(:\d\d).*$/;

function inWords(value) {
  if (!Array.isArray(value)) return String(value).replace(TIME, "$1 $2"); // a time, as pages write it
  const withSeconds = value.some((each) => (TIME.exec(each)?.[3] ?? ":00") !== ":00");
  return value.map((each) => (withSeconds ? String(each).replace(TIME, "$1 $2$3") : inWords(each))).join(" · ");
}

// Say what is wrong: beside the field that it is about if there is one, else at the end of the form.
export function complain(form, text, about = "") {
  for (const old of form.querySelectorAll("[role=alert]")) settleComplaint(form, old);
  if (!text) return;
  if (!form.isConnected || form.closest("[data-live]")) return say(text, { isBad: true }); // a live part may be replaced
  const place = document.createElement("p");
  place.setAttribute("role", "alert");
  place.textContent = text;
  const name = about.split(".")[1];
  const field = name && [...form.elements].find((each) => each.name === name && !each.matches(":disabled, [type=hidden]"));
  if (!field) return form.append(place);
  place.id = `wrong-${name}`;
  const isOne = !["checkbox", "radio"].includes(field.type);
  if (isOne) field.after(place);
  else field.closest("fieldset").append(place);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", `${place.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
  field.focus();
}

function settleComplaint(form, place) {
  for (const field of form.querySelectorAll("[aria-invalid]")) {
    field.removeAttribute("aria-invalid");
    const others = field.getAttribute("aria-describedby").replace(place.id, "").trim();
    if (others) field.setAttribute("aria-describedby", others);
    else field.removeAttribute("aria-describedby");
  }
  place.remove();
}
