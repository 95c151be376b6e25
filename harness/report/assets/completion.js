// What could come next in a query.
"use strict";

/** @typedef {{text: string, about: string}} Option */
/** @typedef {{start: number, end: number, options: Option[]}} Offer what could stand between two places of the query */

const completion = (() => {
  const MOST_OPTIONS = 12;

  /**
   * The values that a field can have.
   *
   * @param {Matrix} matrix
   * @param {string} field
   */
  const valuesOf = (matrix, field) => {
    if (field === "is") return Object.keys(fields.IS);
    if (field === "feature") return [...new Set(matrix.cases.flatMap((item) => item.features))].sort();
    if (field === "title") return matrix.cases.map((item) => item.title);
    return matrix.names[field] || [];
  };

  /**
   * Fields, and cases by their name.
   *
   * @param {Matrix} matrix
   * @param {string} sign
   * @param {string} typed
   * @returns {Option[]}
   */
  const fieldOptions = (matrix, sign, typed) => {
    const options = Object.entries(fields.FIELDS)
      .filter(([field]) => field.startsWith(typed))
      .map(([field, { about }]) => ({ text: `${sign}${field}:`, about }));
    if (!typed) return options;
    const cases = matrix.names.case.filter((name) => name.toLowerCase().includes(typed));
    return [...options, ...cases.map((name) => ({ text: `${sign}case:${parser.quoted(name)} `, about: "case" }))];
  };

  /**
   * What could stand where the caret is.
   *
   * @param {Matrix} matrix
   * @param {string} text
   * @param {number} caret
   * @returns {Offer}
   */
  const complete = (matrix, text, caret) => {
    const nothing = { start: caret, end: caret, field: "", text: "", negated: false };
    const word =
      parser.words(text).find((each) => each.kind === "term" && each.start <= caret && caret <= each.end) || nothing;
    const sign = word.negated ? "-" : "";
    const field = fields.fieldOf(word.field);
    /** @type {Option[]} */
    let options = [];
    if (!field) options = fieldOptions(matrix, sign, word.text.replaceAll('"', "").toLowerCase());
    else if (Object.hasOwn(fields.FIELDS, field)) {
      const before = word.text.slice(0, word.text.lastIndexOf(",") + 1);
      const typed = word.text.slice(before.length).replaceAll('"', "").toLowerCase();
      options = valuesOf(matrix, field)
        .filter((value) => value && value.toLowerCase().includes(typed))
        .map((value) => ({ text: `${sign}${word.field}:${before}${parser.quoted(value)} `, about: "" }));
    }
    return { start: word.start, end: word.end, options: options.slice(0, MOST_OPTIONS) };
  };

  return { complete };
})();
