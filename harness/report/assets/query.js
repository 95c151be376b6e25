// Which cells a query lets through.
"use strict";

/**
 * The answer to a query.
 *
 * @typedef {object} Answer
 * @property {Branch} tree
 * @property {Uint8Array} mask which cells it lets through
 * @property {number} shown how many those are
 * @property {Uint8Array} misses how many of its terms each cell fails
 * @property {Uint8Array} missed which term that was, the last one where there are several
 * @property {boolean} needsMore whether it asks for what comes after the first look
 */

const query = (() => {
  const MOST_TERMS = 200;

  /**
   * One byte a cell, from what is known of the place that each cell has.
   *
   * @param {ArrayLike<number>} of place of each cell
   * @param {ArrayLike<number | boolean>} holds by place
   */
  const spread = (of, holds) => {
    const mask = new Uint8Array(of.length);
    for (let cell = 0; cell < mask.length; cell++) mask[cell] = holds[of[cell]] ? 1 : 0;
    return mask;
  };

  /**
   * Cells with one of some numbers.
   *
   * @param {(number | null)[]} numbers by cell
   * @param {(value: number) => boolean} test
   */
  const numberMask = (numbers, test) => {
    // Few different ones among many.
    /** @type {Map<number, number>} */
    const known = new Map();
    const mask = new Uint8Array(numbers.length);
    for (let cell = 0; cell < mask.length; cell++) {
      const value = numbers[cell];
      if (value === null) continue;
      let holds = known.get(value);
      if (holds === undefined) known.set(value, (holds = test(value) ? 1 : 0));
      mask[cell] = holds;
    }
    return mask;
  };

  /**
   * Cells that have a text in what a reader sees of them.
   *
   * @param {Matrix} matrix
   * @param {string} text
   */
  const textMask = (matrix, text) => {
    const lower = text.toLowerCase();
    const has = (/** @type {string} */ name) => name.toLowerCase().includes(lower);
    const cases = matrix.cases.map(
      (item, place) => has(matrix.names.case[place]) || has(item.title) || item.features.some(has),
    );
    /** @param {Codes} side @param {string[]} keys */
    const named = (side, keys) => keys.map((key) => ({ found: matrix.names[key].map(has), codes: side[key] }));
    const others = matrix.addressed.filter((key) => key !== "case" && Object.hasOwn(matrix.rows, key));
    const inRows = named(matrix.rows, others);
    const inColumns = named(matrix.columns, Object.keys(matrix.columns));
    const rows = matrix.rows.case.map(
      (place, row) => cases[place] || inRows.some(({ found, codes }) => found[codes[row]]),
    );
    const columns = matrix.columns.backend.map((_, column) =>
      inColumns.some(({ found, codes }) => found[codes[column]]),
    );
    const { more } = matrix;
    const texts = more ? more.texts.map(has) : [];
    const mask = new Uint8Array(matrix.size);
    for (let cell = 0; cell < mask.length; cell++) {
      const said = more !== null && texts[more.message[cell]];
      mask[cell] = rows[matrix.row[cell]] || columns[matrix.column[cell]] || said ? 1 : 0;
    }
    return mask;
  };

  /**
   * Cells that are of a kind, such as `is:unexpected`.
   *
   * @param {Matrix} matrix
   * @param {string[]} kinds
   */
  const kindMask = (matrix, kinds) => {
    const unknown = kinds.find((kind) => !Object.hasOwn(fields.IS, kind));
    if (unknown !== undefined) {
      const known = Object.keys(fields.IS).map((kind) => `is:${kind}`);
      throw new QueryError(`unknown is:${unknown}; there are ${known.join(", ")}`);
    }
    const holds = matrix.marks.map((mark) => kinds.some((kind) => fields.IS[kind](mark)));
    return spread(matrix.codesOf("mark"), holds);
  };

  /**
   * Cells that a term lets through.
   *
   * @param {Matrix} matrix
   * @param {Term} term
   */
  const termMask = (matrix, { field, values: wanted }) => {
    const everything = () => new Uint8Array(matrix.size).fill(1);
    if (!field) return textMask(matrix, wanted[0] || "");
    if (!wanted.length) return everything();
    if (field === "is") return kindMask(matrix, wanted);
    const tests = wanted.map((value) => values.tester(field, value, matrix.names[field] || []));
    const any = (/** @type {string | number} */ value) => tests.some((test) => test(value));
    const { more: later, number } = fields.FIELDS[field];
    if (later) {
      const { more } = matrix;
      if (!more) return everything();
      if (number) return numberMask(more.numbers[number], any);
      return spread(more.message, more.texts.map(any));
    }
    if (field === "feature") {
      const holds = matrix.cases.map((item) => item.features.some(any));
      return spread(matrix.codesOf("case"), holds);
    }
    if (field === "title") {
      const holds = matrix.cases.map((item) => any(item.title));
      return spread(matrix.codesOf("case"), holds);
    }
    const named = matrix.names[field].map(any);
    const { codes, of } = matrix.source(field);
    return spread(
      of,
      codes.map((code) => named[code]),
    );
  };

  /**
   * Cells that a part of a query lets through; the mask is the caller's own.
   *
   * @param {Matrix} matrix
   * @param {QueryNode} node
   * @returns {Uint8Array}
   */
  const maskOf = (matrix, node) => {
    if (node.op === "term") return termMask(matrix, node);
    if (node.op === "not") {
      const mask = maskOf(matrix, node.part);
      for (let cell = 0; cell < mask.length; cell++) mask[cell] ^= 1;
      return mask;
    }
    if (!node.parts.length) return new Uint8Array(matrix.size).fill(1);
    const [result, ...others] = node.parts.map((part) => maskOf(matrix, part));
    for (const part of others) {
      if (node.op === "and") for (let cell = 0; cell < result.length; cell++) result[cell] &= part[cell];
      else for (let cell = 0; cell < result.length; cell++) result[cell] |= part[cell];
    }
    return result;
  };

  /** @param {QueryNode} node @returns {boolean} */
  const needsMore = (node) => {
    if (node.op === "term") return !node.field || Boolean(fields.FIELDS[node.field].more);
    if (node.op === "not") return needsMore(node.part);
    return node.parts.some(needsMore);
  };

  /**
   * Put a query to the matrix.
   *
   * The counts beside a filter are to be those that choosing it would give: `misses` and `missed` tell which cells fail
   * only the term that is the filter's own.
   *
   * @param {Matrix} matrix
   * @param {string} text
   * @returns {Answer}
   * @throws {QueryError} when it cannot be read
   */
  const ask = (matrix, text) => {
    const tree = parser.parse(text);
    if (tree.parts.length > MOST_TERMS) throw new QueryError(`the query has more than ${MOST_TERMS} terms`);
    const misses = new Uint8Array(matrix.size);
    const missed = new Uint8Array(matrix.size);
    tree.parts.forEach((part, place) => {
      const mask = maskOf(matrix, part);
      for (let cell = 0; cell < mask.length; cell++) {
        if (!mask[cell]) {
          misses[cell]++;
          missed[cell] = place;
        }
      }
    });
    const mask = new Uint8Array(matrix.size);
    let shown = 0;
    for (let cell = 0; cell < mask.length; cell++) shown += mask[cell] = misses[cell] ? 0 : 1;
    return { tree, mask, shown, misses, missed, needsMore: tree.parts.some(needsMore) };
  };

  return { ask };
})();
