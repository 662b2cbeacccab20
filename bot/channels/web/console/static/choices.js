// Parts of forms that depend on a choice, and what a form would do, while it is being filled in.
//
// data-when     on a fieldset: it is shown and sent only while a field has this value, such as "app=qq"
// data-preview  on a fieldset: the path that is asked about its fields; data-shows is what its <output> tells of the
//               answer, otherwise it tells what is wrong

import { ask, fieldsOf, filled } from "./forms.js";

const REST = 300; // milliseconds after the last change

export function serveChoices() {
  for (const form of document.forms) {
    if (!form.querySelector("[data-when], [data-preview]")) continue;
    const changed = () => {
      fit(form);
      for (const part of form.querySelectorAll("[data-preview]")) plan(part);
    };
    form.addEventListener("input", changed);
    form.addEventListener("reset", () => setTimeout(changed)); // the fields are emptied after the event
    changed();
  }
}

function fit(form) {
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, value] = part.dataset.when.split("=");
    part.hidden = part.disabled = form.elements[name].value !== value;
  }
}

const plans = new WeakMap();

function plan(part) {
  clearTimeout(plans.get(part));
  plans.set(part, setTimeout(() => preview(part), REST));
}

async function preview(part) {
  const place = part.querySelector("output");
  const fields = part.matches(":disabled") ? {} : fieldsOf(part);
  const asked = JSON.stringify(fields);
  if (part.dataset.asked === asked) return;
  part.dataset.asked = asked;
  if (!Object.values(fields).some((value) => value !== "")) return (place.textContent = "");
  const answer = await ask("POST", part.dataset.preview, fields).catch(() => null); // sending says if nobody answers
  const body = await answer?.json().catch(() => ({}));
  if (part.dataset.asked !== asked || !body) return; // it was changed meanwhile
  place.textContent = answer.ok ? filled(part.dataset.shows, body) : (body.detail ?? "");
}
