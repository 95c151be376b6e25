// The page reads conditions as harness/model/condition.py does: both are held to tests/report/conditions.json.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { after, before, describe, it } = require("node:test");
const { ConditionError, condition, fields, query } = require("./load.js");
const { NAMES } = require("./small.js");

const shared = JSON.parse(fs.readFileSync(path.join(__dirname, "..", "report", "conditions.json"), "utf8"));
const parameters = Object.entries(shared.parameters).map(([key, values]) => ({ key, values }));

/** A matrix with the facts alone. */
const columnOf = (name) => shared.cells.map((cell) => cell[name] ?? null);
const named = [...Object.keys(shared.names), ...Object.keys(shared.parameters)];
const facts = {
  size: shared.cells.length,
  column: shared.cells.map((_, place) => place),
  facts: { columns: Object.fromEntries(named.map((name) => [name, columnOf(name)])), cells: {} },
  more: {},
};

describe("conditions mean what they mean to --where", () => {
  before(() => fields.learn(shared.names, parameters));
  after(() => fields.learn(NAMES));

  for (const { condition: text, cells } of shared.kept) {
    it(text, () => {
      const { mask } = query.ask(facts, text);
      assert.deepEqual(
        [...mask.keys()].filter((cell) => mask[cell]),
        cells,
      );
    });
  }

  for (const { condition: text, error, position } of shared.refused) {
    it(`refuses ${text.slice(0, 40)}`, () => {
      const { text: _, ...names } = fields.FIELDS;
      assert.throws(
        () => condition.parse(text, names),
        (wrong) => {
          assert.ok(wrong instanceof ConditionError);
          assert.deepEqual([wrong.message, wrong.position], [error, position]);
          return true;
        },
      );
    });
  }

  for (const text of shared.unreadable) {
    it(`cannot read ${text}`, () => {
      const start = /cannot read the condition .*: (invalid syntax|something is missing at its end)$/su;
      assert.throws(() => condition.parse(text, fields.FIELDS), start);
    });
  }
});
