"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");
const { diff } = require("./load.js");

const lines = (text) => text.split("").join("\n");
const kept = (runs, kind) => runs.filter((run) => run.kind === "same" || run.kind === kind).flatMap((run) => run.lines);

test("lines of either text alone, and those of both", () => {
  assert.deepEqual(diff.texts(lines("abcd"), lines("axcde")), [
    { kind: "same", lines: ["a"] },
    { kind: "gone", lines: ["b"] },
    { kind: "new", lines: ["x"] },
    { kind: "same", lines: ["c", "d"] },
    { kind: "new", lines: ["e"] },
  ]);
  assert.deepEqual(diff.texts("a\nb", "a\nb"), [{ kind: "same", lines: ["a", "b"] }]);
});

test("both texts can be made from what is told, by as few lines as there can be", () => {
  let seed = 7;
  const random = (most) => (seed = (seed * 16807) % 2147483647) % most;
  const word = () => Array.from({ length: random(12) }, () => "ab"[random(2)]);
  const common = (a, b) => {
    const table = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--)
        table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    return table[0][0];
  };
  for (let round = 0; round < 500; round++) {
    const [a, b] = [
      ["x", ...word()],
      ["y", ...word()],
    ];
    const runs = diff.texts(a.join("\n"), b.join("\n"));
    assert.deepEqual(kept(runs, "gone"), a);
    assert.deepEqual(kept(runs, "new"), b);
    const same = runs.filter((run) => run.kind === "same").flatMap((run) => run.lines);
    assert.equal(same.length, common(a, b), `${a} ${b}`);
  }
});

test("texts with nothing in common are not compared for long", () => {
  const many = (word) => Array.from({ length: 5000 }, (_, number) => `${word} ${number}`).join("\n");
  assert.equal(diff.texts(many("a"), many("b")), null);
});
