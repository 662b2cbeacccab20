// The chat: what is written, replies to a message, and the newest message in view. What stands in the chat is rendered
// by the server.

import { followEvents } from "./live.js";

const NEAR = 120; // pixels from the end; whoever has scrolled up further is left there

export function serveChat() {
  const chat = document.getElementById("chat");
  if (!chat) return;
  followEvents(chat.dataset.follow, () => {});
  const form = document.getElementById("write");
  const { reply_to: answered, text: words } = form.elements;
  const banner = document.getElementById("replying");

  function reply(button) {
    answered.value = button?.dataset.reply ?? "";
    banner.hidden = !button;
    banner.querySelector("q").textContent = button?.dataset.title ?? "";
    words.placeholder = button?.dataset.hint ?? "";
    words.focus();
  }

  chat.addEventListener("click", (event) => {
    const button = event.target.closest("[data-reply]");
    if (button) reply(button);
  });
  document.getElementById("no-reply").addEventListener("click", () => reply(null));
  document.addEventListener("answered", ({ detail }) => {
    if (detail.form === form) reply(null);
    asks = detail.body.asks;
    look();
  });

  let asks = null; // a message that waits for the person's own words, until it is there
  const look = () => {
    const button = asks && document.getElementById(`reply-${asks}`);
    if (!button) return;
    asks = null;
    reply(button);
  };
  serveInput(form, words);
  stayAtTheEnd(chat, look);
  form.querySelector("fieldset").disabled = false; // before, a browser would send the form by itself
}

// The input is as high as its lines. Enter sends, also while commands are proposed.
function serveInput(form, words) {
  const list = document.getElementById("commands");
  const buttons = [...list.querySelectorAll("button")];
  const shown = () => buttons.filter((each) => !each.parentElement.hidden);

  function grow() {
    words.style.height = "auto";
    words.style.height = `${words.scrollHeight + words.offsetHeight - words.clientHeight}px`;
  }

  function propose() {
    const isCommand = /^\/\S*$/.test(words.value);
    for (const each of buttons) each.parentElement.hidden = !each.dataset.command.startsWith(words.value);
    list.hidden = !isCommand || !shown().length;
  }

  const changed = () => {
    grow();
    propose();
  };
  words.addEventListener("input", changed);
  form.addEventListener("reset", () => setTimeout(changed)); // the field is emptied after the event
  words.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit(form.querySelector("button.good"));
    }
  });
  form.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (list.hidden || (event.key !== "Escape" && !step)) return;
    event.preventDefault();
    if (event.key === "Escape") list.hidden = true;
    (step && [words, ...shown()].at([words, ...shown()].indexOf(document.activeElement) + step) || words).focus();
  });
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    words.value = button.dataset.command;
    words.focus();
    changed();
  });
  changed();
}

function stayAtTheEnd(chat, look) {
  let isAtEnd = true;
  const toEnd = () => isAtEnd && (chat.scrollTop = chat.scrollHeight);
  chat.addEventListener("scroll", () => (isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < NEAR));
  chat.addEventListener("load", toEnd, true); // of a picture
  new MutationObserver(() => {
    look();
    toEnd();
  }).observe(chat, { childList: true, subtree: true });
  toEnd();
}
