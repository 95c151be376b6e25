// Elements, made so that no text can become markup: nothing here or elsewhere writes HTML.
"use strict";

const cumatrix = {};

/** Make an element. Attributes that are null, undefined or false are left out; functions are listeners. */
cumatrix.h = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...cumatrix.real(children));
  return element;
};

/** Children without those that are not there. */
cumatrix.real = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** A link out, when a browser may follow the address; its text otherwise. */
cumatrix.outside = (address) =>
  /^https?:\/\/[^\s<>"'\\]+$/.test(address)
    ? cumatrix.h("a", { href: address, rel: "noopener noreferrer nofollow" }, address)
    : document.createTextNode(address);

/** A mark's letter in its colours. */
cumatrix.chip = (mark) => cumatrix.h("span", { class: `m ${mark.style}`, "aria-hidden": "true" }, mark.letter);

// One formatter for all: toLocaleString makes a new one each time.
const numbers = new Intl.NumberFormat("en");
cumatrix.count = (number) => (number < 1000 ? String(number) : numbers.format(number));

/** How many things are to happen soon; when there are none, what is shown stays until somebody does something. */
cumatrix.pending = 0;

/** Run something soon, but once for many calls in a row. */
cumatrix.later = (milliseconds, action) => {
  let timer = 0;
  return (...values) => {
    if (timer) clearTimeout(timer);
    else cumatrix.pending++;
    timer = setTimeout(() => {
      timer = 0;
      cumatrix.pending--;
      action(...values);
    }, milliseconds);
  };
};
