"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { pivot } = require("./load.js");
const { CELLS, matrixOf } = require("./small.js");

const matrix = matrixOf(CELLS);
const everything = new Uint8Array(CELLS.length).fill(1);

/** A pivot as text: by labels of row and column, the cells that meet there. */
const spelled = (of, turned) => {
  const label = (axis, entry) => entry.map((code, at) => of.names[axis.dimensions[at]][code]).join(" ");
  const found = {};
  turned.rows.entries.forEach((row, at) =>
    turned.columns.entries.forEach((column, to) => {
      const cells = [];
      turned.cells(at, at + 1, to, (cell) => cells.push(cell));
      if (cells.length) found[`${label(turned.rows, row)} × ${label(turned.columns, column)}`] = cells;
    }),
  );
  return found;
};

it("cells meet where their row and their column do", () => {
  assert.deepEqual(spelled(matrix, pivot.turn(matrix, ["case"], ["backend"], everything)), {
    "wmma/fragments × nvrtc": [0, 1, 2, 3],
    "wmma/fragments × numba": [4],
    "wmma/fragments × cupy-nvrtc": [5],
    "atomics/add × nvrtc": [7],
    "atomics/add × cupy-nvrtc": [6],
  });
});

it("an axis may have dimensions of rows and of columns", () => {
  assert.deepEqual(spelled(matrix, pivot.turn(matrix, ["case", "backend"], ["target"], everything)), {
    "wmma/fragments nvrtc × sm_80": [0],
    "wmma/fragments nvrtc × sm_90": [1],
    "wmma/fragments nvrtc × sm_90a": [2],
    "wmma/fragments nvrtc × compute_80": [3],
    "wmma/fragments numba × sm_80": [4],
    "wmma/fragments cupy-nvrtc × sm_100": [5],
    "atomics/add nvrtc × sm_80": [7],
    "atomics/add cupy-nvrtc × sm_80": [6],
  });
});

it("what the mask leaves out has no entry", () => {
  const mask = Uint8Array.from(CELLS, (cell) => (cell.backend === "numba" ? 1 : 0));
  const turned = pivot.turn(matrix, ["topic"], ["backend", "library"], mask);
  assert.deepEqual(spelled(matrix, turned), { "wmma × numba 0.59.0": [4] });
  assert.deepEqual([...turned.rows.place], [-1, -1, -1, -1, 0, -1, -1, -1]);
});

it("an axis may be of rows and of columns", () => {
  assert.deepEqual(spelled(matrix, pivot.turn(matrix, ["topic", "backend"], ["target"], everything)), {
    "atomics nvrtc × sm_80": [7],
    "atomics cupy-nvrtc × sm_80": [6],
    "wmma nvrtc × sm_80": [0],
    "wmma nvrtc × sm_90": [1],
    "wmma nvrtc × sm_90a": [2],
    "wmma nvrtc × compute_80": [3],
    "wmma numba × sm_80": [4],
    "wmma cupy-nvrtc × sm_100": [5],
  });
});

describe("no cell is lost or told twice", () => {
  const axes = matrix.axes.map((axis) => axis.key);
  for (const down of axes) {
    for (const across of axes.filter((key) => key !== down)) {
      it(`${down} × ${across}`, () => {
        const cells = Object.values(spelled(matrix, pivot.turn(matrix, [down], [across], everything))).flat();
        assert.deepEqual(
          cells.sort((a, b) => a - b),
          [...CELLS.keys()],
        );
      });
    }
  }
});

it("entries are in the order of the names, the first dimension before the second", () => {
  const { columns } = pivot.turn(matrix, ["case"], ["target", "backend"], everything);
  const sorted = [...columns.entries].sort(([a, b], [c, d]) => a - c || b - d);
  assert.deepEqual(columns.entries, sorted);
  assert.equal(columns.entries.length, 7);
});

it("entries that differ in any dimension stay apart", () => {
  const three = [0, 1, 2];
  const all = three.flatMap((a) => three.flatMap((b) => three.map((c) => [`b${a}`, `1.${b}`, `sm_${c}`])));
  const cube = matrixOf(all.map(([backend, library, target]) => ({ backend, library, target })));
  const mask = new Uint8Array(cube.size).fill(1);
  assert.equal(pivot.turn(cube, ["case"], ["backend", "library", "target"], mask).columns.entries.length, 27);
});

it("a table with far more places than cells is looked up", () => {
  const many = matrixOf([...Array(2900).keys()].map((n) => ({ case: `case-${n}`, target: `sm_${n}` })));
  const turned = pivot.turn(many, ["case"], ["target"], new Uint8Array(many.size).fill(1));
  assert.ok(turned.rows.entries.length * turned.columns.entries.length > 8e6);
  for (const at of [0, 1, 1450, 2899]) {
    const cells = [];
    turned.cells(0, 2900, at, (cell) => cells.push(cell));
    assert.deepEqual(cells, [at]);
  }
});

describe("lines", () => {
  const { rows } = pivot.turn(matrix, ["topic", "case", "variant"], ["backend"], everything);
  const shown = (isOpen) =>
    pivot
      .lines(matrix, rows, isOpen)
      .map((line) => `${line.depth}${line.leaf ? "" : line.open ? "▾" : "▸"} ${line.label}`);

  it("are all there when everything is open; a case without variants is one", () => {
    assert.deepEqual(
      shown(() => true),
      ["0▾ wmma", "1▾ wmma/fragments", "2 n=1", "2 n=2", "0▾ atomics", "1 atomics/add"],
    );
  });

  it("of what is closed are hidden", () => {
    assert.deepEqual(
      shown((path) => path.join() === "wmma"),
      ["0▾ wmma", "1▸ wmma/fragments", "0▸ atomics"],
    );
  });

  it("cover all that is below them", () => {
    const [first, second] = pivot.lines(matrix, rows, () => false);
    assert.deepEqual([first.from, first.to, second.from, second.to], [0, 2, 2, 3]);
    assert.deepEqual(second.path, ["atomics"]);
  });
});

it("a list has one line for each toolchain", () => {
  const turned = pivot.turn(matrix, ["topic", "case", "backend", "library", "toolkit"], [], everything);
  assert.deepEqual(turned.columns.entries, [[]]);
  const lines = pivot.lines(matrix, turned.rows, () => true);
  const of = (topic) => lines.filter(({ path }) => path[0] === topic).map(({ depth, label }) => `${depth} ${label}`);
  assert.deepEqual(of("atomics"), [
    "0 atomics",
    "1 atomics/add",
    "2 nvrtc CUDA 12.4@local",
    "2 cupy-nvrtc 12.3.0 CUDA 13.0",
  ]);
  const cells = [];
  lines.filter(({ leaf }) => leaf).forEach(({ from, to }) => turned.cells(from, to, 0, (cell) => cells.push(cell)));
  assert.deepEqual(cells.sort(), [...CELLS.keys()]);
});
