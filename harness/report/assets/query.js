// The cells that match the filter: a condition, or words to search for.
"use strict";

/**
 * The result of a query.
 *
 * @typedef {object} Answer
 * @property {Tree[]} parts terms that must hold
 * @property {Uint8Array} mask the cells that match
 * @property {number} shown number of matching cells
 * @property {Uint8Array} misses number of failed terms of each cell: 0, 1, or 2 for more
 * @property {Uint16Array} missed index of the failed term, the last one if there are several
 * @property {boolean} needsMore whether it uses data that load after the first view
 */

const query = (() => {
  /**
   * The condition of a query. Words without an operator, and a single text in quotes, search for a text.
   *
   * @param {string} text
   */
  const conditionOf = (text) => {
    const plain = text.trim();
    const tokens = syntax.tokens(plain);
    const [first] = tokens;
    if (tokens.length === 1 && first.kind === "text") return `${plain} in text`;
    const isFlag = tokens.length === 1 && (fields.FIELDS[plain]?.kind === "flag" || /^(true|false)$/i.test(plain));
    const [, old] = /^-?(\w+):/.exec(plain) || [];
    if (Object.hasOwn(fields.FIELDS, old)) throw new ConditionError(`write ${old} == "…" instead of ${old}:…`, 1);
    const isWords = /^[\p{L}\p{N}\s_.:/+@-]+$/u.test(plain) && !/(^|\s)(and|or|not|in)(\s|$)/.test(plain);
    return isWords && !isFlag ? `${syntax.quoted(plain)} in text` : plain;
  };

  /** @param {string} text @returns {Tree[]} terms that must hold, with their positions in the condition */
  const parse = (text) => {
    const tree = condition.parse(conditionOf(text), fields.FIELDS);
    return tree.op === "and" ? tree.parts : [tree];
  };

  /**
   * Cells with a text in their visible facts.
   *
   * @param {Matrix} matrix
   * @param {(text: string) => boolean} has
   */
  const textMask = (matrix, has) => {
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
      const found = more !== null && texts[more.message[cell]];
      mask[cell] = rows[matrix.row[cell]] || columns[matrix.column[cell]] || found ? 1 : 0;
    }
    return mask;
  };

  /**
   * Cells that match a part of a query. The caller owns the mask.
   *
   * @param {Matrix} matrix
   * @param {Tree} node
   * @returns {Uint8Array}
   */
  const maskOf = (matrix, node) => {
    const mask = new Uint8Array(matrix.size);
    if (node.op === "constant") return mask.fill(node.value ? 1 : 0);
    if (node.op === "test") {
      if (!matrix.more && fields.LATER.includes(node.name) && node.name !== "text") return mask.fill(1);
      if (node.name === "text") return textMask(matrix, node.holds);
      const { values, codes, of } = fields.fact(matrix, node.name);
      const found = values.map((value) => value !== null && node.holds(value));
      const holds = codes ? codes.map((code) => found[code]) : found;
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = holds[of ? of[cell] : cell] ? 1 : 0;
      return mask;
    }
    if (node.op === "not") {
      const part = maskOf(matrix, node.part);
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = part[cell] ^ 1;
      return mask;
    }
    const [result, ...others] = node.parts.map((part) => maskOf(matrix, part));
    for (const part of others) {
      if (node.op === "and") for (let cell = 0; cell < result.length; cell++) result[cell] &= part[cell];
      else for (let cell = 0; cell < result.length; cell++) result[cell] |= part[cell];
    }
    return result;
  };

  /** @param {Tree} node @returns {boolean} */
  const needsMore = (node) => {
    if (node.op === "test") return fields.LATER.includes(node.name);
    if (node.op === "not") return needsMore(node.part);
    return node.op !== "constant" && node.parts.some(needsMore);
  };

  /**
   * Evaluate a query.
   *
   * The counts next to a filter are those after choosing a value. `misses` and `missed` identify the cells that fail
   * only the filter's own term.
   *
   * @param {Matrix} matrix
   * @param {string} text
   * @returns {Answer}
   * @throws {ConditionError} if it is invalid
   */
  const ask = (matrix, text) => {
    const parts = parse(text);
    const misses = new Uint8Array(matrix.size);
    const missed = new Uint16Array(matrix.size);
    parts.forEach((part, place) => {
      const mask = maskOf(matrix, part);
      for (let cell = 0; cell < mask.length; cell++) {
        if (mask[cell]) continue;
        misses[cell] = misses[cell] ? 2 : 1;
        missed[cell] = place;
      }
    });
    const mask = new Uint8Array(matrix.size);
    let shown = 0;
    for (let cell = 0; cell < mask.length; cell++) shown += mask[cell] = misses[cell] ? 0 : 1;
    return { parts, mask, shown, misses, missed, needsMore: parts.some(needsMore) };
  };

  /**
   * The index of a filter's own term: `name == "a"`, `name in ("a", "b")`; -1 without one.
   *
   * @param {Tree[]} parts
   * @param {string} name
   */
  const filterOf = (parts, name) => parts.findIndex((part) => part.op === "test" && part.name === name && part.equal);

  /** @param {string} name @param {string} value in the form of a condition */
  const spell = (name, value) => {
    const { kind, numeric } = fields.FIELDS[name];
    return numeric || kind === "flag" ? value : syntax.quoted(value);
  };

  /**
   * The query with a value of a filter added or removed.
   *
   * @param {string} text
   * @param {string} name
   * @param {string} value
   * @param {string[]} values of the filter
   */
  const toggle = (text, name, value, values) => {
    const parts = parse(text);
    const whole = conditionOf(text);
    const place = filterOf(parts, name);
    const own = parts[place];
    const before = own?.op === "test" ? values.filter(own.holds) : [];
    const chosen = before.includes(value) ? before.filter((each) => each !== value) : [...before, value];
    const spelled = chosen.map((each) => spell(name, each));
    const one = spelled.length ? `${name} == ${spelled[0]}` : "";
    const written = spelled.length > 1 ? `${name} in (${spelled.join(", ")})` : one;
    const texts = parts.map((part) => {
      const isLoose = part.op === "or" && part.start === part.parts[0].start;
      return isLoose ? `(${whole.slice(part.start, part.end)})` : whole.slice(part.start, part.end);
    });
    texts.splice(own ? place : texts.length, 1, written);
    // The two halves of a chained comparison are the same part of the text.
    return [...new Set(texts)].filter(Boolean).join(" and ");
  };

  return { ask, filterOf, spell, toggle };
})();
