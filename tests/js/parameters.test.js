// Parameters of variants and header libraries: filtered for, completed, grouped by.
"use strict";

const assert = require("node:assert/strict");
const { after, before, describe, it } = require("node:test");
const { Headings, completion, fields, pivot, query, views } = require("./load.js");
const { NAMES, PLAIN, matrixOf } = require("./small.js");

const parameter = (key, kind, values, library = false) => ({
  ...{ key, title: key, side: "row", about: "", kind, filter: true },
  ...{ prefix: library ? `${key} ` : `${key}=`, values, library },
});
const PARAMETERS = [
  parameter("cutlass", "version", ["3.5.1", "4.2.0", "4.10.0"], true),
  parameter("arch", "word", ["given"]),
  parameter("bytes", "number", ["4096", "49152", "49156"]),
  parameter("pattern", "word", ["x"]),
];
// As the cells below have them, from the first on; a case without parameters at the end.
const VARIANTS = {
  cutlass: [1, 2, 3, 0, 0],
  arch: [0, 0, 0, 1, 0],
  bytes: [3, 2, 1, 1, 0],
  pattern: [0, 0, 0, 1, 0],
};
const cells = ["a", "b", "c", "d", ""].map((variant) => ({ ...PLAIN, variant }));

describe("parameters", () => {
  let matrix;
  before(() => {
    fields.learn(NAMES, PARAMETERS);
    matrix = matrixOf(cells, { parameters: PARAMETERS, variants: VARIANTS });
  });
  after(() => fields.learn(NAMES));
  const chosen = (text) => {
    const { mask } = query.ask(matrix, text);
    return [...mask.keys()].filter((cell) => mask[cell]);
  };

  for (const [text, found] of [
    ['cutlass == "4.*"', [1, 2]],
    ['cutlass >= "4.2"', [1, 2]],
    ['"3" <= cutlass <= "4.2"', [0, 1]],
    ['not cutlass >= "0"', [3, 4]],
    ["bytes == 49156", [0]],
    ["bytes >= 49152", [0, 1]],
    ["bytes in (49152, 4.096e3)", [1, 2, 3]],
    ['"49" in bytes', [0, 1]],
    ['arch == "given"', [3]],
    ['arch != "given"', []],
    ['pattern == "x"', [3]],
  ]) {
    it(text, () => assert.deepEqual(chosen(text), found));
  }

  it("say what is no value of theirs", () => {
    assert.throws(() => chosen("bites == 4"), /did you mean "bytes"/);
    assert.throws(() => chosen('cutlass > "new"'), /not a comparison of versions/);
  });

  it("are offered, and chosen, by their names", () => {
    const offered = (text) =>
      completion.complete(matrix, text, text.length).options.map((option) => option.text.trim());
    const toggled = (text, name, value) => query.toggle(text, name, value, fields.choices(matrix, name).names);
    assert.deepEqual(offered("cut"), ["cutlass =="]);
    assert.deepEqual(offered("bytes == 49"), ["49152", "49156"]);
    assert.equal(toggled("bytes == 4096", "bytes", "49156"), "bytes in (4096, 49156)");
    assert.deepEqual(chosen(toggled("", "arch", "given")), [3]);
  });

  it("are dimensions that the matrix is grouped by, in their order, what has none at the end", () => {
    const all = new Uint8Array(matrix.size).fill(1);
    const { down, across } = views.byParameter(matrix, ["bytes", "cutlass"]);
    assert.deepEqual(Object.values(down), ["By bytes, each with its cases", "By cutlass, each with its cases"]);
    assert.deepEqual(Object.keys(across).slice(0, 2), ["bytes", "cutlass"]);
    const turned = pivot.turn(matrix, "bytes,case,variant".split(","), ["cutlass"], all);
    const groups = pivot.lines(matrix, turned.rows, () => false);
    assert.deepEqual(
      groups.map(({ label, from, to }) => [label, to - from]),
      [
        ["4096", 2],
        ["49152", 1],
        ["49156", 1],
        ["", 1],
      ],
    );
    const headings = new Headings(matrix, turned);
    const columns = turned.columns.entries.map((_, column) => headings.column(column));
    assert.deepEqual(columns, ["cutlass 3.5.1", "cutlass 4.2.0", "cutlass 4.10.0", "no cutlass"]);
    assert.equal(matrix.label("bytes", "4096"), "bytes=4096");
    assert.equal(headings.without("bytes"), "no bytes");
    assert.equal(headings.corner(), "Bytes, case, variant");
  });

  it("leave what cells are called and found by as it was", () => {
    assert.equal(matrix.describe(0).variant, "a");
    for (let cell = 0; cell < matrix.size; cell++) assert.equal(matrix.find(matrix.address(cell)), cell);
  });
});
