// The live screen of a phone: pictures for as long as somebody looks, the agent's marks, and the touches of whoever has
// taken the phone over.

import { ask } from "./forms.js";
import { say } from "./notices.js";

const LEAST = 200; // milliseconds from one picture to the next
const AGAIN = 2000; // after a picture that could not be taken
const MARKED = 2000; // how long a mark is shown
const NEAR = 15; // thousandths of the screen; a finger that moves less has not moved
const LONG = 600; // milliseconds of a long press

// Show the screen, if the page has one. Return what to do with each event.
export function showScreen() {
  const canvas = document.querySelector("canvas[data-screen]");
  if (!canvas) return () => {};
  const marks = { points: [], until: 0 };
  follow(canvas, marks);
  touch(canvas);
  return (kind, event) => {
    if (kind !== "step" || event.run !== hand().dataset.run) return;
    const { element, start, end } = event.data.action ?? {};
    marks.points = [element, start, end].filter(Boolean);
    marks.until = performance.now() + MARKED;
  };
}

const hand = () => document.getElementById("hand");
const isMine = () => "mine" in hand().dataset;

async function follow(canvas, marks) {
  const said = document.getElementById("screen-said");
  for (;;) {
    if (document.hidden) {
      await new Promise((resume) => document.addEventListener("visibilitychange", resume, { once: true }));
      continue;
    }
    const began = performance.now();
    let wait = LEAST;
    try {
      const answer = await fetch(canvas.dataset.screen);
      if (answer.ok) {
        draw(canvas, await createImageBitmap(await answer.blob()), marks);
        said.textContent = "";
      } else {
        said.textContent = (await answer.json()).detail;
        wait = AGAIN;
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the stream of events says that the server is gone
      wait = AGAIN;
    }
    canvas.classList.toggle("mine", isMine());
    await new Promise((resume) => setTimeout(resume, Math.max(0, began + wait - performance.now())));
  }
}

function draw(canvas, picture, marks) {
  if (canvas.width !== picture.width) canvas.width = picture.width;
  if (canvas.height !== picture.height) canvas.height = picture.height;
  const context = canvas.getContext("2d");
  context.drawImage(picture, 0, 0);
  picture.close();
  canvas.dataset.shown = Number(canvas.dataset.shown ?? 0) + 1;
  if (performance.now() > marks.until) return;
  context.strokeStyle = "#e6194b";
  context.lineWidth = canvas.width / 80;
  for (const [x, y] of marks.points) {
    context.beginPath();
    context.arc((x * canvas.width) / 1000, (y * canvas.height) / 1000, canvas.width / 16, 0, 2 * Math.PI);
    context.stroke();
  }
}

function touch(canvas) {
  let began = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const part = (at, from, size) => Math.min(1000, Math.max(0, Math.round(((at - from) * 1000) / size)));
    return [part(event.clientX, box.left, box.width), part(event.clientY, box.top, box.height)];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (!isMine() || event.button !== 0) return;
    event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    began = { at: place(event), time: performance.now() };
  });
  canvas.addEventListener("pointercancel", () => (began = null));
  canvas.addEventListener("pointerup", (event) => {
    if (!began) return;
    const action = actionOf(began, place(event), performance.now() - began.time);
    began = null;
    act(canvas.dataset.acts, action);
  });
}

function actionOf(began, end, lasted) {
  const moved = Math.hypot(end[0] - began.at[0], end[1] - began.at[1]);
  if (moved > NEAR) {
    const duration = Math.min(2, Math.max(0.1, lasted / 1000));
    return { kind: "swipe", start: began.at, end, duration };
  }
  return lasted >= LONG ? { kind: "long_press", element: began.at } : { kind: "tap", element: began.at };
}

async function act(path, action) {
  try {
    const answer = await ask("POST", path, { action });
    if (!answer.ok) say((await answer.json()).detail, { isBad: true });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    say(document.body.dataset.unreachable, { isBad: true });
  }
}
