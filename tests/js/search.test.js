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
    ["back|", ["backend == "]],
    ["not expec|", ["expected "]],
    ["backend == |", ['"nvrtc" ', '"numba" ', '"cupy-nvrtc" ']],
    ['backend != "NUM|', ['"numba" ']],
    ['backend in ("numba", nv|', ['"nvrtc" ', '"cupy-nvrtc" ']],
    ["backend not in (num|", ['"numba" ']],
    ['library >= "13|', ['"13.6.0" ']],
    ["virtual == |", ["true ", "false "]],
    ["title == add|", ['"Adding" ']],
    ["add|", ['case == "atomics/add" ']],
    ["(tit| and expected)", ["title == "]],
    ["nothing == |", []],
    ["backend |", []],
    ['"x" in |', []],
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
    const { start, end } = completion.complete(matrix, "expected and back", 15);
    assert.deepEqual([start, end], [13, 17]);
  });

  it("begins with the fields", () => {
    const { options } = completion.complete(matrix, "", 0);
    assert.equal(options.length, 12);
    assert.ok(options.every((option) => /( ==)? $/.test(option.text) && option.about));
  });
});

describe("the number beside a value is what choosing it would give", () => {
  const numbers = (text, field) => {
    const found = counts.ofFields(matrix, query.ask(matrix, text), [field]).get(field);
    return [Object.fromEntries(matrix.names[field].map((name) => [name, found.counts.get(name)])), found.chosen];
  };

  it("of all cells at first", () => {
    assert.deepEqual(numbers("", "backend"), [{ nvrtc: 5, numba: 1, "cupy-nvrtc": 2 }, []]);
  });

  it("other filters count, its own does not", () => {
    const text = 'backend == "nvrtc" and topic == "wmma"';
    assert.deepEqual(numbers(text, "backend"), [{ nvrtc: 4, numba: 1, "cupy-nvrtc": 1 }, ["nvrtc"]]);
    assert.deepEqual(numbers(text, "topic"), [{ wmma: 4, atomics: 1 }, ["wmma"]]);
    assert.deepEqual(numbers(text, "environment"), [{ e: 4, night: 0 }, []]);
  });

  it("what is left out is no choice", () => {
    assert.deepEqual(numbers('backend != "nvrtc"', "backend"), [{ nvrtc: 0, numba: 1, "cupy-nvrtc": 2 }, []]);
  });
});
