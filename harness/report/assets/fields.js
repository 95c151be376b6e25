// The fields of the query language. docs/page.md tells of them.
"use strict";

/**
 * @typedef {object} Field
 * @property {string} about what the completion says of it
 * @property {boolean} [exact] values are matched whole
 * @property {boolean} [version] values have an order, and 12 stands for every 12.x
 * @property {boolean} [target] values are architectures
 * @property {boolean} [ordered] values are in the order of their names
 * @property {string} [number] the number that it asks for
 * @property {boolean} [more] what it asks for comes after the first look
 * @property {boolean} [numeric] values are numbers, written out
 * @property {boolean} [filter] there is a filter for it above the table
 */

const fields = (() => {
  /** @type {Record<string, Partial<Field>>} how values are matched, by the kind of an axis (harness/matrix/axes.py) */
  const KINDS = {
    name: {},
    word: { exact: true },
    backend: { exact: true },
    version: { version: true },
    number: { numeric: true },
    release: { version: true },
    target: { target: true },
  };

  /** @type {Record<string, Field>} */
  const OTHERS = {
    feature: { about: "feature of CUDA that the case shows" },
    title: { about: "title of the case" },
    status: { exact: true, filter: true, about: "what happened" },
    verdict: { exact: true, filter: true, about: "what it means against the expectation" },
    stage: { exact: true, ordered: true, filter: true, about: "how far it got" },
    mark: { exact: true, about: "what the cell shows" },
    is: { exact: true, about: "unexpected, expected, missing, run" },
    environment: { filter: true, about: "environment that it ran in" },
    run: { about: "name of the run" },
    message: { more: true, about: "text of the first diagnostic, or the reason" },
    registers: { more: true, number: "registers", about: "most registers of its kernels" },
    shared: { more: true, number: "shared", about: "most static shared memory, in bytes" },
    spills: { more: true, number: "spills", about: "most spilled bytes" },
    seconds: { more: true, number: "seconds", about: "time to compile" },
  };

  /** @type {Record<string, Field>} */
  let known = OTHERS;

  /** @type {Set<string>} what no parameter can be called */
  let taken = new Set();

  /** @type {Record<string, string>} */
  const ALIASES = {
    cuda: "toolkit",
    arch: "target",
    version: "library",
    lib: "library",
    says: "message",
    env: "environment",
    regs: "registers",
    feat: "feature",
  };

  /**
   * Take axes and parameters of the data for fields; to be called before anything is asked.
   *
   * @param {Axis[]} axes
   * @param {Parameter[]} parameters
   */
  const learn = (axes, parameters = []) => {
    /** @param {(Axis | Parameter)[]} items @param {(name: string) => string} name */
    const made = (items, name = (key) => key) =>
      Object.fromEntries(items.map(({ key, about, kind, filter }) => [name(key), { about, filter, ...KINDS[kind] }]));
    known = { ...made(axes), ...OTHERS };
    taken = new Set([...Object.keys(known), ...Object.keys(ALIASES), "pattern"]);
    known = { ...known, ...made(parameters, keyOf) };
  };

  /**
   * The field of a parameter: its name, or `variant.NAME` where a field is called so, or a short name of one.
   *
   * @param {string} name
   */
  const keyOf = (name) => (taken.has(name) ? `variant.${name}` : name);

  /** @type {Record<string, (mark: Mark) => boolean>} what `is:` asks of a mark */
  const IS = {
    unexpected: (mark) => !mark.good,
    expected: (mark) => mark.good,
    missing: (mark) => mark.key === "missing",
    run: (mark) => !["missing", "unsupported", "unavailable"].includes(mark.key),
  };

  /**
   * The name of a field that is meant by a word of a query: itself, but for short names.
   *
   * @param {string} word
   */
  const fieldOf = (word) => {
    if (word.startsWith("variant.")) return keyOf(word.slice("variant.".length));
    return Object.hasOwn(ALIASES, word) ? ALIASES[word] : word;
  };

  return {
    /** Every field by its name. */
    get FIELDS() {
      return known;
    },
    IS,
    fieldOf,
    keyOf,
    learn,
  };
})();
