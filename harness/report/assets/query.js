// Which cells the filter lets through: a condition, or words to search for.
"use strict";

/**
 * The answer to a query.
 *
 * @typedef {object} Answer
 * @property {Tree[]} parts what must hold
 * @property {Uint8Array} mask which cells it lets through
 * @property {number} shown how many those are
 * @property {Uint8Array} misses whether each cell fails none of its parts, one, or more: 0, 1, 2
 * @property {Uint16Array} missed which part that was, the last one where there are several
 * @property {boolean} needsMore whether it asks for what comes after the first look
 */

const query = (() => {
  /**
   * The condition that a query is. Words without an operator, and one text in quotes, search for a text.
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

  /** @param {string} text @returns {Tree[]} what must hold, where it stands in the condition */
  const parse = (text) => {
    const tree = condition.parse(conditionOf(text), fields.FIELDS);
    return tree.op === "and" ? tree.parts : [tree];
  };

  /**
   * Cells that have a text in what a reader sees of them.
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
   * Cells that a part of a query lets through; the mask is the caller's own.
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
   * Put a query to the matrix.
   *
   * The counts beside a filter are to be those that choosing it would give: `misses` and `missed` tell which cells fail
   * only the part that is the filter's own.
   *
   * @param {Matrix} matrix
   * @param {string} text
   * @returns {Answer}
   * @throws {ConditionError} when it cannot be read
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
   * The part of a query that is a filter's own: `name == "a"`, `name in ("a", "b")`; -1 where there is none.
   *
   * @param {Tree[]} parts
   * @param {string} name
   */
  const filterOf = (parts, name) => parts.findIndex((part) => part.op === "test" && part.name === name && part.equal);

  /** @param {string} name @param {string} value as it is written in a condition */
  const spell = (name, value) => {
    const { kind, numeric } = fields.FIELDS[name];
    return numeric || kind === "flag" ? value : syntax.quoted(value);
  };

  /**
   * The query with a value of a filter chosen, or no longer chosen.
   *
   * @param {string} text
   * @param {string} name
   * @param {string} value
   * @param {string[]} values that the filter has
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
    // The two halves of a comparison with three sides are the same part of the text.
    return [...new Set(texts)].filter(Boolean).join(" and ");
  };

  return { ask, filterOf, spell, toggle };
})();
