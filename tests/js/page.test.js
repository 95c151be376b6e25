// The page's address, its views, what of the table is drawn, and what a cell tells.
"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { Headings, Squares, address, commands, parts, pivot, text, views } = require("./load.js");
const { CELLS, matrixOf } = require("./small.js");

const matrix = matrixOf(CELLS);
const KNOWN = matrix.axes.map((axis) => axis.key);
const FIRST = { down: "topic,case", across: "backend" };
const everything = new Uint8Array(CELLS.length).fill(1);

describe("an address holds the whole state", () => {
  for (const state of [
    { q: "", down: "topic,case", across: "backend", fold: [], cell: "" },
    { q: '"a&b=c%" #+', down: "target", across: "case,backend", fold: ["*"], cell: "" },
    { q: "ä 🙂 <b>", down: "topic,case", across: "target", fold: ["wmma/a%2Fb", "x"], cell: "a/b;n=1%3B;nvrtc;;12.4" },
  ]) {
    const written = address.write(state, FIRST);
    it(written, () => {
      assert.deepEqual(address.read(written.slice(1), FIRST, KNOWN), state);
      assert.match(written, /^#[^\s"<>`\\^{}|]*$/);
    });
  }

  for (const hash of [
    "q=%",
    "down=x&across=y",
    "down=backend",
    "down=case,case",
    "across=constructor",
    "a=b",
    "runs",
  ]) {
    it(`${hash} is as at first`, () => {
      const { q, down, across, fold, cell } = address.read(hash, FIRST, KNOWN);
      assert.deepEqual([q, down, across, fold, cell], [hash === "q=%" ? "%" : "", "topic,case", "backend", [], ""]);
    });
  }
});

it("an id is made of the cell's place and what follows the target", () => {
  const own = matrixOf([{}, { variant: "n=1", backend: "cupy-nvrtc", library: "13.6.0", toolkit: "12.9@local" }]);
  assert.equal(own.id(0), "wmma/fragments nvrtc cuda12.4 sm_80");
  assert.equal(own.id(0, " on NVIDIA H200"), "wmma/fragments nvrtc cuda12.4 sm_80 on NVIDIA H200");
  assert.equal(own.id(0, "made by hand"), "made by hand");
  assert.equal(own.id(1), "wmma/fragments[n=1] cupy-nvrtc@13.6.0 cuda12.9@local sm_80");
});

it("an address is for people to read", () => {
  const state = {
    q: 'backend == "numba" and "100%" in text',
    ...FIRST,
    fold: [],
    cell: "wmma/fragments;n=1;nvrtc;;12.4;sm_80",
  };
  assert.equal(
    address.write(state, FIRST),
    "#q=backend+==+%22numba%22+and+%22100%25%22+in+text&cell=wmma/fragments;n=1;nvrtc;;12.4;sm_80",
  );
});

it("an address may ask for a list, of rows only", () => {
  const read = (hash) => address.read(hash, FIRST, KNOWN);
  assert.deepEqual([read("across=none").across, read("down=none").down], ["none", "topic,case"]);
  assert.equal(address.write(read("across=none"), FIRST), "#across=none");
  assert.equal(read("across=none,target").across, "backend");
});

describe("links to cells", () => {
  it("lead back to each cell", () => {
    for (const cell of CELLS.keys()) assert.equal(matrix.find(matrix.address(cell)), cell);
  });

  it("survive what separates their parts", () => {
    const odd = matrixOf([{ variant: "x;y=50%" }, { variant: "x" }]);
    assert.equal(odd.address(0), "wmma/fragments;x%3By=50%25;nvrtc;;12.4;sm_80");
    assert.equal(odd.find(odd.address(0)), 0);
  });

  it("to nothing lead nowhere", () => {
    for (const link of ["", "nothing", "wmma/fragments;n=1;numba;0.59.0;12.4;sm_80", "%;%"])
      assert.equal(matrix.find(link), -1);
  });
});

describe("groups", () => {
  const { rows } = pivot.turn(matrix, ["topic", "case", "variant"], ["backend"], everything);
  it("of a small table are open but for those in the address", () => {
    const isOpen = views.openness(rows, ["wmma/wmma%2Ffragments"]);
    assert.deepEqual([isOpen(["wmma"], 0), isOpen(["wmma", "wmma/fragments"], 1)], [true, false]);
  });
  it("of a list are closed", () => {
    const isOpen = views.openness(rows, ["wmma"], true);
    assert.deepEqual([isOpen(["atomics"], 0), isOpen(["wmma"], 0), isOpen(["wmma", "x"], 1)], [false, true, false]);
  });
  it("of a large one are closed but for topics", () => {
    const large = { ...rows, entries: Array(121).fill([0, 0, 0]) };
    const isOpen = views.openness(large, ["t/c"]);
    assert.deepEqual([isOpen(["t"], 0), isOpen(["t", "c"], 1), isOpen(["t", "d"], 1)], [true, true, false]);
    assert.equal(views.openness(large, ["*"])(["t", "d"], 1), true);
  });
});

describe("what is drawn", () => {
  const box = { clientWidth: 1000, clientHeight: 280, scrollTop: 2800, scrollLeft: 840 };
  const table = { lines: 1000, columns: 100, width: 84 };
  it("is what is in view", () => {
    const part = parts.inView(box, table, 1);
    assert.deepEqual(part, { top: 100, bottom: 110, left: 10, right: 20, heading: 300 });
    assert.ok(parts.covers(part, part));
    assert.ok(!parts.covers(part, { ...part, bottom: 111 }));
    assert.ok(!parts.covers(null, part));
  });
  it("is more a moment later, and everything on paper", () => {
    assert.deepEqual(parts.inView(box, table, 10), { top: 90, bottom: 120, left: 0, right: 30, heading: 300 });
    assert.deepEqual(parts.inView(box, table, Infinity), { top: 0, bottom: 1000, left: 0, right: 100, heading: 300 });
  });
  it("is all of a small table", () => {
    const part = parts.inView({ ...box, clientWidth: 400 }, { ...table, lines: 20 }, 10);
    assert.deepEqual(part, { top: 0, bottom: 20, left: 0, right: 100, heading: 150 });
  });
  it("ends where the table does", () => {
    const part = parts.inView({ ...box, scrollTop: 99999, scrollLeft: 99999 }, table, 1);
    assert.deepEqual(part, { top: 999, bottom: 1000, left: 99, right: 100, heading: 300 });
  });
});

describe("a place of several cells", () => {
  const squares = new Squares(matrix);
  const turned = pivot.turn(matrix, ["topic"], ["backend"], everything);
  const [wmma] = pivot.lines(matrix, turned.rows, () => false);
  const sum = squares.sum(turned, wmma, 0);
  it("shows the gravest letter with its number of all that is supported", () => {
    assert.deepEqual(squares.letters(sum, true), { text: "F 1/3", style: "fail" });
    assert.deepEqual(squares.letters(sum, false), { text: "F", style: "fail" });
  });
  it("shows how many build where others do not, and leaves out what was not tried", () => {
    const counted = (...some) => {
      const [counts, kinds] = [new Uint32Array(matrix.marks.length), []];
      for (const [key, count] of some) {
        const kind = matrix.marks.findIndex((mark) => mark.key === key);
        counts[kind] = count;
        kinds.push(kind);
      }
      return squares.letters({ kinds, counts }, true);
    };
    assert.deepEqual(counted(["rejected", 2], ["built", 3], ["unsupported", 9]), { text: "✓ 3/5", style: "mixed" });
    assert.equal(counted(["built", 546], ["rejected", 462]).text, "546/1,008");
    assert.deepEqual(counted(["unavailable", 2], ["built", 3]), { text: "✓ 3", style: "built" });
    assert.deepEqual(counted(["unavailable", 2], ["unsupported", 3]), { text: "U 2/2", style: "unavailable" });
  });
  it("is told in words, the gravest first", () => {
    assert.equal(squares.label(wmma, sum), "4 cells: 1 not as expected, 2 built, 1 unsupported");
  });
  it("has a bar in the order of the legend", () => {
    assert.equal(
      squares.bar(sum),
      "linear-gradient(90deg, var(--built-b) 0.0% 50.0%, var(--fail-b) 50.0% 75.0%, var(--unsupported-b) 75.0% 100.0%)",
    );
  });
  it("of an open group says that all of it stands below", () => {
    const open = { ...wmma, open: true };
    assert.equal(squares.label(open, squares.sum(turned, open, 0)), "see below");
  });
});

describe("a place of several architectures", () => {
  const squares = new Squares(matrix);
  const turned = pivot.turn(matrix, ["topic", "case", "variant"], ["backend"], everything);
  squares.arrange(turned, true);
  const [, , first] = pivot.lines(matrix, turned.rows, () => true);
  const sum = squares.sum(turned, first, 0);
  const names = (codes) => codes.map((code) => matrix.names.target[code]);
  it("shows those of its column, the newest first and what is only PTX last", () => {
    assert.deepEqual(names(squares.newest), ["sm_100", "sm_90a", "sm_90", "sm_80", "compute_80"]);
    assert.deepEqual(names(sum.targets), ["sm_90a", "sm_90", "sm_80", "compute_80"]);
  });
  it("lists them by what became of them", () => {
    assert.deepEqual(squares.listing(sum), [
      "not as expected: sm_90a",
      "built: sm_90, sm_80",
      "unsupported: compute_80",
    ]);
  });
  it("draws a line for what is not applicable, and the others above it", () => {
    const [flat, full] = squares.drawing(sum, 80).split(/, (?=linear-gradient)/);
    assert.match(flat, /var\(--unsupported-b\) 36px 47px.* 2px no-repeat$/);
    assert.match(full, /^linear-gradient\(90deg, var\(--fail-b\) 0px 11px, #0000 0 12px, var\(--built-b\) 12px 23px/);
  });
  it("halves one that builds in part", () => {
    const bits = (...keys) =>
      keys.reduce((mask, key) => mask | (1 << matrix.marks.findIndex((of) => of.key === key)), 0);
    const shown = (...keys) => Object.values(squares.shapes(bits(...keys))).map((mark) => mark?.key ?? "");
    assert.deepEqual(shown("built", "rejected", "unsupported"), ["built", "rejected", ""]);
    assert.deepEqual(shown("built", "fail"), ["fail", "", ""]);
    assert.deepEqual(shown("unsupported"), ["", "", "unsupported"]);
  });
  it("shows letters where an axis has the architectures, cases are mixed, or there is no room", () => {
    squares.arrange(pivot.turn(matrix, ["topic"], ["target"], everything), true);
    assert.ok(squares.targets.every((found) => found.length === 0));
    squares.arrange(pivot.turn(matrix, ["topic"], ["backend"], everything), true);
    assert.ok(squares.targets.every((found) => found.length === 0));
    squares.arrange(turned, false);
    assert.ok(squares.targets.every((found) => found.length === 0));
  });
});

it("headings that would stand above one column only go into its label", () => {
  const columns = (entries) => ({ dimensions: ["backend", "library", "toolkit", "target"], entries, place: null });
  const targets = [0, 1, 2].flatMap((toolkit) => [0, 1, 2].map((target) => [0, 0, toolkit, target]));
  assert.deepEqual(Headings.levels(columns(targets), 2.5, []), { groups: [[0, 1], [2]], leaf: [3] });
  // What few cells have a value of is no level of its own, with nothing to say of all the others.
  assert.deepEqual(Headings.levels(columns(targets), 2.5, ["toolkit"]), { groups: [[0, 1, 2]], leaf: [3] });
  assert.deepEqual(Headings.levels(columns([[0, 0, 0, 0]]), 2.5, []), { groups: [], leaf: [0, 1, 2, 3] });
});

describe("commands that run a cell again", () => {
  const cell = { case: "wmma/fragments", variant: "shape=m16n16k8,n=1", backend: "cupy-nvrtc", library: "13.6.0" };
  const value = (changes) => (key) => ({ ...cell, toolkit: "12.4", target: "sm_80", ...changes })[key];
  const requested = { packages: { python: "3.11", cupy: "13.6.0", "cupy-cuda12x": "13.6.0", numpy: "1.26.4" } };
  it("install what it ran with", () => {
    assert.equal(
      commands.reproduce(value({}), { toolchain: { requested } }),
      "pip install cupy-cuda12x==13.6.0 numpy==1.26.4\n" +
        "cumatrix toolkits install 12.4\n" +
        "cumatrix run wmma/fragments -b cupy-nvrtc -t 12.4 -a sm_80 --no-cache --where 'variant == \"shape=m16n16k8,n=1\"'",
    );
  });
  it("install no toolkit of the machine, and both of a mixed one", () => {
    const own = commands.reproduce(value({ library: "", variant: "", toolkit: "12.4@local" }), {});
    assert.equal(own, "cumatrix run wmma/fragments -b cupy-nvrtc -t 12.4@local -a sm_80 --no-cache");
    const mixed = commands.reproduce(value({ library: "", variant: "", toolkit: "12.4+headers12.6" }), {});
    assert.match(mixed, /^cumatrix toolkits install 12\.4,12\.6\n/);
  });
  it("quote what a shell would read", () => {
    const program = { case: "a b;$(x).cu@3fa9c1", variant: "-std=c++17 '-DX=a b'", library: "" };
    assert.match(
      commands.reproduce(value(program), { program: "3fa9c1" }),
      /^cumatrix try 'a b;\$\(x\)\.cu' -std=c\+\+17 '-DX=a b' -b cupy-nvrtc /m,
    );
    assert.equal(text.shell("it's"), "'it'\\''s'");
  });
});
