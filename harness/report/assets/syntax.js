// The syntax of conditions, a subset of Python's expressions: tokens and syntax tree.
"use strict";

/** A token. `kind` is name, text, number, symbol (including keywords) or wrong. */
/** @typedef {{kind: string, text: string, start: number, end: number}} Token */
/** @typedef {{start: number, end: number}} Place */
/** @typedef {Place & {op: string, outer?: Place, value?: any, parts?: Syntax[], links?: string[]}} Syntax */

/** An invalid condition. The message is one sentence without a full stop. */
class ConditionError extends Error {
  /** @param {string} message @param {number} position of a character, from 1; 0 if unknown */
  constructor(message, position = 0) {
    super(message);
    this.position = position;
  }
}

const syntax = (() => {
  const [MAX_LENGTH, MAX_LEVELS] = [2000, 120];
  const SYMBOLS = /** @type {Record<string, string>} each with its sides exchanged */ ({
    ...{ "==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=" },
  });
  const KEYWORDS = ["and", "or", "not", "in", "is"];
  const TOKEN = new RegExp(
    [
      /([\p{L}_][\p{L}\p{N}_]*)/u, // a name
      /((?:\d[\d_]*\.?[\d_]*|\.\d+)(?:e[+-]?\d+)?)/, // a number
      /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/, // a text
      /([=!<>]=|[<>()[\],-])/, // an operator
      /(["'].*|\S)/, // an unterminated text, or a character that conditions cannot contain
    ]
      .map(({ source }) => source)
      .join("|")
      .replace(/^.*$/s, "\\s*(?:$&)"),
    "suy",
  );

  /**
   * The tokens of a condition.
   *
   * @param {string} text
   * @returns {Token[]}
   */
  const tokens = (text) => {
    const found = [];
    TOKEN.lastIndex = 0;
    for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
      const [whole, name, number, quoted, symbol] = match;
      const start = match.index + whole.length - whole.trimStart().length;
      let kind = symbol ? "symbol" : quoted ? "text" : number ? "number" : "wrong";
      if (name) kind = KEYWORDS.includes(name) ? "symbol" : "name";
      found.push({ kind, text: whole.trimStart(), start, end: match.index + whole.length });
    }
    return found;
  };

  /** @param {string} text in quotes */
  const unquoted = (text) => {
    const known = /** @type {Record<string, string>} */ ({ n: "\n", t: "\t", r: "\r", "\n": "" });
    return text.slice(1, -1).replace(/\\(.)/gs, (all, each) => known[each] ?? (/[\\'"]/.test(each) ? each : all));
  };

  /** @param {string} value */
  const quoted = (value) => `"${value.replace(/[\\"]/g, "\\$&")}"`;

  /** @param {string} text in Python's notation */
  const repr = (text) =>
    text.includes("'") && !text.includes('"') ? `"${text}"` : `'${text.replace(/[\\']/g, "\\$&")}'`;

  /** @param {Syntax} node @returns {Place} with the parentheses around it */
  const placeOf = ({ outer, start, end }) => outer || { start, end };

  /** @param {Syntax[]} parts */
  const around = (parts) => ({ start: placeOf(parts[0]).start, end: placeOf(parts[parts.length - 1]).end });

  /** Parses tokens: "or" between "and"s of negations and comparisons. */
  class Parser {
    /** @param {string} text */
    constructor(text) {
      this.text = text;
      this.tokens = tokens(text);
      this.at = 0;
      this.level = 0;
    }

    /** @param {string[]} texts symbols @returns {string} the next token if it is one of these, else empty */
    next(...texts) {
      const { kind, text } = this.tokens[this.at] || { kind: "", text: "" };
      if (kind !== "symbol" || !texts.includes(text)) return "";
      this.at++;
      return text;
    }

    /** @returns {ConditionError} */
    wrong() {
      const token = this.tokens[this.at];
      const why = token ? "invalid syntax" : "something is missing at its end";
      const start = token?.start ?? this.text.trimEnd().length;
      return this.refuse(start, `cannot read the condition ${repr(this.text.trim())}: ${why}`);
    }

    /** @param {number} start @param {string} message */
    refuse(start, message) {
      return new ConditionError(message, [...this.text.slice(0, start)].length + 1);
    }

    /** @returns {Syntax} */
    whole() {
      const size = [...this.text.trim()].length;
      if (size > MAX_LENGTH)
        throw new ConditionError(`a condition may have ${MAX_LENGTH} characters, this one has ${size}`);
      const tree = this.branch("or");
      if (this.at < this.tokens.length) throw this.wrong();
      return tree;
    }

    /** @param {"or" | "and"} op @returns {Syntax} */
    branch(op) {
      const parts = [];
      do parts.push(op === "or" ? this.branch("and") : this.negation());
      while (this.next(op));
      if (parts.length === 1) return parts[0];
      return { op, parts, ...around(parts) };
    }

    /** @returns {Syntax} */
    negation() {
      // An address may contain anything, and each level uses stack of the browser.
      if (++this.level > MAX_LEVELS)
        throw new ConditionError(`a condition may be nested ${MAX_LEVELS} levels deep, and this one is deeper`);
      const start = this.tokens[this.at]?.start;
      const part = this.next("not") ? this.negation() : null;
      const found = part ? { op: "not", parts: [part], ...around([part]), start } : this.comparison();
      this.level--;
      return found;
    }

    /** @returns {Syntax} */
    comparison() {
      const parts = [this.operand()];
      const links = [];
      for (let link = this.link(); link; link = this.link()) {
        links.push(link);
        parts.push(this.operand());
      }
      if (!links.length) return parts[0];
      return { op: "compare", parts, links, ...around(parts) };
    }

    link() {
      const found = this.next(...Object.keys(SYMBOLS), "in", "is");
      if (found === "is") this.next("not");
      if (found || !this.next("not")) return found;
      if (!this.next("in")) throw this.wrong();
      return "not in";
    }

    /** @returns {Syntax} */
    operand() {
      const token = this.tokens[this.at];
      const { kind = "", text = "", start = 0, end = 0 } = token || {};
      if (kind === "symbol" && ["(", "["].includes(text)) return this.group(text === "(" ? ")" : "]");
      if (this.next("-")) {
        const part = this.operand();
        if (part.op !== "value" || typeof part.value !== "number") return { ...part, op: "other", start };
        return { ...part, value: -part.value, start };
      }
      if (!["name", "text", "number"].includes(kind)) throw this.wrong();
      this.at++;
      if (kind === "number") return { op: "value", value: Number(text.replaceAll("_", "")), start, end };
      if (kind === "text") return { op: "value", value: unquoted(text), start, end };
      if (/^([tT]rue|[fF]alse)$/.test(text)) return { op: "value", value: /^t/i.test(text), start, end };
      return { op: text === "None" ? "other" : "name", value: text, start, end };
    }

    /** @param {")" | "]"} close @returns {Syntax} the content of parentheses: a list, or one part */
    group(close) {
      const { start } = this.tokens[this.at++];
      const parts = [];
      let isList = close === "]";
      while (!this.next(close)) {
        parts.push(this.branch("or"));
        const comma = this.next(",");
        isList ||= Boolean(comma);
        if (!comma && this.tokens[this.at]?.text !== close) throw this.wrong();
      }
      const { end } = this.tokens[this.at - 1];
      return isList || !parts.length ? { op: "list", parts, start, end } : { ...parts[0], outer: { start, end } };
    }
  }

  return { SYMBOLS, Parser, tokens, quoted, unquoted, repr, placeOf };
})();
