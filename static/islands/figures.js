/* Figures between their form and the address bar. Without this file every form still works: it submits to the lesson.

   - A slider and its number field move together; sliders draw at once, number fields when typing pauses. A number that
     cannot be drawn leaves its slider where the drawing is.
   - Every value on the way is drawn, in order: htmx queues the requests, and each takes the values of its own moment.
   - A value changed before htmx was ready is drawn as soon as it is.
   - The lesson's address keeps each figure's state. One gesture makes one step of Back; others' parameters stay. */
"use strict";

(() => {
  const TYPING_PAUSE = 300;   // milliseconds
  const GESTURE_PAUSE = 1000; // a later change is a new step of Back
  const MOST_WAITING = 10;    // on a slow network a held key would otherwise go on drawing long after it is let go
  const waiting = new WeakMap(); // form -> values still to be drawn
  let lastChange = -Infinity;
  const typing = new WeakMap(); // form -> timer of the pause after a key

  const forms = () => document.querySelectorAll("form[data-figure]");
  const isLive = form => form.hasAttribute("hx-get");
  const fields = form => [...form.elements].filter(control => control.name.startsWith(`${form.dataset.figure}.`));
  const isGood = number => number.value !== "" && number.validity.valid;
  const changed = control => control.type === "radio" ? control.checked !== control.defaultChecked : control.value !== control.defaultValue;

  const numbers = form => [...form.querySelectorAll("[type=number]")];

  /** Beside a number that the server will refuse goes where its slider stands, so that the message can name what is still shown. */
  function draw(form) {
    const values = Object.fromEntries(new FormData(form));
    for (const number of numbers(form)) {
      const shown = partner(number).value;
      if (!isGood(number)) values[`${number.name}.from${shown}`] = shown;
    }
    waiting.set(form, [...(waiting.get(form) ?? []), values].slice(-MOST_WAITING));
    form.dispatchEvent(new CustomEvent("figure"));
  }

  /** A value the reader chose: drawn, and kept in the address unless it is one that the server will refuse. */
  function show(form) {
    for (const number of numbers(form)) if (isGood(number)) partner(number).value = number.value;
    if (isLive(form)) draw(form);
    if (numbers(form).every(isGood)) remember(form);
  }

  /** With a script the number field speaks for the pair, and the address bar keeps what other figures' hidden fields kept. */
  function takeOver(form) {
    for (const slider of form.querySelectorAll("[type=range]")) {
      const number = partner(slider);
      if (changed(slider)) number.value = slider.value; // moved before this script ran
      else slider.value = number.value;                 // or the number was typed
      slider.removeAttribute("name");
    }
    for (const hidden of form.querySelectorAll("[data-other]")) hidden.remove();
  }

  function partner(control) {
    return document.getElementById(control.type === "range" ? control.id.replace(/-slider$/, "") : `${control.id}-slider`);
  }

  /** How far a dial goes may depend on another one: the drawing says so, and a value beyond it becomes the last one. */
  function bound(form) {
    const drawing = form.querySelector("[data-bound]");
    const number = drawing && document.getElementById(drawing.dataset.bound);
    if (!number || number.max === drawing.dataset.maximum) return;
    for (const control of [number, partner(number)]) control.max = drawing.dataset.maximum;
    if (Number(number.value) > Number(number.max)) number.value = number.max;
    partner(number).value = number.value;
    remember(form);
  }

  /** Sets this figure's part of the lesson's address. */
  function remember(form) {
    const prefix = `${form.dataset.figure}.`;
    const address = new URL(location.href);
    for (const key of [...address.searchParams.keys()]) if (key.startsWith(prefix)) address.searchParams.delete(key);
    for (const [key, value] of new FormData(form)) address.searchParams.append(key, value);
    if (address.href === location.href) return;
    const now = performance.now();
    history[now - lastChange > GESTURE_PAUSE ? "pushState" : "replaceState"](history.state, "", address);
    lastChange = now;
  }

  /** Back and Forward: the form takes the address's values, or those the page came with. */
  function recall(form) {
    const query = new URL(location.href).searchParams;
    for (const control of fields(form)) {
      const given = query.get(control.name);
      if (control.type === "radio") control.checked = given === null ? control.defaultChecked : control.value === given;
      else control.value = given ?? control.defaultValue;
      if (control.type === "number") partner(control).value = control.value;
    }
    if (isLive(form)) draw(form);
  }

  document.addEventListener("input", event => {
    const form = event.target.closest("form[data-figure]");
    if (!form || event.target.form !== form) return;
    clearTimeout(typing.get(form));
    if (event.target.type === "range") partner(event.target).value = event.target.value;
    if (event.target.type === "number") typing.set(form, setTimeout(show, TYPING_PAUSE, form));
    else show(form);
  });

  document.addEventListener("htmx:configRequest", event => {
    const form = event.detail.elt;
    if (!form.matches("form[data-figure]") || event.detail.triggeringEvent?.type !== "figure") return;
    const values = waiting.get(form)?.shift();
    if (values) event.detail.parameters = values;
    else event.preventDefault(); // more recent values took its place
  });

  document.addEventListener("htmx:load", event => {
    for (const form of forms()) {
      if (event.detail.elt.contains(form) && fields(form).some(changed)) show(form);
      else if (form.contains(event.detail.elt)) bound(form);
    }
  });

  window.addEventListener("popstate", () => {
    lastChange = -Infinity;
    forms().forEach(recall);
  });

  forms().forEach(takeOver);
})();
