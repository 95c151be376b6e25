// The page's scripts, loaded as a browser does: one after the other, into one global scope.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const ASSETS = path.join(__dirname, "..", "..", "harness", "report", "assets");
// Those that need no document; each has one constant or class of the name that is asked for.
const SCRIPTS = {
  text: "text",
  matrix: "Matrix",
  fields: "fields",
  versions: "versions",
  syntax: "syntax",
  condition: "condition",
  query: "query",
  completion: "completion",
  counts: "counts",
  pivot: "pivot",
  address: "address",
  part: "parts",
  squares: "Squares",
  headings: "Headings",
  commands: "commands",
  next: "next",
  views: "views",
  diff: "diff",
  question: "question",
  intents: "intents",
  requests: "requests",
  answer: "answering",
};

for (const name of Object.keys(SCRIPTS)) {
  const filename = path.join(ASSETS, `${name}.js`);
  vm.runInThisContext(fs.readFileSync(filename, "utf8"), { filename });
}
module.exports = vm.runInThisContext(`({ ConditionError, ${Object.values(SCRIPTS).join()} })`);
