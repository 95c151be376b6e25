// What the search box offers, and the numbers beside the filters.
"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { completion, counts, query } = require("./load.js");
const { CELLS, matrixOf } = require("./small.js");

const matrix = matrixOf(CELLS);

describe("what could come next", () => {
  // The caret is where the stroke is.
  for (const [typed, wanted] of [
    ["back|", ["backend:"]],
    ["-back|", ["-backend:"]],
    ["backend:|", ["backend:nvrtc ", "backend:numba ", "backend:cupy-nvrtc "]],
    ["backend:NUM|", ["backend:numba "]],
    ["backend:numba,nv|", ["backend:numba,nvrtc ", "backend:numba,cupy-nvrtc "]],
    ["lib:13|", ["lib:13.6.0 "]],
    ["is:un|", ["is:unexpected ", "is:run "].slice(0, 2)],
    ["feature:w|", ["feature:wmma "]],
    ["title:add|", ["title:Adding "]],
    ["add|", ["case:atomics/add "]],
    ["nothing:|", []],
    ["tit| backend:numba", ["title:"]],
  ]) {
    it(typed, () => {
      const caret = typed.indexOf("|");
      const { options } = completion.complete(matrix, typed.replace("|", ""), caret);
      assert.deepEqual(
        options.map((option) => option.text),
        wanted,
      );
    });
  }

  it("stands in the place of the word at the caret", () => {
    const { start, end } = completion.complete(matrix, "is:run back target:sm_80", 9);
    assert.deepEqual([start, end], [7, 11]);
  });

  it("begins with the fields", () => {
    const { options } = completion.complete(matrix, "", 0);
    assert.equal(options.length, 12);
    assert.ok(options.every((option) => option.text.endsWith(":") && option.about));
  });
});

describe("the number beside a value is what choosing it would give", () => {
  const numbers = (text, field) => {
    const found = counts.ofFields(matrix, query.ask(matrix, text), [field]).get(field);
    return [Object.fromEntries(matrix.names[field].map((name, code) => [name, found.counts[code]])), found.chosen];
  };

  it("of all cells at first", () => {
    assert.deepEqual(numbers("", "backend"), [{ nvrtc: 5, numba: 1, "cupy-nvrtc": 2 }, []]);
  });

  it("other filters count, its own does not", () => {
    const text = "backend:nvrtc topic:wmma";
    assert.deepEqual(numbers(text, "backend"), [{ nvrtc: 4, numba: 1, "cupy-nvrtc": 1 }, ["nvrtc"]]);
    assert.deepEqual(numbers(text, "topic"), [{ wmma: 4, atomics: 1 }, ["wmma"]]);
    assert.deepEqual(numbers(text, "environment"), [{ e: 4, night: 0 }, []]);
  });

  it("a pattern is no choice", () => {
    assert.deepEqual(numbers("backend:cupy-*", "backend"), [{ nvrtc: 0, numba: 0, "cupy-nvrtc": 2 }, []]);
  });
});
