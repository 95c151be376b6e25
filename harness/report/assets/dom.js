// Elements, built so that no text can become markup: no script writes HTML.
"use strict";

/** @typedef {string | number | Node | false | null | undefined | Child[]} Child the content that `dom.h` accepts */

/**
 * A group of table rows: the row with its name, the rows below, and a function that updates its open state.
 *
 * @typedef {{row: HTMLTableRowElement, rows: HTMLTableRowElement[], fold: () => void}} RowGroup
 */

const dom = (() => {
  /** Whether the screen is narrow, as in style.css. */
  const narrow = matchMedia("(max-width: 45rem)");

  /**
   * Children in one list, without absent ones.
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
   * @param {Record<string, any>} attributes null, undefined and false are omitted; functions become listeners
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
   * The element with an id, which the template contains.
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
   * The element at or around an event.
   *
   * @param {Event} event
   * @param {string} selector
   * @returns {HTMLElement | null}
   */
  const around = (event, selector) => /** @type {Element} */ (event.target).closest(selector);

  /**
   * A link to another site if the address is safe, else its text.
   *
   * @param {string} address the text, by default the address
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

  /**
   * A group of table rows with its name; on a narrow screen the name is a button that opens and closes the group.
   *
   * @param {string} name
   * @param {number} columns
   * @param {Set<string>} open names of open groups
   * @returns {RowGroup}
   */
  const rowGroup = (name, columns, open) => {
    /** @type {HTMLTableRowElement[]} */
    const rows = [];
    const toggle = () => {
      if (!open.delete(name)) open.add(name);
      fold();
    };
    const button = narrow.matches && h("button", { type: "button", click: toggle }, name);
    const fold = () => {
      if (!button) return;
      button.setAttribute("aria-expanded", String(open.has(name)));
      for (const row of rows) row.classList.toggle("folded", !open.has(name));
    };
    const row = h("tr", { class: "topic" }, h("th", { scope: "rowgroup", colspan: columns }, button || name));
    return { row, rows, fold };
  };

  /**
   * A button that shows and hides the further rows of a feature, which are initially hidden.
   *
   * @param {string} name
   * @param {HTMLTableRowElement[]} rows
   * @param {Set<string>} open names of features with visible rows
   */
  const further = (name, rows, open) => {
    const fold = () => {
      button.setAttribute("aria-expanded", String(open.has(name)));
      for (const row of rows) row.classList.toggle("spare", !open.has(name));
    };
    const toggle = () => {
      if (!open.delete(name)) open.add(name);
      fold();
    };
    const words = `${rows.length} more variant${rows.length === 1 ? "" : "s"}`;
    const button = h("button", { type: "button", class: "small", click: toggle }, words);
    fold();
    return button;
  };

  return { narrow, rowGroup, further, real, h, get, around, outside, chip };
})();
