// What a cell says to do next.
"use strict";

const assert = require("node:assert/strict");
const { describe, it } = require("node:test");
const { next } = require("./load.js");

const FORM = "https://github.com/cupy/cupy/issues/new";
const TRACKERS = {
  backends: { "cupy-nvrtc": FORM },
  libraries: { cutlass: "https://github.com/NVIDIA/cutlass/issues/new" },
  searched: { "cupy-nvrtc": "cupy", numba: "numba" },
  languages: { "cupy-nvrtc": "cuda", numba: "python" },
};
const PLACE = { case: "wmma/fragments", variant: "n=1", backend: "cupy-nvrtc", toolkit: "12.4", target: "sm_80" };
const RECORD = {
  cell: "wmma/fragments[n=1] cupy-nvrtc@13.6.0 cuda12.4 sm_80",
  ...{ status: "rejected", stage: "compile", environment: "cupy13", command: ["nvrtc a.cu"] },
  diagnostics: [{ message: "incomplete type\nsecond line" }],
  toolchain: { requested: { packages: { cupy: "13.6.0" } }, observed: { nvrtc: "12.4.127", wheels: {} } },
};
const about = (more = {}) => ({
  ...{ title: "Fragments", place: "cupy-nvrtc 13.6.0 · CUDA 12.4 · sm_80", files: {}, libraries: [] },
  ...{ trackers: TRACKERS, ...more },
});
const stepsOf = (place = {}, record = {}, more = {}) => {
  const values = { ...PLACE, ...place };
  const found = next.steps((key) => values[key], { ...RECORD, ...record }, about(more));
  return Object.fromEntries(found.map((step) => [step.title, step]));
};

describe("a cell says what to do next", () => {
  it("by commands, as a shell takes them", () => {
    const steps = stepsOf();
    assert.deepEqual(Object.keys(steps), [
      "Show it without cumatrix",
      "Try your own program",
      "Find out since when",
      "Report it upstream",
      "Change what is expected",
    ]);
    const code = (title) => steps[title].code;
    assert.equal(
      code("Show it without cumatrix"),
      "cumatrix repro 'wmma/fragments[n=1] cupy-nvrtc@13.6.0 cuda12.4 sm_80' --out repro",
    );
    assert.equal(code("Try your own program"), "cumatrix try kernel.cu -b cupy-nvrtc -t 12.4 -a sm_80");
    assert.equal(
      code("Find out since when"),
      [
        "cumatrix bisect 'wmma/fragments[n=1]' --over cupy -b cupy-nvrtc -t 12.4 -a sm_80",
        "cumatrix bisect 'wmma/fragments[n=1]' --over cuda -b cupy-nvrtc -a sm_80",
      ].join("\n"),
    );
    assert.equal(code("Change what is expected"), "cumatrix bless reports wmma/fragments --diff");
  });

  it("with the name that the case has in its own project", () => {
    const steps = stepsOf({ case: "fast/softmax@flash-attn" }, { project: "flash-attn" });
    assert.match(steps["Find out since when"].code, /^cumatrix bisect 'fast\/softmax\[n=1\]' /);
    assert.equal(steps["Change what is expected"].code, "cumatrix bless reports fast/softmax --diff");
  });

  it("with the host compiler that the cell was compiled with", () => {
    const code = (host) => stepsOf({ backend: "nvcc", host_compiler: host })["Try your own program"].code;
    assert.equal(code("gcc-13"), "cumatrix try kernel.cu -b nvcc -t 12.4 -a sm_80 --host-compiler gcc-13");
    assert.equal(
      code("glibc-2.43"),
      "cumatrix try kernel.cu -b nvcc -t 12.4 -a sm_80 --host-compiler glibc-2.43=/path/to/g++",
    );
  });

  it("of what was built nothing is reported, and what nobody answered is only tried", () => {
    assert.ok(!("Report it upstream" in stepsOf({}, { status: "built" })));
    assert.deepEqual(Object.keys(stepsOf({}, { status: "unavailable" })), [
      "Try your own program",
      "Change what is expected",
    ]);
  });

  it("a published cell needs no file, a toolkit of a machine is not named", () => {
    const steps = stepsOf({ toolkit: "12.4@local" }, { environment: "published" });
    assert.match(steps["Show it without cumatrix"].code, /sm_80' --out repro$/);
    assert.equal(steps["Try your own program"].code, "cumatrix try kernel.cu -b cupy-nvrtc -a sm_80");
  });

  it("a program without a case keeps its options, and header libraries are searched too", () => {
    const steps = stepsOf({ case: "my kernel.cu@0123ab", variant: "-DN=4" }, { program: "0123ab" });
    assert.match(steps["Find out since when"].code, /^cumatrix bisect 'my kernel\.cu' -DN=4 --over cupy /);
    assert.ok(!("Change what is expected" in steps));
    const with_headers = stepsOf({ backend: "nvrtc" }, {}, { libraries: ["cutlass"] });
    assert.match(with_headers["Find out since when"].code, /--over cutlass -b nvrtc -t 12\.4/);
    assert.deepEqual(
      with_headers["Report it upstream"].links.map(([name]) => name),
      ["NVIDIA/cutlass"],
    );
  });

  it("where there is no tracker the text is there to copy", () => {
    const step = stepsOf({ backend: "nvrtc" })["Report it upstream"];
    assert.deepEqual(step.links, []);
    assert.match(step.about, /text to copy/);
    assert.match(step.code, /incomplete type/);
  });
});

describe("a report to upstream", () => {
  const files = { "case.toml": "x", "kernel.cu": "```\n__global__ void k() {}\n" };
  const step = stepsOf({}, {}, { files })["Report it upstream"];

  it("has message, program, command and versions, and code in fences that it does not have itself", () => {
    const [title, , ...body] = step.code.split("\n");
    assert.equal(title, "incomplete type (cupy-nvrtc 13.6.0 · CUDA 12.4 · sm_80)");
    const text = body.join("\n");
    assert.match(text, /^Fragments: rejected at compile with cupy-nvrtc 13\.6\.0/);
    assert.match(text, /````cuda\n```\n__global__ void k\(\) \{\}\n````/);
    assert.match(text, /- cupy 13\.6\.0\n- nvrtc 12\.4\.127/);
    assert.match(text, /nvrtc a\.cu/);
  });

  it("shows the program in the language that was compiled", () => {
    const both = { "kernel.cu": "cuda", "kernel.py": "of python", "reference.py": "check" };
    const of = (backend, some) => stepsOf({ backend }, {}, { files: some })["Report it upstream"].code;
    assert.match(of("numba", both), /```python\nof python\n```/);
    assert.match(of("cupy-nvrtc", both), /```cuda\ncuda\n```/);
    assert.match(of("cupy-nvrtc", { "program.py": "alone", "reference.py": "check" }), /```python\nalone\n```/);
    assert.equal(stepsOf({ backend: "numba" })["Try your own program"].code.split(" ")[2], "kernel.py");
  });

  it("opens the form filled in", () => {
    const [[name, address]] = step.links;
    assert.equal(name, "cupy/cupy");
    const url = new URL(address);
    assert.equal(url.origin + url.pathname, FORM);
    assert.equal(`${url.searchParams.get("title")}\n\n${url.searchParams.get("body")}`, step.code);
  });

  for (const [name, body] of [
    ["long", "error ".repeat(5000)],
    ["of letters that take nine each", "語".repeat(5000)],
    ["with half a letter and quotes", `\ud800 ' " < > \\ & # % ${"x".repeat(9000)}`],
  ]) {
    it(`stays an address that browsers and GitHub take: ${name}`, () => {
      const address = next.formAddress(FORM, { title: `it's ${body.slice(0, 50)}`, body });
      assert.ok(address.length <= 7000);
      assert.match(address, /^https?:\/\/[^\s<>"'\\]+$/);
      assert.ok(new URL(address).searchParams.get("body").endsWith("… (cut)"));
    });
  }
});
