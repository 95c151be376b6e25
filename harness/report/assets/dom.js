// Elements, made so that no text can become markup: nothing here or elsewhere writes HTML.
"use strict";

/** @typedef {string | number | Node | false | null | undefined | Child[]} Child what `dom.h` takes between the tags */

const dom = (() => {
  /**
   * Children in one list, without those that are not there.
   *
   * @param {Child[]} children
   * @returns {(string | Node)[]}
   */
  const real = (children) =>
    children.flatMap((child) => {
      if (Array.isArray(child)) return real(child);
      if (child === null || child === undefined || child === false) return [];
      return [child instanceof Node ? child : String(child)];
    });

  /**
   * Make an element.
   *
   * @template {keyof HTMLElementTagNameMap} K
   * @param {K} tag
   * @param {Record<string, any>} attributes those that are null, undefined or false are left out; functions listen
   * @param {Child[]} children
   * @returns {HTMLElementTagNameMap[K]}
   */
  const h = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (typeof value === "function") element.addEventListener(name, value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...real(children));
    return element;
  };

  /**
   * The element of the page with an id, which the template has.
   *
   * @param {string} id
   * @returns {HTMLElement}
   */
  const get = (id) => {
    const element = document.getElementById(id);
    if (!element) throw new Error(`the page has no #${id}`);
    return element;
  };

  /**
   * The element at or around where something happened.
   *
   * @param {Event} event
   * @param {string} selector
   * @returns {HTMLElement | null}
   */
  const around = (event, selector) => /** @type {Element} */ (event.target).closest(selector);

  /**
   * A link out, when a browser may follow the address; its text otherwise.
   *
   * @param {string} address
   * @param {string} label what it is called, if not by its address
   */
  const outside = (address, label = address) =>
    /^https?:\/\/[^\s<>"'\\]+$/.test(address)
      ? h("a", { href: address, rel: "noopener noreferrer nofollow" }, label)
      : document.createTextNode(address);

  /**
   * A mark's letter in its colours.
   *
   * @param {Mark} mark
   */
  const chip = (mark) => h("span", { class: `m ${mark.style}`, "aria-hidden": "true" }, mark.letter);

  return { real, h, get, around, outside, chip };
})();
