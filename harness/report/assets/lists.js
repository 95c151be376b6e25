// Pages that are one long list, with filters by words and choices.
"use strict";

const lists = (() => {
  /** @typedef {{item: HTMLElement, words: string}} Listed */

  /**
   * The parameters of the address: `#find=WORDS&NAME=VALUE`.
   *
   * @param {string} hash
   * @returns {Map<string, string>}
   */
  const read = (hash) => new Map(new URLSearchParams(hash.replace(/^#/, "")));

  /**
   * Whether a text contains each of some words.
   *
   * @param {string} text in lower case
   * @param {string} wanted
   */
  const has = (text, wanted) =>
    wanted
      .toLowerCase()
      .split(/\s+/)
      .every((word) => text.includes(word));

  /** Enable the page's search. */
  const start = () => {
    const { get } = dom;
    const input = /** @type {HTMLInputElement} */ (get("find"));
    /** @type {HTMLSelectElement[]} */
    const choices = [...get("finding").querySelectorAll("select")];
    /** @type {HTMLElement[]} */
    const elements = [...get("main").querySelectorAll("[data-kind]")].map((item) => /** @type {HTMLElement} */ (item));
    // A case's name is above its list.
    const above = (/** @type {Element} */ item) => item.closest("section")?.getAttribute("aria-label") || "";
    /** @type {Listed[]} */
    const items = elements.map((item) => ({ item, words: `${above(item)} ${item.textContent}`.toLowerCase() }));
    const sections = [...get("main").querySelectorAll("section")];

    const show = () => {
      let count = 0;
      for (const { item, words } of items) {
        const chosen = choices.every(({ value, dataset }) => !value || item.dataset[dataset.of || ""] === value);
        item.hidden = !chosen || !has(words, input.value);
        if (!item.hidden) count++;
      }
      for (const section of sections) section.hidden = !section.querySelector("[data-kind]:not([hidden])");
      const all = count === items.length;
      get("found").textContent = all ? "" : `${count.toLocaleString("en")} of ${items.length.toLocaleString("en")}`;
    };
    const keep = () => {
      const state = new URLSearchParams();
      for (const each of [input, ...choices]) if (each.value) state.set(each.id, each.value);
      history.replaceState(null, "", `#${state}`);
      show();
    };
    const take = () => {
      const state = read(location.hash);
      for (const each of [input, ...choices]) each.value = state.get(each.id) || "";
      show();
    };
    input.addEventListener("input", timers.later(50, keep));
    for (const each of choices) each.addEventListener("change", keep);
    addEventListener("hashchange", take);
    get("finding").hidden = false;
    take();
  };

  return { start };
})();

addEventListener("DOMContentLoaded", () => {
  if (document.getElementById("finding")) lists.start();
});
