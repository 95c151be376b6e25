// What the page makes of an axis that the script does not know by name.
"use strict";

const assert = require("node:assert/strict");
const { after, describe, it } = require("node:test");
const { Headings, completion, fields, pivot, query, views } = require("./load.js");
const { AXES, CELLS, NAMES, matrixOf } = require("./small.js");

const CCCL = { key: "cccl", title: "CCCL", side: "column", kind: "version", about: "release of CCCL", filter: true };
const MORE = [...AXES.slice(0, -1), { ...CCCL, prefix: "CCCL " }, ...AXES.slice(-1)];
const cells = CELLS.map((cell, place) => ({ ...cell, cccl: place < 2 ? "3.0.0" : place < 4 ? "2.8.0" : "" }));

describe("an axis that is only in the data", () => {
  fields.learn({ ...NAMES, cccl: { kind: "version", about: "release of CCCL", filter: true } });
  after(() => fields.learn(NAMES));
  const matrix = matrixOf(cells, { axes: MORE });
  const chosen = (text) => {
    const { mask } = query.ask(matrix, text);
    return [...mask.keys()].filter((cell) => mask[cell]);
  };

  it("is a name of conditions, by its kind", () => {
    assert.deepEqual(chosen('cccl == "3.*"'), [0, 1]);
    assert.deepEqual(chosen('cccl < "3"'), [2, 3]);
    assert.deepEqual(chosen('cccl in ("2.8.0", "3.0.0") and target == "sm_80"'), [0]);
    assert.deepEqual(chosen("2.8.0"), [2, 3]);
  });

  it("has a filter, and is offered by the completion", () => {
    assert.equal(fields.FIELDS.cccl.filter, true);
    assert.deepEqual(completion.complete(matrix, "ccc", 3).options, [{ text: "cccl == ", about: "release of CCCL" }]);
    const offered = completion.complete(matrix, "cccl == ", 8).options.map((option) => option.text.trim());
    assert.deepEqual(offered, ['"3.0.0"', '"2.8.0"']);
  });

  it("is a part of the first view, of its headings, and of what a cell is called", () => {
    const { across } = views.first(matrix);
    assert.equal(across, "backend,library,toolkit,cccl,target");
    const turned = pivot.turn(matrix, ["case"], across.split(","), new Uint8Array(matrix.size).fill(1));
    assert.equal(new Headings(matrix, turned).column(0), "nvrtc CUDA 12.4 CCCL 3.0.0 sm_80");
    assert.equal(matrix.describe(0).toolchain, "nvrtc · CUDA 12.4 · CCCL 3.0.0 · sm_80");
    assert.equal(matrix.describe(4).toolchain, "numba 0.59.0 · CUDA 12.4 · sm_80");
  });

  it("is a part of links", () => {
    assert.equal(matrix.address(0), "wmma/fragments;n=1;nvrtc;;12.4;3.0.0;sm_80");
    for (let cell = 0; cell < matrix.size; cell++) assert.equal(matrix.find(matrix.address(cell)), cell);
  });

  it("leaves links to cells without it as they were, where it came later", () => {
    const later = matrixOf(cells, { axes: MORE.map((axis) => ({ ...axis, optional: axis.key === "cccl" })) });
    assert.equal(later.address(0), "wmma/fragments;n=1;nvrtc;;12.4;3.0.0;sm_80");
    assert.equal(later.address(4).split(";").length, 6);
    for (let cell = 0; cell < later.size; cell++) assert.equal(later.find(later.address(cell)), cell);
  });
});
