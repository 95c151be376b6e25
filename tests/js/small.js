// Small matrices, made of cells that are spelled out.
"use strict";

const { Matrix, fields } = require("./load.js");

/** As harness/matrix/axes.py has them; tests/report/test_page_data.py holds that what the page is handed has these keys. */
const AXES = [
  { key: "topic", side: "row", kind: "word", filter: true },
  { key: "case", side: "row", kind: "name", filter: false },
  { key: "variant", side: "row", kind: "name", filter: false },
  { key: "backend", side: "column", kind: "backend", filter: true },
  { key: "library", side: "column", kind: "version", filter: true },
  { key: "toolkit", side: "column", kind: "release", filter: true, prefix: "CUDA " },
  { key: "target", side: "column", kind: "target", filter: true },
].map((axis) => ({ prefix: "", title: axis.key, about: axis.key, ...axis }));
/** Names of conditions, as harness/report/page_data.py has them. */
const named = (kind, ...names) => Object.fromEntries(names.map((name) => [name, { kind, about: name, filter: false }]));
const filtered = ["topic", "backend", "library", "toolkit", "target", "environment", "status", "stage", "verdict"];
const NAMES = {
  ...named("text", "case", "topic", "variant", "backend", "target", "environment", "status", "stage", "verdict"),
  ...named("text", "mark", "message", "title", "features", "run"),
  ...named("version", "library", "toolkit", "cc"),
  ...named("number", "registers"),
  ...named("flag", "expected", "virtual"),
};
for (const name of filtered) NAMES[name].filter = true;
fields.learn(NAMES);
const OUTCOME = ["mark", "status", "stage", "verdict", "environment", "run"];
const MARKS = [
  { key: "built", letter: "✓", word: "built", meaning: "", good: true },
  { key: "rejected", letter: "R", word: "rejected as expected", meaning: "", good: true },
  { key: "fail", letter: "F", word: "not as expected", meaning: "", good: false },
  { key: "unavailable", letter: "U", word: "unavailable", meaning: "", good: false },
  { key: "missing", letter: "?", word: "missing", meaning: "", good: false },
  { key: "unsupported", letter: "–", word: "unsupported", meaning: "", good: true },
].map((mark) => ({ ...mark, style: mark.key }));
const STAGES = ["", "preprocess", "compile", "assemble", "link"];

const PLAIN = {
  ...{ topic: "wmma", case: "wmma/fragments", variant: "", backend: "nvrtc", library: "", toolkit: "12.4" },
  ...{
    target: "sm_80",
    mark: "built",
    status: "built",
    stage: "assemble",
    verdict: "pass",
    environment: "e",
    run: "r",
  },
  ...{ message: "", registers: 40, title: "Fragments", features: ["wmma"] },
};

/** The place of a value in a list, at the end of which it is put when it is new. */
const place = (list, value) => {
  if (!list.includes(value)) list.push(value);
  return list.indexOf(value);
};

/** Facts of columns: versions without what builds and headers add, and what a target says. */
const columnFacts = ({ toolkit, target, library }, names) => ({
  toolkit: toolkit.map((code) => names.toolkit[code].split(/[+@]/)[0]),
  library: library.map((code) => names.library[code] || null),
  cc: target.map((code) => names.target[code].replace(/.*_(\d+)(\d)[af]?$/, "$1.$2")),
  virtual: target.map((code) => names.target[code].startsWith("compute_")),
});

/**
 * A matrix of cells in the order in which they are given: row by row.
 *
 * @param {object[]} some cells; what they do not say is as in `PLAIN`
 * @param {{more?: boolean, axes?: object[], parameters?: object[], variants?: object}} options whether messages and numbers are there; the axes, and
 *   what variants are made of, by their order
 */
const matrixOf = (some, { more = true, axes = AXES, parameters = [], variants = {} } = {}) => {
  const of = (side) => axes.filter((axis) => axis.side === side).map((axis) => axis.key);
  const [ROWS, COLUMNS] = [of("row"), of("column")];
  const cells = some.map((cell) => ({ ...PLAIN, ...cell }));
  const names = Object.fromEntries([...ROWS, ...COLUMNS, ...OUTCOME].map((key) => [key, []]));
  names.mark = MARKS.map((mark) => mark.key);
  names.stage = [...STAGES];
  const codes = (keys) => Object.fromEntries(keys.map((key) => [key, []]));
  const data = { rows: codes(["case", "variant", "pattern"]), columns: codes(COLUMNS), outcomes: codes(OUTCOME) };
  const [rows, columns, outcomes, patterns, texts] = [[], [], [], [], [""]];
  const code = (key, cell) => place(names[key], cell[key]);
  const add = (list, side, keys, cell) => {
    const key = JSON.stringify(keys.map((each) => cell[each]));
    const isNew = !list.includes(key);
    const at = place(list, key);
    if (isNew) for (const each of keys) side[each].push(code(each, cell));
    return [at, isNew];
  };
  const cases = [];
  const numbers = [];
  for (const cell of cells) {
    if (code("case", cell) === cases.length) {
      const { title, features } = cell;
      cases.push({ page: "x.html", topic: code("topic", cell), title, features, links: [], files: "" });
    }
    const [row, isNew] = add(rows, data.rows, ["case", "variant"], cell);
    if (isNew) data.rows.pattern.push(patterns.push([]) - 1);
    patterns[data.rows.pattern[row]].push(add(columns, data.columns, COLUMNS, cell)[0]);
    numbers.push(add(outcomes, data.outcomes, OUTCOME, cell)[0]);
  }
  const rest = {
    parameters,
    variants,
    facts: { columns: columnFacts(data.columns, names), cells: {} },
    trackers: { backends: {}, libraries: {}, searched: {}, languages: {} },
    axes,
    marks: MARKS,
    names,
    cases,
    patterns,
    cells: numbers,
    cellsPerFile: 2,
  };
  const matrix = new Matrix({ ...data, ...rest });
  const message = cells.map((cell) => place(texts, cell.message));
  if (more) matrix.more = { texts, message, numbers: { registers: cells.map((cell) => cell.registers) } };
  return matrix;
};

/** One of everything. */
const CELLS = [
  { variant: "n=1" },
  { variant: "n=1", target: "sm_90", registers: 96 },
  { variant: "n=1", target: "sm_90a", mark: "fail", status: "rejected", stage: "compile", verdict: "fail" },
  { variant: "n=1", target: "compute_80", mark: "unsupported", status: "unsupported", stage: "", registers: null },
  { variant: "n=2", backend: "numba", library: "0.59.0", mark: "missing", status: "", stage: "", registers: null },
  {
    ...{ variant: "n=2", backend: "cupy-nvrtc", library: "13.6.0", toolkit: "12.4+headers12.6", target: "sm_100" },
    ...{ mark: "rejected", status: "rejected", stage: "compile", message: "incomplete type (std::size_t)" },
  },
  {
    ...{ topic: "atomics", case: "atomics/add", title: "Adding", features: ["atomicAdd"], environment: "night" },
    ...{ backend: "cupy-nvrtc", library: "12.3.0", toolkit: "13.0", registers: 8 },
  },
  {
    ...{ topic: "atomics", case: "atomics/add", title: "Adding", features: ["atomicAdd"], toolkit: "12.4@local" },
    ...{ mark: "unavailable", status: "unavailable", stage: "", registers: null, message: "not installed" },
  },
].map((cell) => ({ ...PLAIN, ...cell }));

module.exports = { AXES, CELLS, NAMES, PLAIN, matrixOf };
