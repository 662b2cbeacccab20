// What was done, or went wrong, is told above the page. What can be undone has a button for a while.

const SHORT = 8000; // milliseconds
const LONG = 30000; // with a button
const KEPT = "said"; // what the next page tells

export function say(text, { isBad = false, button = "", act = null } = {}) {
  const place = document.getElementById("said");
  const line = document.createElement("p");
  line.textContent = text;
  if (isBad) line.className = "bad";
  if (act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = button;
    made.addEventListener("click", () => {
      line.remove();
      act();
    });
    line.append(" ", made);
  }
  place.replaceChildren(line);
  leave(line, act ? LONG : SHORT);
}

// Nobody loses the button while they point at it or have it in focus.
function leave(line, after) {
  setTimeout(() => (line.matches(":hover, :focus-within") ? leave(line, SHORT) : line.remove()), after);
}

export const keep = (notice) => sessionStorage.setItem(KEPT, JSON.stringify(notice));

// Return what the page before has kept, once.
export function kept() {
  const notice = JSON.parse(sessionStorage.getItem(KEPT));
  sessionStorage.removeItem(KEPT);
  return notice;
}
