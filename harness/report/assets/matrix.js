// The matrix in numbers: the row, column and outcome of each cell. docs/page.md describes the data's format.
"use strict";

/**
 * An axis, as in harness/matrix/axes.py.
 *
 * @typedef {object} Axis
 * @property {string} key
 * @property {string} title title in headings
 * @property {"row" | "column"} side
 * @property {string} about description
 * @property {string} kind kind of its values: name, word, backend, version, release, target
 * @property {boolean} filter whether there is a filter for it above the table
 * @property {string} prefix text before a value in headings
 * @property {boolean} optional whether the first records lack it
 */
/**
 * A parameter of variants, or a header library: a dimension of rows (harness/matrix/axes.py).
 *
 * @typedef {Axis & {values: string[], library: boolean}} Parameter
 */
/**
 * The form for a new issue by backend and by header library; by backend also its language, and the library whose
 * releases `cumatrix bisect` can search (harness/protocol/text.py).
 *
 * @typedef {Record<"backends" | "libraries" | "searched" | "languages", Names>} Trackers
 * @typedef {Record<string, string>} Names
 */
/** @typedef {{key: string, letter: string, word: string, meaning: string, good: boolean, style: string}} Mark */
/** @typedef {{page: string, topic: number, title: string, features: string[], links: string[], files: string,
 * code: string, project: string}} Case */
/** @typedef {Record<string, number[]>} Codes by dimension, indices of its names */
/**
 * @typedef {object} More
 * @property {string[]} texts
 * @property {number[]} message index of each cell's text
 * @property {Record<string, (number | null)[]>} numbers
 * @property {{values: (string | null)[], of: number[]}} cores tensor core instructions, and the index of each cell's
 */

/**
 * The content of data/matrix.js.
 *
 * @typedef {object} MatrixData
 * @property {Axis[]} axes axes of rows, outermost first, then axes of columns
 * @property {Parameter[]} parameters parts of variants
 * @property {Codes} variants by parameter, the index of each variant's value, from 1; 0 for none
 * @property {Record<string, Field>} conditions names that conditions may use
 * @property {{columns: Record<string, any[]>, cells: Record<string, any[]>}} facts of columns, and of
 *   the numbers in outcomes.facts
 * @property {Trackers} trackers
 * @property {Mark[]} marks the legend
 * @property {Record<string, string[]>} names every value of every dimension
 * @property {Case[]} cases
 * @property {Codes} rows case, variant and further axes of each row, and the index of its columns' pattern
 * @property {Codes} columns
 * @property {number[][]} patterns the columns of a row
 * @property {Codes} outcomes
 * @property {number[]} cells outcome of each cell, row by row
 * @property {number} cellsPerFile
 */

/**
 * The value of a parameter for each row. Rows without a value come last.
 *
 * @param {MatrixData} data
 * @param {string} key
 * @param {number} none
 */
const codesOfRows = ({ rows, variants }, key, none) =>
  rows.variant.map((variant) => (variants[key][variant] ? variants[key][variant] - 1 : none));

/** The matrix: facts about cells by their number. */
class Matrix {
  /** @param {MatrixData} data */
  constructor(data) {
    this.axes = data.axes;
    this.marks = data.marks;
    /** Values of names in conditions. */
    this.facts = data.facts;
    /** @type {Parameter[]} */
    this.parameters = data.parameters.map((item) => ({ ...item, key: fields.keyOf(item.key) }));
    this.names = {
      ...data.names,
      ...Object.fromEntries(this.parameters.map(({ key, values }) => [key, [...values, ""]])),
    };
    this.cases = data.cases;
    const { pattern: shapes, ...rows } = data.rows;
    this.shapes = shapes;
    /** @type {Codes} */
    this.rows = {
      ...rows,
      topic: data.rows.case.map((place) => data.cases[place].topic),
      ...Object.fromEntries(
        data.parameters.map(({ key, values }) => [fields.keyOf(key), codesOfRows(data, key, values.length)]),
      ),
    };
    this.columns = data.columns;
    this.outcomes = data.outcomes;
    this.patterns = data.patterns;
    this.cellsPerFile = data.cellsPerFile;
    this.trackers = data.trackers;
    this.size = data.cells.length;
    this.row = new Uint32Array(this.size);
    this.column = new Uint32Array(this.size);
    this.outcome = Uint32Array.from(data.cells);
    let at = 0;
    shapes.forEach((pattern, row) => {
      for (const column of data.patterns[pattern]) {
        this.row[at] = row;
        this.column[at++] = column;
      }
    });
    /** The parts of a link to a cell. The topic is omitted, because a case has one topic. */
    this.addressed = this.axes.map((axis) => axis.key).filter((key) => key !== "topic");
    // Later axes: a link to a cell without a value of any of them omits all of them, as earlier links do.
    this.later = this.axes.filter((axis) => axis.optional).map((axis) => axis.key);
    /** @type {Map<string, Uint32Array>} */
    this.known = new Map();
    /** @type {More | null} messages and numbers, which load after the first view */
    this.more = null;
  }

  /**
   * An axis or a parameter.
   *
   * @param {string} key
   */
  dimension(key) {
    return this.axes.find((axis) => axis.key === key) || this.parameters.find((item) => item.key === key);
  }

  /** The stages of a compilation, in order. */
  get stages() {
    return this.names.stage.filter(Boolean);
  }

  /**
   * A value in the form of headings: "12.4+headers12.6" of the toolkit becomes "CUDA 12.4, headers 12.6",
   * "12.9@bundled" becomes "CUDA 12.9, bundled", and "5.2@rocm" becomes "ROCm 5.2".
   *
   * @param {string} dimension
   * @param {string} name
   */
  label(dimension, name) {
    const prefix = this.dimension(dimension)?.prefix;
    if (prefix && name.endsWith("@rocm")) return `ROCm ${name.replace("@rocm", "")}`;
    return prefix && name ? prefix + name.replace("+headers", ", headers ").replace("@bundled", ", bundled") : name;
  }

  /**
   * The label of a cell: its case, the other values of its row, its backend with a version, releases, its target.
   *
   * @param {number} cell
   */
  describe(cell) {
    const value = (/** @type {Axis} */ axis) => this.label(axis.key, this.value(cell, axis.key));
    const rest = this.axes.filter(({ key }) => !["topic", "case", "target"].includes(key));
    const rows = rest.filter(({ side }) => side === "row");
    const tool = rest.filter(({ side, prefix }) => side === "column" && !prefix);
    const releases = rest.filter(({ side, prefix }) => side === "column" && prefix);
    return {
      case: this.value(cell, "case"),
      variant: rows.map(value).filter(Boolean).join(" "),
      toolchain: [tool.map(value).filter(Boolean).join(" "), ...releases.map(value), this.value(cell, "target")]
        .filter(Boolean)
        .join(" · "),
    };
  }

  /**
   * The source of a dimension's values: an array of codes, and the index of each cell's code.
   *
   * @param {string} dimension
   */
  source(dimension) {
    if (Object.hasOwn(this.rows, dimension)) return { codes: this.rows[dimension], of: this.row };
    if (Object.hasOwn(this.columns, dimension)) return { codes: this.columns[dimension], of: this.column };
    if (Object.hasOwn(this.outcomes, dimension)) return { codes: this.outcomes[dimension], of: this.outcome };
    throw new RangeError(`no dimension "${dimension}"`);
  }

  /**
   * The index of each cell's value of a dimension.
   *
   * @param {string} dimension
   * @returns {Uint32Array}
   */
  codesOf(dimension) {
    let found = this.known.get(dimension);
    if (!found) {
      const { codes, of } = this.source(dimension);
      found = Uint32Array.from(of, (place) => codes[place]);
      this.known.set(dimension, found);
    }
    return found;
  }

  /**
   * The value of a dimension of a cell.
   *
   * @param {number} cell
   * @param {string} dimension
   */
  value(cell, dimension) {
    const { codes, of } = this.source(dimension);
    return this.names[dimension][codes[of[cell]]];
  }

  /** @param {number} cell */
  mark(cell) {
    return this.marks[this.outcomes.mark[this.outcome[cell]]];
  }

  /**
   * The file of data with a cell's details.
   *
   * @param {number} cell
   */
  chunk(cell) {
    return `cells-${Math.floor(cell / this.cellsPerFile)}`;
  }

  /**
   * The id of a cell.
   *
   * @param {number} cell
   * @param {string} rest the text after the target; an id that does not follow from the cell's place is complete
   */
  id(cell, rest = "") {
    if (rest && !rest.startsWith(" ")) return rest;
    const value = (/** @type {string} */ key) => this.value(cell, key);
    const variant = value("variant") && `[${value("variant")}]`;
    const library = value("library") && `@${value("library")}`;
    return `${value("case")}${variant} ${value("backend")}${library} cuda${value("toolkit")} ${value("target")}${rest}`;
  }

  /**
   * The values in a link to a cell, from the case to the target.
   *
   * @param {number} cell
   */
  address(cell) {
    const all = this.later.some((key) => this.value(cell, key));
    const keys = this.addressed.filter((key) => all || !this.later.includes(key));
    return keys.map((key) => this.value(cell, key).replace(/[%;]/g, encodeURIComponent)).join(";");
  }

  /**
   * The cell of a link, or -1.
   *
   * @param {string} address
   */
  find(address) {
    const parts = address.split(";").map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
    const all = parts.length >= this.addressed.length;
    const named = this.addressed.filter((key) => all || !this.later.includes(key));
    /** @param {string} key */
    const wanted = (key) => (named.includes(key) ? parts[named.indexOf(key)] : "");
    const codes = new Map(this.addressed.map((key) => [key, this.names[key].indexOf(wanted(key))]));
    /** @param {Codes} side @param {number} at */
    const is = (side, at) =>
      this.addressed.every((key) => !Object.hasOwn(side, key) || side[key][at] === codes.get(key));
    const row = this.rows.case.findIndex((_, at) => is(this.rows, at));
    const column = this.columns.backend.findIndex((_, at) => is(this.columns, at));
    if (row < 0 || column < 0) return -1;
    let at = 0;
    for (let before = 0; before < row; before++) at += this.patterns[this.shapes[before]].length;
    const place = this.patterns[this.shapes[row]].indexOf(column);
    return place < 0 ? -1 : at + place;
  }

  /**
   * The compiler's message about a cell, after the texts are loaded.
   *
   * @param {number} cell
   */
  message(cell) {
    return this.more ? this.more.texts[this.more.message[cell]] : "";
  }
}
