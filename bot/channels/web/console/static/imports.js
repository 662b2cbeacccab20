// The import of a file of knowledge: first what it would do, then, by a button, that and nothing else.

import { ask, complain } from "./forms.js";
import { refresh } from "./live.js";

export function serveImport() {
  const form = document.querySelector("form[data-import]");
  if (!form) return;
  let mark = "";
  const forget = () => {
    mark = "";
    show([], {});
  };
  form.querySelector("[type=file]").addEventListener("change", forget);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const go = event.submitter?.name === "go" ? event.submitter.value : "";
    const [file] = form.querySelector("[type=file]").files;
    complain(form, "");
    try {
      const body = { name: file.name, content: await base64(file), mark: go && mark, replace_doubles: go === "replace" };
      const answer = await ask("POST", form.dataset.import, body);
      const plan = await answer.json();
      if (!answer.ok) return complain(form, plan.detail);
      mark = plan.done ? "" : plan.mark;
      show(plan.summary, plan);
      if (plan.done) await refresh();
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // fetch says so if nobody answers
      complain(form, document.body.dataset.unreachable);
    }
  });

  function show(lines, plan) {
    const place = document.getElementById("plan");
    place.replaceChildren(
      ...lines.map((line) => {
        const said = document.createElement("blockquote");
        said.textContent = line;
        return said;
      }),
    );
    const waits = plan.done === false;
    document.getElementById("import-go").hidden = !(waits && plan.added + plan.changed);
    document.getElementById("import-replace").hidden = !(waits && plan.doubles + plan.unclear);
  }
}

async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}
