// The matrix in numbers: for each cell its row, its column and its outcome. docs/page.md tells of the data's format.
"use strict";

/**
 * An axis, as harness/matrix/axes.py has it.
 *
 * @typedef {object} Axis
 * @property {string} key
 * @property {string} title what headings call it
 * @property {"row" | "column"} side
 * @property {string} about what it is
 * @property {string} kind what its values are: name, word, backend, version, release, target
 * @property {boolean} filter whether there is a filter for it above the table
 * @property {string} prefix what stands before a value in headings
 * @property {boolean} optional whether it came after the first records
 */
/**
 * A parameter of variants, or a header library: a dimension of rows (harness/matrix/axes.py).
 *
 * @typedef {Axis & {values: string[], library: boolean}} Parameter
 */
/**
 * By backend and by header library the form for a new issue; by backend its language, and the library whose releases
 * can be searched (harness/protocol/text.py).
 *
 * @typedef {Record<"backends" | "libraries" | "searched" | "languages", Names>} Trackers
 * @typedef {Record<string, string>} Names
 */
/** @typedef {{key: string, letter: string, word: string, meaning: string, good: boolean, style: string}} Mark */
/** @typedef {{page: string, topic: number, title: string, features: string[], links: string[], files: string,
 * code: string, project: string}} Case */
/** @typedef {Record<string, number[]>} Codes by dimension, numbers into the names of that dimension */
/**
 * @typedef {object} More
 * @property {string[]} texts
 * @property {number[]} message place of its text, for each cell
 * @property {Record<string, (number | null)[]>} numbers
 * @property {{values: (string | null)[], of: number[]}} cores for tensor cores: instructions, and those of each cell
 */

/**
 * What data/matrix.js holds.
 *
 * @typedef {object} MatrixData
 * @property {Axis[]} axes those of rows, from the outermost on, then those of columns
 * @property {Parameter[]} parameters what variants are made of
 * @property {Codes} variants by parameter the place of the value that each variant has, from 1; 0 for none
 * @property {Record<string, Field>} conditions names that conditions may use
 * @property {{columns: Record<string, any[]>, cells: Record<string, any[]>}} facts of columns, and of
 *   the numbers in outcomes.facts
 * @property {Trackers} trackers
 * @property {Mark[]} marks the legend
 * @property {Record<string, string[]>} names every value of every dimension
 * @property {Case[]} cases
 * @property {Codes} rows case, variant and further axes of each row, and the pattern of its columns
 * @property {Codes} columns
 * @property {number[][]} patterns which columns a row has
 * @property {Codes} outcomes
 * @property {number[]} cells outcome of each cell, row by row
 * @property {number} cellsPerFile
 */

/**
 * Which value of a parameter each row has; those that have none come last.
 *
 * @param {MatrixData} data
 * @param {string} key
 * @param {number} none
 */
const codesOfRows = ({ rows, variants }, key, none) =>
  rows.variant.map((variant) => (variants[key][variant] ? variants[key][variant] - 1 : none));

/** The matrix: what is asked of cells by their number. */
class Matrix {
  /** @param {MatrixData} data */
  constructor(data) {
    this.axes = data.axes;
    this.marks = data.marks;
    /** Values of names of conditions. */
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
    /** What a link to a cell is made of: a case is of one topic, so that need not be said. */
    this.addressed = this.axes.map((axis) => axis.key).filter((key) => key !== "topic");
    // Axes that came later: links to cells that have nothing of them leave them out, as links of before do.
    this.later = this.axes.filter((axis) => axis.optional).map((axis) => axis.key);
    /** @type {Map<string, Uint32Array>} */
    this.known = new Map();
    /** @type {More | null} messages and numbers, which come after the first look */
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
   * A value as headings have it: "12.4+headers12.6" of the toolkit becomes "CUDA 12.4, headers 12.6",
   * "12.9@bundled" "CUDA 12.9, bundled", and "5.2@rocm" "ROCm 5.2".
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
   * What a cell is called: its case, what else its row has, its backend with a version, releases, its target.
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
   * Where the values of a dimension are: one array of codes, and which of them each cell has.
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
   * Number of the value of a dimension, for each cell.
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
   * The file of data that tells of a cell.
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
   * @param {string} rest what follows the target; an id that is not made of the cell's place is whole
   */
  id(cell, rest = "") {
    if (rest && !rest.startsWith(" ")) return rest;
    const value = (/** @type {string} */ key) => this.value(cell, key);
    const variant = value("variant") && `[${value("variant")}]`;
    const library = value("library") && `@${value("library")}`;
    return `${value("case")}${variant} ${value("backend")}${library} cuda${value("toolkit")} ${value("target")}${rest}`;
  }

  /**
   * What a link to a cell says: its values, from the case to the target.
   *
   * @param {number} cell
   */
  address(cell) {
    const all = this.later.some((key) => this.value(cell, key));
    const keys = this.addressed.filter((key) => all || !this.later.includes(key));
    return keys.map((key) => this.value(cell, key).replace(/[%;]/g, encodeURIComponent)).join(";");
  }

  /**
   * The cell that a link names, or -1.
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
   * What the compiler said of a cell, once the texts are there.
   *
   * @param {number} cell
   */
  message(cell) {
    return this.more ? this.more.texts[this.more.message[cell]] : "";
  }
}
