// The chat: replies to a message, and the newest message in view. What stands in the chat is rendered by the server.

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
  stayAtTheEnd(chat, look);
  form.querySelector("fieldset").disabled = false; // before, a browser would send the form by itself
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
