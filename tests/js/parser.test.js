"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { QueryError, parser } = require("./load.js");
require("./small.js"); // the fields that are axes

/** A tree in short: terms as field and values, operators as lists. */
const short = (node) => {
  if (node.op === "term") return `${node.field}:${node.values.join("|")}`;
  return node.op === "not" ? ["not", short(node.part)] : [node.op, ...node.parts.map(short)];
};

describe("a query becomes a tree", () => {
  for (const [query, tree] of [
    ["", ["and"]],
    ["  ", ["and"]],
    ["backend:numba,nvrtc", ["and", "backend:numba|nvrtc"]],
    ["cuda:12 arch:sm_80", ["and", "toolkit:12", "target:sm_80"]],
    ["-status:built", ["and", ["not", "status:built"]]],
    ["not status:built", ["and", ["not", "status:built"]]],
    ["not not tile", ["and", ["not", ["not", ":tile"]]]],
    ["a and b or c", ["and", ["or", ["and", ":a", ":b"], ["and", ":c"]]]],
    ["(a or b) c", ["and", ["or", ["and", ":a"], ["and", ":b"]], ":c"]],
    ["-(a b) c", ["and", ["not", ["and", ":a", ":b"]], ":c"]],
    ['"several words"', ["and", ":several words"]],
    ['message:"a, b",c', ["and", "message:a, b|c"]],
    ['"or"', ["and", ":or"]],
    ["a OR oral", ["and", ["or", ["and", ":a"], ["and", ":oral"]]]],
    ["std::size_t", ["and", ":std::size_t"]],
    ["target:", ["and", "target:"]],
    ['"never closed', ["and", ":never closed"]],
    ["-", ["and"]],
  ]) {
    it(JSON.stringify(query), () => assert.deepEqual(short(parser.parse(query)), tree));
  }
});

describe("what cannot be read is told", () => {
  for (const [query, said] of [
    ["bakend:numba", "there is no field “bakend” (did you mean “backend”?)"],
    ["zzz:1", "there is no field “zzz”"],
    ["constructor:1", "there is no field “constructor”"],
    ["(status:built", "a parenthesis is not closed"],
    ["status:built)", "a parenthesis is closed that was never opened"],
    ["or", "“or” has nothing before it"],
    ["or a", "“or” has nothing before it"],
    ["a or", "“or” has nothing after it"],
    ["not", "“not” has nothing after it"],
    ["(not)", "“not” has nothing after it"],
    ["not or a", "“or” has nothing before it"],
    ["(".repeat(100_000), "there are more than 100 levels"],
    ["not ".repeat(100_000), "there are more than 100 levels"],
  ]) {
    it(query.slice(0, 20), () => assert.throws(() => parser.parse(query), new QueryError(said)));
  }
});

it("terms know where they stand", () => {
  const query = '  backend:numba  "two words"';
  const found = parser.parse(query).parts.map(({ start, end }) => query.slice(start, end));
  assert.deepEqual(found, ["backend:numba", '"two words"']);
});

describe("a filter writes its own term and leaves the others", () => {
  for (const [before, field, value, after] of [
    ["", "backend", "numba", "backend:numba"],
    ["backend:numba", "backend", "nvrtc", "backend:numba,nvrtc"],
    ["backend:numba,nvrtc", "backend", "numba", "backend:nvrtc"],
    ["a backend:numba b", "backend", "numba", "a b"],
    ["-backend:numba", "backend", "numba", "-backend:numba backend:numba"],
    ["toolkit:>=12", "toolkit", "12.4", "toolkit:>=12 toolkit:12.4"],
    ["cuda:12.4", "toolkit", "13.0", "toolkit:12.4,13.0"],
    ["", "environment", "a, (b)", 'environment:"a, (b)"'],
    ['environment:"a, (b)",c', "environment", "c", 'environment:"a, (b)"'],
  ]) {
    it(`${before} + ${field}:${value}`, () => assert.equal(parser.toggle(before, field, value), after));
  }
});
