// The query language: `backend:numba,nvrtc target:sm_80..sm_90 -status:built "incomplete type"`.
// docs/page.md tells of it.
"use strict";

/**
 * A word of a query; `kind` is "term", "or", "and", "not" or a parenthesis.
 *
 * @typedef {{kind: string, start: number, end: number, negated: boolean, field: string, text: string}} Word
 */

/** @typedef {{op: "term", field: string, values: string[], start: number, end: number}} Term */
/** @typedef {{op: "not", part: QueryNode}} Negation */
/** @typedef {{op: "and" | "or", parts: QueryNode[]}} Branch */
/** @typedef {Term | Negation | Branch} QueryNode */

/** A query that cannot be read; the message says why, without a full stop. */
class QueryError extends Error {}

const parser = (() => {
  const MOST_LEVELS = 100;

  /**
   * The words of a query: parentheses, or terms of a sign, a field and values.
   *
   * @param {string} query
   * @returns {Word[]}
   */
  const words = (query) => {
    const found = [];
    const pattern = /\s*(?:([()])|(-?)((?:[A-Za-z_][\w.]*:)?)((?:"[^"]*"?|[^\s()"])*))/gy;
    while (pattern.lastIndex < query.length) {
      const from = pattern.lastIndex;
      const match = pattern.exec(query);
      if (!match || !match[0].length) break;
      const [whole, parenthesis, sign, field, text] = match;
      const place = { start: from + whole.length - whole.trimStart().length, end: pattern.lastIndex };
      // A minus before a parenthesis is for all that is in it.
      if (sign && !field && !text && query[place.end] === "(")
        found.push({ kind: "not", negated: false, field: "", text: "", ...place });
      else if (parenthesis) found.push({ kind: parenthesis, negated: false, field: "", text: "", ...place });
      else if (field || text) {
        const plain = !sign && !field && !text.includes('"') ? text.toLowerCase() : "";
        const kind = ["or", "and", "not"].includes(plain) ? plain : "term";
        found.push({ kind, negated: Boolean(sign), field: field.slice(0, -1), text, ...place });
      }
    }
    return found;
  };

  /**
   * Alternatives between commas that are not within quotes.
   *
   * @param {string} text
   */
  const alternatives = (text) => (text.match(/(?:"[^"]*"?|[^,"])+/g) || []).map((part) => part.replaceAll('"', ""));

  /**
   * The known name that is most like a word, if any is.
   *
   * @param {string} word
   * @param {string[]} known
   */
  const near = (word, known) =>
    known.find((name) => name.startsWith(word) || word.startsWith(name)) ||
    known.find((name) => {
      const shared = [...word].filter((letter) => name.includes(letter)).length;
      return shared >= word.length - 1 && Math.abs(name.length - word.length) < 2;
    });

  /**
   * The term that a word is.
   *
   * @param {Word} word
   * @returns {Term | Negation}
   */
  const term = (word) => {
    let field = word.field && fields.fieldOf(word.field);
    let text = word.text;
    if (field && !Object.hasOwn(fields.FIELDS, field)) {
      // Words of messages may begin so, and no field of ours does: Error:
      if (!text.startsWith(":") && !/[A-Z]/.test(field)) {
        const other = near(field, Object.keys(fields.FIELDS));
        throw new QueryError(`there is no field “${field}”${other ? ` (did you mean “${other}”?)` : ""}`);
      }
      // A colon within a message (std::size_t) ends no field.
      text = `${word.field}:${text}`;
      field = "";
    }
    const values = field ? alternatives(text) : [text.replaceAll('"', "")].filter(Boolean);
    /** @type {Term} */
    const node = { op: "term", field, values, start: word.start, end: word.end };
    return word.negated ? { op: "not", part: node } : node;
  };

  /** Reads words one after the other: "or" between "and"s of terms, negations and parentheses. */
  class Reader {
    /** @param {Word[]} items */
    constructor(items) {
      this.items = items;
      this.at = 0;
      this.level = 0;
    }

    /** @returns {Branch} */
    or() {
      const parts = [this.and()];
      while (this.items[this.at]?.kind === "or") {
        this.at++;
        parts.push(this.and());
      }
      if (parts.length === 1) return parts[0];
      const empty = parts.findIndex((part) => !part.parts.length);
      if (empty >= 0) throw new QueryError(`“or” has nothing ${empty ? "after" : "before"} it`);
      return { op: "or", parts };
    }

    /** @returns {Branch} */
    and() {
      const parts = [];
      while (this.at < this.items.length && ![")", "or"].includes(this.items[this.at].kind)) {
        if (this.items[this.at].kind === "and") this.at++;
        else parts.push(this.one());
      }
      return { op: "and", parts };
    }

    /** @returns {QueryNode} */
    one() {
      const item = this.items[this.at++];
      if (!item || item.kind === ")") throw new QueryError("“not” has nothing after it");
      if (item.kind === "term") return term(item);
      if (item.kind !== "not" && item.kind !== "(") throw new QueryError(`“${item.kind}” has nothing before it`);
      // What comes from an address may be anything, and each level takes a part of the browser's stack.
      if (++this.level > MOST_LEVELS) throw new QueryError(`there are more than ${MOST_LEVELS} levels`);
      /** @type {QueryNode} */
      const node = item.kind === "not" ? { op: "not", part: this.one() } : this.or();
      if (item.kind === "(" && this.items[this.at++]?.kind !== ")") throw new QueryError("a parenthesis is not closed");
      this.level--;
      return node;
    }
  }

  /**
   * A query as a tree, the terms that must all hold on its first level.
   *
   * @param {string} query
   * @returns {Branch}
   * @throws {QueryError} when it cannot be read
   */
  const parse = (query) => {
    const reader = new Reader(words(query));
    const tree = reader.or();
    if (reader.at < reader.items.length) throw new QueryError("a parenthesis is closed that was never opened");
    return tree.op === "and" ? tree : { op: "and", parts: [tree] };
  };

  /**
   * A value as it is written in a query.
   *
   * @param {string} value
   */
  const quoted = (value) => (/[\s,()"]/.test(value) || value === "" ? `"${value.replaceAll('"', "")}"` : value);

  /**
   * The term of a filter: `field:a,b` on the first level, without a sign and without patterns.
   *
   * @param {Branch} tree
   * @param {string} field
   * @returns {Term | undefined}
   */
  const filterTerm = (tree, field) => {
    const plain = (/** @type {string} */ value) => !/^[<>=]|\.\.|\*/.test(value);
    for (const part of tree.parts) {
      if (part.op === "term" && part.field === field && part.values.every(plain)) return part;
    }
  };

  /**
   * The query with a value of a field chosen, or no longer chosen.
   *
   * @param {string} query
   * @param {string} field
   * @param {string} value
   */
  const toggle = (query, field, value) => {
    const found = filterTerm(parse(query), field);
    const values = found ? found.values : [];
    const next = values.includes(value) ? values.filter((item) => item !== value) : [...values, value];
    const written = next.length ? `${field}:${next.map(quoted).join(",")}` : "";
    const whole = found ? query.slice(0, found.start) + written + query.slice(found.end) : `${query} ${written}`;
    return whole.replace(/ {2,}/g, " ").trim();
  };

  return { words, parse, quoted, filterTerm, toggle };
})();
