// What is shown, as the page's address tells it. docs/page.md tells of the form.
"use strict";

/**
 * Everything that the reader chose.
 *
 * @typedef {object} State
 * @property {string} q the query
 * @property {string} down dimensions of the rows, with commas
 * @property {string} across dimensions of the columns
 * @property {string[]} fold names of the groups that are not as at first; "*" opens all
 * @property {string} cell the cell that the panel tells of
 */

/** @typedef {{down: string, across: string}} Pair dimensions of rows and columns */

const address = (() => {
  /**
   * A list of dimensions, or nothing when it is not one.
   *
   * @param {string | undefined} text
   * @param {string[]} known
   */
  const dimensions = (text, known) => {
    const keys = (text || "").split(",");
    return keys.length === new Set(keys).size && keys.every((key) => known.includes(key)) ? keys.join() : "";
  };

  /**
   * Addresses are for people to read: only what would end or change a part of one is encoded.
   *
   * @param {string} text
   */
  const encode = (text) =>
    text.replace(/[%&+#\s"<>`\\^{}|]/g, (letter) => encodeURIComponent(letter)).replaceAll("%20", "+");

  /** @param {string} text */
  const decode = (text) => {
    try {
      return decodeURIComponent(text.replaceAll("+", " "));
    } catch {
      return text;
    }
  };

  /**
   * The name of a group, by the labels from the outermost group on.
   *
   * @param {string[]} path
   */
  const foldName = (path) => path.map((part) => part.replace(/[%;/]/g, encodeURIComponent)).join("/");

  /**
   * The state that an address tells; what cannot be understood is as at first.
   *
   * @param {string} hash what follows the #
   * @param {Pair} first
   * @param {string[]} known dimensions that there are
   * @returns {State}
   */
  const read = (hash, first, known) => {
    /** @type {Record<string, string>} */
    const found = Object.fromEntries(
      hash
        .split("&")
        .filter((part) => part.includes("="))
        .map((part) => [part.slice(0, part.indexOf("=")), decode(part.slice(part.indexOf("=") + 1))]),
    );
    let pair = {
      down: dimensions(found.down, known) || first.down,
      across: found.across === views.LIST ? views.LIST : dimensions(found.across, known) || first.across,
    };
    const across = pair.across.split(",");
    if (pair.down.split(",").some((key) => across.includes(key))) pair = first;
    const { down } = pair;
    const fold = found.fold ? found.fold.split(";") : [];
    return { q: found.q || "", down, across: pair.across, fold, cell: found.cell || "" };
  };

  /**
   * The address of a state, from the # on; what is as at first is left out.
   *
   * @param {State} state
   * @param {Pair} first
   */
  const write = (state, first) => {
    const parts = [];
    if (state.q) parts.push(`q=${encode(state.q)}`);
    if (state.down !== first.down) parts.push(`down=${state.down}`);
    if (state.across !== first.across) parts.push(`across=${state.across}`);
    if (state.fold.length) parts.push(`fold=${encode(state.fold.join(";"))}`);
    if (state.cell) parts.push(`cell=${encode(state.cell)}`);
    return `#${parts.join("&")}`;
  };

  return { foldName, read, write };
})();
