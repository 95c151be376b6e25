// The state of the page in its address. docs/page.md describes the format.
"use strict";

/**
 * The reader's choices.
 *
 * @typedef {object} State
 * @property {string} q the query
 * @property {string} down dimensions of the rows, with commas
 * @property {string} across dimensions of the columns
 * @property {string[]} fold names of groups that differ from the initial state; "*" opens all
 * @property {string} cell the cell in the panel
 */

/** @typedef {{down: string, across: string}} Pair dimensions of rows and columns */

const address = (() => {
  /**
   * A list of dimensions, or nothing if the text is not a list of known ones.
   *
   * @param {string | undefined} text
   * @param {string[]} known
   */
  const dimensions = (text, known) => {
    const keys = (text || "").split(",");
    return keys.length === new Set(keys).size && keys.every((key) => known.includes(key)) ? keys.join() : "";
  };

  /**
   * Encodes only characters that would end or change a part of an address: people read addresses.
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
   * The name of a group, from its labels, outermost group first.
   *
   * @param {string[]} path
   */
  const foldName = (path) => path.map((part) => part.replace(/[%;/]/g, encodeURIComponent)).join("/");

  /**
   * The state in an address. Invalid parts take the initial value.
   *
   * @param {string} hash the text after the #
   * @param {Pair} first
   * @param {string[]} known known dimensions
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
   * The address of a state, from the # on. It omits initial values.
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
