// Conditions: `backend == "numba" and cc >= "8.0"`. The same language as harness/model/condition.py.
"use strict";

/** @typedef {Place & {op: "and" | "or", parts: Tree[]}} Branch */
/** @typedef {Place & {op: "not", part: Tree}} Negation */
/** @typedef {Place & {op: "constant", value: boolean}} Constant */
/**
 * A test of one fact. `equal` is true if it selects values: `name == "a"`, `name in ("a", "b")`.
 *
 * @typedef {Place & {op: "test", name: string, holds: (value: any) => boolean, equal: boolean}} Test
 */
/** @typedef {Branch | Negation | Constant | Test} Tree */

const condition = (() => {
  const { SYMBOLS, repr } = syntax;
  const MANY = 60;

  /** @param {string} a @param {string} b @returns {number} letters in common, as counted by Python's difflib */
  const common = (a, b) => {
    let [size, left, right] = [0, 0, 0];
    for (let i = 0; i < a.length; i++)
      for (let j = 0; j < b.length; j++) {
        let k = 0;
        while (i + k < a.length && a[i + k] === b[j + k]) k++;
        if (k > size) [size, left, right] = [k, i, j];
      }
    if (!size) return 0;
    return size + common(a.slice(0, left), b.slice(0, right)) + common(a.slice(left + size), b.slice(right + size));
  };

  /**
   * The nearest known name, or all known names. The same as harness/errors.py.
   *
   * @param {string} word
   * @param {string[]} names
   */
  const didYouMean = (word, names) => {
    const known = names.map((name) => name || '""');
    /** @param {string} each */
    const ratio = (each) => (2 * common(each, word)) / (each.length + word.length);
    const [best] = known.filter((each) => ratio(each) >= 0.6).sort((a, b) => ratio(b) - ratio(a) || (a < b ? 1 : -1));
    if (best !== undefined) return ` (did you mean "${best}"?)`;
    const listed = known.length > MANY ? [...known.slice(0, 3), "…", ...known.slice(-3)] : known;
    return listed.length ? `; known are ${listed.join(", ")}` : "";
  };

  /** @param {any} value a boolean as the number that it is in Python */
  const number = (value) => (typeof value === "boolean" ? Number(value) : value);

  /**
   * Compare a fact with a value. Different types are unequal and have no order.
   *
   * @param {any} found
   * @param {string} symbol
   * @param {any} value
   */
  const compare = (found, symbol, value) => {
    const [a, b] = [number(found), number(value)];
    if (typeof a !== typeof b) return symbol === "!=";
    if (symbol === "==" || symbol === "!=") return (a === b) === (symbol === "==");
    return symbol[0] === "<" ? a < b || (a === b && symbol === "<=") : a > b || (a === b && symbol === ">=");
  };

  /**
   * A parameter's value, which is a text in the data, converted to the type of another value.
   *
   * @param {string} text
   * @param {any} value
   */
  const like = (text, value) => {
    if (typeof value === "boolean") return text === "true" ? true : text === "false" ? false : null;
    if (typeof value === "string") return text;
    return text.trim() === "" || Number.isNaN(Number(text)) ? null : Number(text);
  };

  /** Checks a parsed condition against the known names. */
  class Reader {
    /** @param {InstanceType<typeof syntax.Parser>} source @param {Record<string, Field>} names */
    constructor(source, names) {
      this.source = source;
      this.names = names;
    }

    /** @param {Syntax} node @param {string} message */
    wrong(node, message) {
      return this.source.refuse(node.start, message);
    }

    /** @param {Syntax} node @returns {string} in Python's notation */
    spell({ op, value, start, end }) {
      if (op === "value" && typeof value === "string") return repr(value);
      return this.source.text.slice(start, end);
    }

    /** @param {Syntax} node @returns {Tree} */
    test(node) {
      const { op, value } = node;
      const place = syntax.placeOf(node);
      const parts = node.parts || [];
      if (op === "and" || op === "or") return { op, parts: parts.map((part) => this.test(part)), ...place };
      if (op === "not") return { op, part: this.test(parts[0]), ...place };
      if (op === "compare") {
        const links = (node.links || []).map((link, at) => this.compare(parts[at], link, parts[at + 1], place));
        if (links.length === 1) return links[0];
        return { op: "and", parts: links.map((link) => ({ ...link, equal: false })), ...place };
      }
      if (op === "value" && typeof value === "boolean") return { op: "constant", value, ...place };
      if (op !== "name")
        throw this.wrong(
          node,
          `${repr(this.spell(node))} is not allowed here: use names, comparisons, and, or, not, in`,
        );
      if (this.field(node).kind !== "flag")
        throw this.wrong(node, `${repr(value)} is not true or false by itself: compare it with something`);
      const holds = (/** @type {any} */ found) => found === true || found === "true";
      return { op: "test", name: value, holds, equal: false, ...place };
    }

    /** @param {Syntax} left @param {string} link @param {Syntax} right @param {Place} place @returns {Tree} */
    compare(left, link, right, place) {
      if (link === "in") return this.member(left, right, place);
      if (link === "not in") return { op: "not", part: this.member(left, right, place), ...place };
      if (!SYMBOLS[link]) throw this.wrong(left, "compare with ==, !=, <, <=, >, >= or in");
      const flip = right.op === "name";
      const [node, other, symbol] = flip ? [right, left, SYMBOLS[link]] : [left, right, link];
      if (node.op !== "name")
        throw this.wrong(
          node,
          `${repr(this.spell(node))}: a comparison needs a name on one side, a value on the other`,
        );
      if (other.op !== "value")
        throw this.wrong(
          other,
          `${repr(this.spell(other))} is not a value: write a text in quotes, a number, true or false`,
        );
      const holds = this.compareName(node, symbol, other.value, other);
      return { op: "test", name: node.value, holds, equal: symbol === "==", ...place };
    }

    /** @param {Syntax} left @param {Syntax} right @param {Place} place @returns {Test} */
    member(left, right, place) {
      if (left.op === "name" && right.op === "list") {
        const parts = (right.parts || []).map((item) => /** @type {Test} */ (this.compare(left, "==", item, place)));
        const holds = (/** @type {any} */ found) => parts.some((part) => part.holds(found));
        return { op: "test", name: left.value, holds, equal: true, ...place };
      }
      if (left.op !== "value" || typeof left.value !== "string" || right.op !== "name")
        throw this.wrong(left, 'write "in" as: name in ("a", "b"), or "part" in name');
      const [name, part] = [right.value, left.value.toLowerCase()];
      const { kind, values, parameter } = this.field(right);
      if (!["text", "words", "any"].includes(kind))
        throw this.wrong(right, `${name} is not a text: compare it with ==, or write ${name} in (…, …)`);
      const holds = (/** @type {any} */ found) => typeof found === "string" && found.toLowerCase().includes(part);
      if (values && !parameter && !values.some(holds)) {
        const hint = didYouMean(left.value, values);
        throw this.wrong(left, `${repr(left.value)} is in no ${name}${hint}`);
      }
      return { op: "test", name, holds, equal: false, ...place };
    }

    /** @param {Syntax} node @param {string} symbol @param {any} value @param {Syntax} right @returns {Test["holds"]} */
    compareName(node, symbol, value, right) {
      const name = node.value;
      const { kind: ofName, values, parameter } = this.field(node);
      const isText = typeof value === "string";
      const isWords = ofName === "words";
      // A text compares with each of the words, and a number with their count.
      const kind = isWords ? (isText ? "text" : "number") : ofName;
      if (kind === "version" || (isText && parameter && values?.every(versions.parse))) {
        if (!isText) {
          const text = `compare it with a text such as ${name} ${symbol} "${this.spell(right)}"`;
          throw this.wrong(right, `${name} is a version: ${text}`);
        }
        const fits = versions.specifier(symbol + value);
        if (!fits)
          throw this.wrong(right, `${name} ${symbol} ${repr(value)} is not a comparison of versions (PEP 440)`);
        return fits;
      }
      const isEquality = symbol === "==" || symbol === "!=";
      if (values && !parameter && isEquality && !values.includes(value)) {
        const hint = didYouMean(isText ? value : this.spell(right), values);
        throw this.wrong(right, `${name} is never ${this.spell(right)}${hint}`);
      }
      if (kind === "text" && !isText)
        throw this.wrong(right, `${name} is a text: compare it with "${this.spell(right)}"`);
      if (kind === "number" && typeof value !== "number")
        throw this.wrong(right, `${name} is a number: compare it with one, such as ${name} ${symbol} 64`);
      if (!isEquality && (kind === "text" || (parameter && isText)))
        throw this.wrong(node, `${name} is a text: compare it with == or !=`);
      return (found) => {
        const counted = isWords && !isText && found !== null;
        const own = counted ? found.split(" ").filter(Boolean).length : parameter ? like(found, value) : found;
        return own !== null && compare(own, symbol, value);
      };
    }

    /** @param {Syntax} node @returns {Field} */
    field(node) {
      if (Object.hasOwn(this.names, node.value)) return this.names[node.value];
      const hint = didYouMean(node.value, Object.keys(this.names));
      throw this.wrong(node, `unknown name ${repr(node.value)}${hint}`);
    }
  }

  /**
   * Parse a condition. An empty condition always holds.
   *
   * @param {string} text
   * @param {Record<string, Field>} names
   * @returns {Tree}
   * @throws {ConditionError}
   */
  const parse = (text, names) => {
    if (!text.trim()) return { op: "and", parts: [], start: 0, end: 0 };
    const parser = new syntax.Parser(text);
    return new Reader(parser, names).test(parser.whole());
  };

  return { parse };
})();
