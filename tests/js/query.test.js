"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { QueryError, query } = require("./load.js");
const { CELLS, matrixOf } = require("./small.js");

const matrix = matrixOf(CELLS);
const chosen = (text, of = matrix) => {
  const { mask } = query.ask(of, text);
  return [...mask.keys()].filter((cell) => mask[cell]);
};

// The numbers are places in CELLS of small.js.
describe("a query chooses cells", () => {
  for (const [text, wanted] of [
    ["", [0, 1, 2, 3, 4, 5, 6, 7]],
    ["backend:nvrtc", [0, 1, 2, 3, 7]],
    ["backend:NVRTC,numba", [0, 1, 2, 3, 4, 7]],
    ["backend:nv", []],
    ["backend:cupy-*", [5, 6]],
    ["-backend:nvrtc", [4, 5, 6]],
    ["target:sm_80..sm_90", [0, 1, 4, 6, 7]],
    ["target:..sm_80", [0, 4, 6, 7]],
    ["target:>=sm_90", [1, 5]],
    ["target:>sm_90", [5]],
    ["target:<=sm_90", [0, 1, 4, 6, 7]],
    ["target:<sm_90", [0, 4, 6, 7]],
    ["target:sm_90a,compute_80", [2, 3]],
    ["target:compute_80..", [3]],
    ["toolkit:12", [0, 1, 2, 3, 4, 5, 7]],
    ["toolkit:12.4", [0, 1, 2, 3, 4, 5, 7]],
    ["toolkit:=12.4", [0, 1, 2, 3, 4]],
    ["toolkit:1", []],
    ["toolkit:>12.4", [5, 6]],
    ["cuda:12.5..13", [6]],
    ["library:12..13", [5, 6]],
    ["library:<13", [4, 6]],
    ["library:13.6", [5]],
    ["stage:>=assemble", [0, 1, 6]],
    ["stage:<assemble", [2, 5]],
    ["is:unexpected", [2, 4, 7]],
    ["is:missing", [4]],
    ["is:run", [0, 1, 2, 5, 6]],
    ["is:expected -is:run", [3]],
    ["mark:rejected,missing", [4, 5]],
    ["case:wmma/*", [0, 1, 2, 3, 4, 5]],
    ["case:ADD", [6, 7]],
    ["variant:n=1", [0, 1, 2, 3]],
    ["feature:atomic", [6, 7]],
    ["title:adding", [6, 7]],
    ["registers:>40", [1]],
    ["registers:=40", [0, 2, 5]],
    ["registers:8,96", [1, 6]],
    ["registers:..40", [0, 2, 5, 6]],
    ['message:"incomplete type"', [5]],
    ["std::size_t", [5]],
    ["installed", [7]],
    ["numba", [4]],
    ["sm_90", [1, 2]],
    ["case:add or variant:n=2", [4, 5, 6, 7]],
    ["(case:add or variant:n=2) backend:cupy-nvrtc", [5, 6]],
    ["-(case:add or variant:n=2) is:expected", [0, 1, 3]],
    ["environment:night", [6]],
    ["target:", [0, 1, 2, 3, 4, 5, 6, 7]],
    ["message:[", []],
    ["title:*.*", []],
  ]) {
    it(text || "nothing", () => assert.deepEqual(chosen(text), wanted));
  }
});

describe("what is no value of its field is told", () => {
  for (const [text, said] of [
    ["target:>=ampere", "“ampere” is not a target: write sm_80 or compute_80"],
    ["toolkit:>=new", "“new” is not a version such as 12.4"],
    ["stage:>=never", "“never” is no stage"],
    ["registers:many", "“many” is not a number"],
    ["registers:>", "“” is not a number"],
    ["is:nice", "unknown is:nice; there are is:unexpected, is:expected, is:missing, is:run"],
    ["is:constructor", "unknown is:constructor; there are is:unexpected, is:expected, is:missing, is:run"],
    ["a ".repeat(201), "the query has more than 200 terms"],
  ]) {
    it(text.slice(0, 20), () => assert.throws(() => query.ask(matrix, text), new QueryError(said)));
  }
});

it("messages and numbers let everything through until they are there", () => {
  const early = matrixOf(CELLS, { more: false });
  assert.equal(query.ask(early, "registers:>40").needsMore, true);
  assert.equal(chosen("registers:>40", early).length, CELLS.length);
  assert.deepEqual(chosen("numba", early), [4]);
  assert.equal(query.ask(early, "backend:numba").needsMore, false);
  assert.equal(query.ask(early, "not (backend:numba or tile)").needsMore, true);
  assert.throws(() => query.ask(early, "registers:many"), QueryError);
});

it("cells know how many terms they fail, and which", () => {
  const { misses, missed, shown } = query.ask(matrix, "backend:nvrtc target:sm_80 is:expected");
  assert.equal(shown, [...misses].filter((count) => !count).length);
  assert.deepEqual([...misses], [0, 1, 2, 1, 2, 2, 1, 1]);
  assert.deepEqual([missed[1], missed[3], missed[6], missed[7]], [1, 1, 0, 2]);
});
