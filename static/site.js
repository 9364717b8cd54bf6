// What a page says when the server cannot be reached, answers that come too late, where the theme button leads back to, which
// section is on screen, and that a strategy chosen in a figure is the one its run shows. All else is forms and links.
const offline = document.getElementById("offline");
document.addEventListener("htmx:sendError", () => { offline.hidden = false; });
document.addEventListener("htmx:afterOnLoad", () => { offline.hidden = true; });
document.addEventListener("htmx:beforeRequest", ({ target }) => {
  // A run's progress may be asked for and taken back at once: the answer then has no place to go to.
  target.addEventListener("htmx:beforeOnLoad", event => { if (!target.isConnected) event.preventDefault(); }, { once: true });
});
document.addEventListener("submit", event => {
  const next = event.target.elements.next; // sliders have moved the address since the page came
  if (next) next.value = location.pathname + location.search + location.hash;
});

document.addEventListener("change", ({ target }) => {
  if (target.name !== "volume.strategy") return;
  const axis = target.closest("label").className;
  for (const tab of document.querySelectorAll(`.results label.${axis} input`)) tab.checked = true;
});

// The rail ticks what is done, and marks the section that crosses a line in the upper part of the window. Without this script
// it marks the first one that is not done.
let here = "";
function markPlace() {
  const links = [...document.querySelectorAll("#rail a")];
  const place = links.find(link => link.hash === `#${here}`);
  if (!place) return;
  for (const link of links) link.removeAttribute("aria-current");
  place.setAttribute("aria-current", "step");
  document.querySelector("#rail b").textContent = place.firstElementChild.firstChild.textContent;
}
const reading = new IntersectionObserver(crossing => {
  for (const one of crossing) if (one.isIntersecting) here = one.target.id;
  markPlace();
}, { rootMargin: "-25% 0% -74% 0%" });
document.querySelectorAll("main > section[id]").forEach(section => reading.observe(section));
document.addEventListener("htmx:load", markPlace); // what the server sends afresh marks its own place
