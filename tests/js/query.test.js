"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { ConditionError, query } = require("./load.js");
const { CELLS, matrixOf } = require("./small.js");

const matrix = matrixOf(CELLS);
const chosen = (text, of = matrix) => {
  const { mask } = query.ask(of, text);
  return [...mask.keys()].filter((cell) => mask[cell]);
};

// The numbers are places in CELLS of small.js. What conditions mean is in condition.test.js.
describe("a query chooses cells", () => {
  for (const [text, wanted] of [
    ["", [0, 1, 2, 3, 4, 5, 6, 7]],
    ['backend == "nvrtc"', [0, 1, 2, 3, 7]],
    ['cc >= "9.0" and not virtual', [1, 2, 5]],
    ['toolkit == "12.4"', [0, 1, 2, 3, 4, 5, 7]],
    ['library < "13"', [4, 6]],
    ['stage in ("assemble", "link")', [0, 1, 6]],
    ['status == "built"', [0, 1, 6]],
    ['status != "built"', [2, 3, 5, 7]],
    ["not expected", [2, 4, 7]],
    ["expected", [0, 1, 3, 5, 6]],
    ['mark in ("rejected", "missing")', [4, 5]],
    ['"wmma/" in case', [0, 1, 2, 3, 4, 5]],
    ['variant == "n=1"', [0, 1, 2, 3]],
    ['"ATOMIC" in features', [6, 7]],
    ['title == "Adding"', [6, 7]],
    ["registers > 40", [1]],
    ["registers in (8, 96)", [1, 6]],
    ['"incomplete type" in message', [5]],
    ['topic == "atomics" or variant == "n=2"', [4, 5, 6, 7]],
    ["true", [0, 1, 2, 3, 4, 5, 6, 7]],
    ["false", []],
  ]) {
    it(text || "nothing", () => assert.deepEqual(chosen(text), wanted));
  }
});

describe("words without an operator, or one text in quotes, search", () => {
  for (const [text, wanted] of [
    ["incomplete type", [5]],
    ['"incomplete type"', [5]],
    ["'(std::size_t)'", [5]],
    ["std::size_t", [5]],
    ["Error:oops", []],
    ["installed", [7]],
    ["numba", [4]],
    ["sm_90", [1, 2]],
    ["adding", [6, 7]],
    ["atomicadd", [6, 7]],
    ['"and" in text', []],
    ['"sm_90" in text and registers > 40', [1]],
    ["virtual", [3]],
  ]) {
    it(text, () => assert.deepEqual(chosen(text), wanted));
  }
});

it("a field and a colon are refused with what to write instead", () => {
  for (const text of ["backend:numba", "-backend:numba sm_80"]) {
    const error = new ConditionError('write backend == "…" instead of backend:…');
    assert.throws(() => query.ask(matrix, text), { message: error.message });
  }
});

it("messages and numbers let everything through until they are there", () => {
  const early = matrixOf(CELLS, { more: false });
  assert.equal(query.ask(early, "registers > 40").needsMore, true);
  assert.equal(chosen("registers > 40", early).length, CELLS.length);
  assert.deepEqual(chosen("numba", early), [4]);
  assert.equal(query.ask(early, 'backend == "numba"').needsMore, false);
  assert.equal(query.ask(early, 'not (backend == "numba" or "tile" in text)').needsMore, true);
});

it("cells know whether they fail one part or more, and which", () => {
  const { misses, missed, shown } = query.ask(matrix, 'backend == "nvrtc" and target == "sm_80" and expected');
  assert.equal(shown, [...misses].filter((count) => !count).length);
  assert.deepEqual([...misses], [0, 1, 2, 1, 2, 2, 1, 1]);
  assert.deepEqual([missed[1], missed[3], missed[6], missed[7]], [1, 1, 0, 2]);
  const many = query.ask(matrix, `${"true and ".repeat(200)}${"false and ".repeat(15)}false`);
  assert.deepEqual([many.misses[0], many.missed[0]], [2, 215]);
});

describe("a filter writes its own part and leaves the others", () => {
  const VALUES = { backend: ["nvrtc", "numba"], toolkit: ["12.4", "12.9", "13.0"], environment: ['a, "b"', "c"] };
  for (const [before, name, value, after] of [
    ["", "backend", "numba", 'backend == "numba"'],
    ['backend == "numba"', "backend", "nvrtc", 'backend in ("numba", "nvrtc")'],
    ['backend in ("numba", "nvrtc")', "backend", "numba", 'backend == "nvrtc"'],
    ['backend == "numba"', "backend", "numba", ""],
    ['expected and backend == "numba" and virtual', "backend", "numba", "expected and virtual"],
    ['not backend == "numba"', "backend", "numba", 'not backend == "numba" and backend == "numba"'],
    ["expected or (virtual)", "backend", "numba", '(expected or (virtual)) and backend == "numba"'],
    ["(expected or virtual)", "backend", "numba", '(expected or virtual) and backend == "numba"'],
    ['"12" <= toolkit < "13"', "toolkit", "12.4", '"12" <= toolkit < "13" and toolkit == "12.4"'],
    ['toolkit == "12.*"', "toolkit", "13.0", 'toolkit in ("12.4", "12.9", "13.0")'],
    ["two words", "backend", "numba", '"two words" in text and backend == "numba"'],
    ['"two words"', "backend", "numba", '"two words" in text and backend == "numba"'],
    ["", "environment", 'a, "b"', 'environment == "a, \\"b\\""'],
    ['environment == "a, \\"b\\""', "environment", "c", 'environment in ("a, \\"b\\"", "c")'],
  ]) {
    it(`${before} + ${name} ${value}`, () => assert.equal(query.toggle(before, name, value, VALUES[name]), after));
  }
});
