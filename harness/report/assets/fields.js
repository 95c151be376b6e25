// The names that conditions may use, and the page's own ones. docs/page.md lists them.
"use strict";

/**
 * @typedef {object} Field
 * @property {string} kind text, words, version, flag, number, or any (the kind of the other side)
 * @property {string} about the description in completions
 * @property {string[]} [values] all values
 * @property {boolean} [parameter] whether it is a parameter of cases, whose values are texts in the data
 * @property {boolean} [numeric] whether all values of a parameter are numbers
 * @property {boolean} [filter] whether there is a filter for it above the table
 */

/**
 * Values, the index of each place's value, and the place of each cell. null means that index and place are equal.
 *
 * @typedef {{values: any[], codes: number[] | null, of: ArrayLike<number> | null}} Fact
 */

const fields = (() => {
  /** @type {Record<string, Field>} names that --where lacks */
  const OWN = { text: { kind: "text", about: "text in case, title, features, variant, toolchain, target or message" } };

  /** Names of data that load after the first view. */
  const LATER = ["text", "message", "registers", "shared", "spills", "seconds", "tensor_cores"];

  /** @type {Record<string, Field>} */
  let known = OWN;

  /** @type {Set<string>} names that parameters cannot have in conditions */
  let taken = new Set();

  /** @param {Parameter} parameter @returns {Field} */
  const ofParameter = ({ about, kind, filter, values }) => {
    const isFlag = values.every((value) => value === "true" || value === "false");
    return { kind: isFlag ? "flag" : "any", about, values, filter, parameter: true, numeric: kind === "number" };
  };

  /**
   * Set the names from the data. Call it before any other function.
   *
   * @param {Record<string, Field>} names
   * @param {Parameter[]} parameters
   */
  const learn = (names, parameters = []) => {
    taken = new Set(Object.keys(names));
    const others = parameters.filter(({ key }) => !Object.hasOwn(names, key));
    known = { ...OWN, ...names, ...Object.fromEntries(others.map((each) => [each.key, ofParameter(each)])) };
  };

  /**
   * The dimension of a parameter: its name, or `variant.NAME` if another dimension has the name.
   *
   * @param {string} name
   */
  const keyOf = (name) => (taken.has(name) ? `variant.${name}` : name);

  /**
   * The values of a name in conditions; null if a cell has none.
   *
   * @param {Matrix} matrix
   * @param {string} name
   * @returns {Fact}
   */
  const fact = (matrix, name) => {
    const { columns, cells } = matrix.facts;
    if (Object.hasOwn(columns, name)) return { values: columns[name], codes: null, of: matrix.column };
    const [row, { outcome }] = [{ codes: matrix.rows.case, of: matrix.row }, matrix];
    if (Object.hasOwn(cells, name)) return { values: cells[name], codes: matrix.outcomes.facts, of: outcome };
    if (name === "project" || name === "title")
      return { values: matrix.cases.map((item) => (name === "title" ? item.title : item.project)), ...row };
    if (name === "features") return { values: matrix.cases.map((item) => item.features.join(" ")), ...row };
    const values = matrix.marks.map((mark) => mark.good);
    if (name === "expected") return { values, codes: matrix.outcomes.mark, of: outcome };
    if (name === "message" && matrix.more) return { values: matrix.more.texts, codes: null, of: matrix.more.message };
    if (name === "tensor_cores" && matrix.more) return { ...matrix.more.cores, codes: null };
    const numbers = matrix.more?.numbers[name];
    if (numbers) return { values: numbers, codes: null, of: null };
    if (!Object.hasOwn(matrix.names, name)) return { values: [null], codes: null, of: new Uint8Array(matrix.size) };
    const lacking = ["status", "stage", "verdict"].includes(name) || matrix.parameters.some(({ key }) => key === name);
    return { values: matrix.names[name].map((value) => (lacking && !value ? null : value)), ...matrix.source(name) };
  };

  /**
   * The values of a name to choose from, in order, and the index for each place of its fact. Versions omit local parts,
   * which comparisons ignore.
   *
   * @param {Matrix} matrix
   * @param {string} name
   */
  const choices = (matrix, name) => {
    const { values, codes, of } = fact(matrix, name);
    const isVersion = known[name].kind === "version";
    const plain = values.map((value) => (isVersion ? (value ?? "").split("+")[0] : (value ?? "")));
    const found = new Set(plain);
    const order = (matrix.names[name] || []).filter((each) => found.has(each));
    const names = [...new Set([...order, ...found])].filter(Boolean);
    return { names, of, places: codes ? Array.from(codes, (code) => plain[code]) : plain };
  };

  return {
    /** Every field by its name. */
    get FIELDS() {
      return known;
    },
    LATER,
    choices,
    fact,
    keyOf,
    learn,
  };
})();
