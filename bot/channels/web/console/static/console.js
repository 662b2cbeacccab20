// Starts what the pages need: forms that ask the API, parts that stay fresh, notifications, and the log-in link.

import { serveChat } from "./chat.js";
import { serveChoices } from "./choices.js";
import { logInByLink, serveForms } from "./forms.js";
import { serveImport } from "./imports.js";
import { followEvents } from "./live.js";
import { offerNotifications } from "./notifications.js";
import { showScreen } from "./screen.js";

document.querySelector("header [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // a small screen shows half the menu
serveForms();
serveChoices();
serveImport();
logInByLink();
serveChat();
addEventListener("hashchange", logInByLink); // the link is opened in a tab that shows the log-in page already
dispatchEvent(new Event("ready")); // what was sent until now is taken up
const followers = [offerNotifications(), showScreen()];
if (document.body.dataset.events) {
  followEvents(document.body.dataset.events, (kind, event) => followers.forEach((follow) => follow(kind, event)));
}
