// The parts of the panel about one cell.
"use strict";

const sections = (() => {
  const { h } = dom;
  const MOST_DIAGNOSTICS = 200;
  /** @type {Record<string, string>} */
  const RESOURCES = {
    num_regs: "Registers",
    shared_bytes: "Shared",
    local_bytes: "Local",
    const_bytes: "Constant",
    spill_bytes: "Spills",
    stack_bytes: "Stack",
    tensor_cores: "Tensor cores",
  };
  // Keys with a part of their own. Other keys are shown by name, so no fact of a newer record is lost.
  const SHOWN = new Set(
    [
      "cell status stage stages verdict expected reason diagnostics artifact device signal seconds cached command log",
      "notes toolchain fingerprint run environment cumatrix remedy history others program",
    ]
      .join(" ")
      .split(" "),
  );
  /** @type {Record<number, string>} */
  const SIGNALS = {
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    15: "SIGTERM",
    24: "SIGXCPU",
  };

  const missing = (/** @type {unknown} */ value) => value === null || value === undefined;

  /**
   * The stages that the compilation reached.
   *
   * @param {string[]} all
   * @param {CellRecord} record
   * @param {Mark} mark
   */
  const stages = (all, record, mark) => {
    const items = all.map((stage) => {
      const stopped = stage === record.stage && record.status !== "built";
      const done = (record.stages || []).includes(stage);
      const state = stopped ? "stopped here" : done ? "done" : "not run";
      const style = `${state.replaceAll(" ", "-")}${stopped ? ` ${mark.style}` : ""}`;
      return h("li", { class: style }, stage, h("span", { class: "v" }, ` ${state}`));
    });
    return h("ol", { class: "stages", "aria-label": "Stages" }, items);
  };

  /** @param {CellRecord} expected @param {Mark[]} marks @returns {Child[]} */
  const expectation = (expected, marks) => [
    h("b", {}, text.words(expected.status)),
    expected.stage && ` at ${expected.stage}`,
    !missing(expected.diagnostic) && [", with a message matching ", h("code", {}, expected.diagnostic)],
    expected.xfail && `, a ${marks.find(({ key }) => key === "xfail")?.word}`,
    expected.reason && h("p", {}, expected.reason),
    expected.link && h("p", {}, dom.outside(expected.link)),
  ];

  /** @param {CellRecord} other result of the cell in another run */
  const otherRun = (other) => {
    const stage = other.stage && other.status !== "built" ? ` at ${other.stage}` : "";
    const where = other.device === "virtual" ? " without a device" : other.device ? ` on ${other.device}` : "";
    const why = other.reason || other.diagnostic;
    const more = `${stage}${where} in run ${other.run}${why ? `: ${why}` : ""}`;
    return h("p", {}, h("b", {}, text.words(other.status)), more);
  };

  /**
   * The outcome, and the expected outcome.
   *
   * @param {CellRecord} record
   * @param {Mark[]} marks
   */
  const outcome = (record, marks) => {
    const name = SIGNALS[record.signal];
    const signal = record.signal ? `, by signal ${record.signal}${name ? ` (${name})` : ""}` : "";
    const stage = record.stage ? ` at ${record.stage}` : "";
    const why = record.reason ? `: ${record.reason}` : "";
    const virtual = "virtual: the library was shown a device that is not there";
    const notes = record.notes || [];
    return facts.list([
      ["Outcome", [h("b", {}, text.words(record.status)), `${stage}${signal}${why}`]],
      ["Expected", record.expected ? expectation(record.expected, marks) : ""],
      ["Verdict", record.verdict],
      ["Other runs", record.others?.length ? record.others.map(otherRun) : ""],
      ["Device", record.device && (record.device.virtual ? virtual : text.spell(record.device))],
      ["Notes", notes.length ? notes.map((/** @type {string} */ note) => h("p", {}, note)) : ""],
    ]);
  };

  /** @param {CellRecord} item */
  const diagnostic = (item) => {
    const severity = h("span", { class: "severity" }, item.severity, item.code && ` ${item.code}`);
    const place = item.file && h("span", { class: "place" }, ` ${item.file}${item.line ? `:${item.line}` : ""}`);
    return h("li", {}, severity, ` ${item.message}`, place);
  };

  /**
   * The compiler's diagnostics, the first one at its place in the source.
   *
   * @param {CellRecord[]} items
   * @param {Record<string, string>} files
   */
  const diagnostics = ([first, ...others], files) => {
    if (!first) return null;
    const list = (/** @type {CellRecord[]} */ some) => h("ul", { class: "diagnostics" }, some.map(diagnostic));
    const more = h("summary", {}, `${others.length} more`);
    return facts.section(
      others.length ? "Diagnostics" : "Diagnostic",
      list([first]),
      facts.excerpt(files, first),
      others.length > 0 && h("details", { open: others.length < 4 }, more, list(others.slice(0, MOST_DIAGNOSTICS))),
    );
  };

  /** @param {CellRecord[]} items known causes */
  const remedy = (items) =>
    facts.section(
      "Known cause",
      items.map((item) =>
        h(
          "div",
          { class: "remedy" },
          h("h4", {}, item.title),
          item.cause && h("p", {}, item.cause),
          item.remedy && h("p", {}, h("b", {}, "Remedy: "), item.remedy),
          (item.links || []).map((/** @type {string} */ link) => h("p", {}, dom.outside(link))),
        ),
      ),
    );

  /**
   * The artifact, and the resources of its kernels.
   *
   * @param {CellRecord} artifact
   */
  const resources = (artifact) => {
    /** @type {CellRecord[]} */
    const kernels = artifact.kernels || [];
    const keys = new Set([...Object.keys(RESOURCES), ...kernels.flatMap(Object.keys)]);
    const names = [...keys].filter((key) => key !== "name" && kernels.some((kernel) => !missing(kernel[key])));
    const value = (/** @type {unknown} */ it) =>
      missing(it) ? "–" : it === "" ? "none" : typeof it === "number" ? text.count(it) : text.spell(it);
    return facts.section(
      "What came out",
      facts.list([
        ["Artifact", `${artifact.format} for ${artifact.target}, ${text.count(artifact.bytes)} bytes`],
        ["SHA-256", artifact.sha256 ? h("code", {}, artifact.sha256) : ""],
      ]),
      kernels.length > 0 &&
        facts.table(
          "Resources of the kernels",
          ["Kernel", ...names.map((name) => RESOURCES[name] || text.words(name))],
          kernels.map((kernel) => [h("code", {}, kernel.name), ...names.map((name) => value(kernel[name]))]),
        ),
    );
  };

  /**
   * Requested and observed versions.
   *
   * @param {CellRecord} toolchain
   */
  const versions = ({ requested = {}, observed = {} }) => {
    /** @param {object} value @param {string} prefix @returns {[string, string][]} */
    const flat = (value, prefix) =>
      Object.entries(value).flatMap(([key, inner]) => {
        const nested = inner && typeof inner === "object" && !Array.isArray(inner);
        return nested ? flat(inner, key === "packages" ? "" : `${key} `) : [[prefix + key, text.spell(inner)]];
      });
    const asked = new Map(flat(requested, ""));
    const found = new Map(flat(observed, ""));
    const names = [...new Set([...asked.keys(), ...found.keys()])].filter((name) => asked.get(name) || found.get(name));
    const lines = names.map((name) => [name, asked.get(name) || "–", found.get(name) || "–"]);
    return facts.section("Versions", facts.table("Versions", ["What", "Requested", "Observed"], lines, "versions"));
  };

  /**
   * The cell's outcomes in earlier runs, newest first.
   *
   * @param {CellRecord[]} items
   * @param {Mark[]} marks
   */
  const history = (items, marks) => {
    const lines = [...items].reverse().map((item) => {
      const mark = marks.find((each) => each.key === item.mark);
      const [from, to] = [item.started.slice(0, 10), item.last.slice(0, 10)];
      const when =
        item.runs > 1 ? `${from} to ${to}, ${item.runs} runs from ${item.run} on` : `${from}, run ${item.run}`;
      const outcome = h("b", {}, text.words(item.outcome));
      const note = item.message && h("p", { class: "soft" }, item.message);
      return h("li", {}, mark && dom.chip(mark), " ", outcome, ` ${when}`, note);
    });
    return facts.section("History", h("ol", { class: "history" }, lines));
  };

  /**
   * The origin of the record, and keys that the page does not know.
   *
   * @param {CellRecord} record
   */
  const origin = (record) => {
    const seconds = record.seconds === undefined ? "" : `${record.seconds.toFixed(3)} s`;
    const rest = Object.entries(record).filter(([key]) => !SHOWN.has(key));
    return facts.section(
      "Where this comes from",
      facts.list([
        ["Cell", h("code", {}, record.cell)],
        ["Environment", record.environment],
        ["Run", record.run],
        ["Compile time", seconds && `${seconds}${record.cached ? ", taken from the cache" : ""}`],
        ["Fingerprint", record.fingerprint ? h("code", {}, record.fingerprint) : ""],
        .../** @type {[string, Child][]} */ (rest.map(([key, value]) => [text.words(key), text.spell(value)])),
      ]),
    );
  };

  return { stages, outcome, diagnostics, remedy, resources, versions, history, origin };
})();
