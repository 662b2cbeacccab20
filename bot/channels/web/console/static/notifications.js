// Notifications of the browser about new questions, once a person has asked for them.

// Show the button if the browser can notify and was not asked yet. Return what to do with each event.
export function offerNotifications() {
  const button = document.getElementById("notify");
  if (!button || !("Notification" in window)) return () => {};
  button.hidden = Notification.permission !== "default";
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    button.hidden = Notification.permission !== "default";
  });
  return (kind, event) => {
    if (kind !== "question" || Notification.permission !== "granted") return;
    const { console: root, notified } = document.body.dataset;
    const shown = new Notification(notified, { body: event.data.text ?? "", tag: `question-${event.data.id}` });
    shown.addEventListener("click", () => {
      window.focus();
      location.assign(`${root}/questions`);
    });
  };
}
