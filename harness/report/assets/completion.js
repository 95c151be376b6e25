// Completions of a condition.
"use strict";

/** @typedef {{text: string, about: string}} Option */
/** @typedef {{start: number, end: number, options: Option[]}} Offer completions between two positions of the query */

const completion = (() => {
  const MOST_OPTIONS = 12;

  /**
   * Names, and cases that contain the typed text.
   *
   * @param {Matrix} matrix
   * @param {string} typed
   * @returns {Option[]}
   */
  const names = (matrix, typed) => {
    const options = Object.entries(fields.FIELDS)
      .filter(([name]) => name.startsWith(typed))
      .map(([name, { kind, about }]) => ({ text: kind === "flag" ? `${name} ` : `${name} == `, about }));
    if (!typed) return options;
    const cases = matrix.names.case.filter((name) => name.toLowerCase().includes(typed));
    return [...options, ...cases.map((name) => ({ text: `case == ${syntax.quoted(name)} `, about: "case" }))];
  };

  /**
   * The name that a value belongs to, if a value comes next, from a comparison or a list; else empty.
   *
   * @param {Token[]} before
   */
  const compared = (before) => {
    const isOpen = before.findLastIndex(({ text }) => "([".includes(text));
    const isList = isOpen > 0 && before[isOpen - 1].text === "in" && "([,".includes(before[before.length - 1].text);
    const rest = before.slice(0, isList ? isOpen : before.length);
    const operator = rest.pop();
    if (!operator || (operator.text !== "in" && !Object.hasOwn(syntax.SYMBOLS, operator.text))) return "";
    if (operator.text === "in" && !isList) return "";
    if (rest[rest.length - 1]?.text === "not") rest.pop();
    return rest.pop()?.text || "";
  };

  /**
   * The completions at the caret.
   *
   * @param {Matrix} matrix
   * @param {string} text
   * @param {number} caret
   * @returns {Offer}
   */
  const complete = (matrix, text, caret) => {
    const tokens = syntax.tokens(text);
    const at = tokens.findIndex(({ kind, start, end }) => kind !== "symbol" && start <= caret && caret <= end);
    // A text without its closing quote extends to the end.
    const word = tokens[at] || { start: caret, end: caret, text: "" };
    const before = tokens.slice(0, at < 0 ? tokens.findLastIndex(({ end }) => end <= caret) + 1 : at);
    const typed = word.text.replace(/["']/g, "").toLowerCase();
    const name = compared(before);
    const last = before[before.length - 1];
    let options = !last || ["and", "or", "not", "("].includes(last.text) ? names(matrix, typed) : [];
    if (name && Object.hasOwn(fields.FIELDS, name) && name !== "text") {
      const values = fields.FIELDS[name].kind === "flag" ? ["true", "false"] : fields.choices(matrix, name).names;
      options = values
        .filter((value) => String(value).toLowerCase().includes(typed))
        .map((value) => ({ text: `${query.spell(name, String(value))} `, about: "" }));
    }
    return { start: word.start, end: word.end, options: options.slice(0, MOST_OPTIONS) };
  };

  return { complete };
})();
