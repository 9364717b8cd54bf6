// What a page says when the server cannot be reached, and where the theme button leads back to. All else is forms and links.
const offline = document.getElementById("offline");
document.addEventListener("htmx:sendError", () => { offline.hidden = false; });
document.addEventListener("htmx:afterOnLoad", () => { offline.hidden = true; });
document.addEventListener("submit", event => {
  const next = event.target.elements.next; // sliders have moved the address since the page came
  if (next) next.value = location.pathname + location.search + location.hash;
});
