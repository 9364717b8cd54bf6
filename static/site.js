// What a page says when the server cannot be reached; everything else is forms, links and htmx.
const offline = document.getElementById("offline");
document.addEventListener("htmx:sendError", () => { offline.hidden = false; });
document.addEventListener("htmx:afterOnLoad", () => { offline.hidden = true; });
