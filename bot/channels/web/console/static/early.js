// Keeps forms that are sent before the modules are there, so that the browser never sends one by itself, with its fields
// in the address. The only script that is loaded before the page is shown.

const early = new Map(); // form: the button it was sent by

function keep(event) {
  if (event.target.hasAttribute("method")) return; // a search, which the browser sends
  event.preventDefault();
  early.set(event.target, event.submitter);
}

addEventListener("submit", keep, true);

addEventListener("ready", () => {
  removeEventListener("submit", keep, true);
  for (const [form, button] of early) form.requestSubmit(button);
}, { once: true });
