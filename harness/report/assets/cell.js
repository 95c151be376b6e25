// The panel that tells everything that is known of one cell.
"use strict";

{
  const { h } = cumatrix;
  const STAGES = ["preprocess", "compile", "assemble", "link", "load", "launch", "verify"];
  const RESOURCES = { num_regs: "Registers", shared_bytes: "Shared", local_bytes: "Local", const_bytes: "Constant", spill_bytes: "Spills", stack_bytes: "Stack" };
  // What has a place of its own below; anything else is shown by its name, so that no fact of a newer record is lost.
  const TOLD = new Set("cell status stage stages verdict expected reason diagnostics artifact device signal seconds cached command log notes toolchain fingerprint run environment cumatrix remedy history others program".split(" "));
  const SIGNALS = { 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM", 24: "SIGXCPU" };

  const spell = (value) => (typeof value === "string" ? value : Array.isArray(value) ? value.map(spell).join(", ") : value && typeof value === "object" ? Object.entries(value).map(([key, inner]) => `${key} ${spell(inner)}`).join(", ") : String(value));
  const words = (text) => text.replaceAll("_", " ");
  const section = (title, ...content) => h("section", {}, h("h3", {}, title), content);
  const code = (text, label) => h("pre", { tabindex: "0", role: "region", "aria-label": label }, text);

  /** A list of names and values; what is empty is left out. */
  const facts = (pairs) => h("dl", {}, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

  /** Copies a text, and says so. */
  const copier = (label, text) => {
    const button = h("button", { type: "button", class: "small", click: async () => {
      let done = false;
      try {
        await navigator.clipboard.writeText(text());
        done = true;
      } catch {
        // A page from disk may have no clipboard: the older way asks nobody.
        const area = h("textarea", { class: "v" }, text());
        document.body.append(area);
        area.select();
        done = document.execCommand("copy");
        area.remove();
      }
      button.textContent = done ? "Copied" : "Not allowed here";
      setTimeout(() => (button.textContent = label), 1500);
    } }, label);
    return button;
  };

  /** The lines around a place in a source, and below the line what was said of it. */
  const excerpt = (files, item) => {
    const name = (item.file || "").split("/").at(-1);
    if (!Object.hasOwn(files, name) || !item.line) return null;
    const lines = files[name].split("\n");
    if (item.line > lines.length) return null;
    const from = Math.max(1, item.line - 3);
    const body = [];
    for (let number = from; number <= Math.min(lines.length, item.line + 3); number++) {
      const here = number === item.line;
      body.push(h("span", { class: here ? "line here" : "line" }, h("span", { class: "number" }, `${here ? "▶" : " "}${String(number).padStart(4)} `), lines[number - 1], "\n"));
      if (here) body.push(h("span", { class: "said" }, `      ${item.severity}: ${item.message}\n`));
    }
    return h("figure", { class: "excerpt" }, h("figcaption", {}, `${name}, line ${item.line}`), h("pre", { tabindex: "0", role: "region", "aria-label": `${name} around line ${item.line}` }, body));
  };

  const stages = (record, mark) => h("ol", { class: "stages", "aria-label": "Stages" }, STAGES.map((stage) => {
    const stopped = stage === record.stage && record.status !== "built";
    const state = stopped ? "stopped here" : (record.stages || []).includes(stage) ? "done" : "not run";
    return h("li", { class: `${state.replaceAll(" ", "-")}${stopped ? ` ${mark.style}` : ""}` }, stage, h("span", { class: "v" }, ` ${state}`));
  }));

  const expectation = (expected) => [
    h("b", {}, words(expected.status)),
    expected.stage ? ` at ${expected.stage}` : "",
    expected.diagnostic !== null && expected.diagnostic !== undefined ? [", with a message matching ", h("code", {}, expected.diagnostic)] : "",
    expected.xfail ? ", a known failure" : "",
    expected.reason ? h("p", {}, expected.reason) : "",
    expected.link ? h("p", {}, cumatrix.outside(expected.link)) : "",
  ];

  const resources = (artifact) => {
    const kernels = artifact.kernels || [];
    const names = [...Object.keys(RESOURCES), ...new Set(kernels.flatMap(Object.keys))].filter((name, place, all) => name !== "name" && all.indexOf(name) === place && kernels.some((kernel) => kernel[name] !== null && kernel[name] !== undefined));
    return section("What came out", facts([["Artifact", `${artifact.format} for ${artifact.target}, ${cumatrix.count(artifact.bytes)} bytes`], ["SHA-256", h("code", {}, artifact.sha256)]]), kernels.length
      ? h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Resources of the kernels" }, h("table", { class: "list" },
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Kernel"), names.map((name) => h("th", { scope: "col" }, RESOURCES[name] || words(name))))),
          h("tbody", {}, kernels.map((kernel) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, kernel.name)), names.map((name) => h("td", {}, kernel[name] === null || kernel[name] === undefined ? "–" : typeof kernel[name] === "number" ? cumatrix.count(kernel[name]) : spell(kernel[name]))))))))
      : null);
  };

  const versions = (toolchain) => {
    const { requested = {}, observed = {} } = toolchain;
    const rows = [];
    const flat = (value, prefix) => Object.entries(value).flatMap(([key, inner]) => (inner && typeof inner === "object" && !Array.isArray(inner) ? flat(inner, key === "packages" ? "" : `${key} `) : [[prefix + key, spell(inner)]]));
    const asked = new Map(flat(requested, ""));
    const found = new Map(flat(observed, ""));
    for (const name of new Set([...asked.keys(), ...found.keys()])) if (asked.get(name) || found.get(name)) rows.push(h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, asked.get(name) || "–"), h("td", {}, found.get(name) || "–")));
    return section("Versions", h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Versions" }, h("table", { class: "list versions" }, h("thead", {}, h("tr", {}, ["What", "Requested", "Observed"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))));
  };

  const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

  /** Commands that run this one cell again. */
  const reproduce = (matrix, cell, record) => {
    const value = (key) => matrix.value(cell, key);
    const variant = value("variant");
    const where = ["-b", value("backend"), "-t", value("toolkit"), "-a", value("target"), "--no-cache"];
    const words = ["cumatrix", "run", value("case"), ...where, ...(variant ? ["--where", `variant == ${JSON.stringify(variant)}`] : [])];
    // A program without a case: what stands in the variant's place are its options, as a shell takes them.
    const again = record.program ? [...["cumatrix", "try", value("case").replace(/@[0-9a-f]{6}$/, "")].map(shell), variant, ...where.map(shell)].filter(Boolean).join(" ") : words.map(shell).join(" ");
    const asked = Object.entries(record.toolchain?.requested?.packages || {});
    // CuPy's wheels have names of their own, and "cupy" beside one is only what it is imported as.
    const packages = asked.filter(([name]) => name !== "python" && (name !== "cupy" || !asked.some(([other]) => other.startsWith("cupy-cuda"))));
    const text = [...(packages.length && value("library") ? [`pip install ${packages.map(([name, version]) => shell(`${name}==${version}`)).join(" ")}`] : []), ...(value("toolkit").includes("@") ? [] : [`cumatrix toolkits install ${value("toolkit").split("+headers").map(shell).join(",")}`]), again].join("\n");
    return section("How to reproduce", code(text, "Commands"), copier("Copy the commands", () => text));
  };

  const history = (items, marks) => section("History", h("ol", { class: "history" }, [...items].reverse().map((item) => h("li", {}, cumatrix.chip(marks.find((mark) => mark.key === item.mark)), " ", h("b", {}, words(item.outcome)), ` ${item.started.slice(0, 10)}${item.runs > 1 ? ` to ${item.last.slice(0, 10)}, ${item.runs} runs from ${item.run} on` : `, run ${item.run}`}`, item.message ? h("p", { class: "soft" }, item.message) : ""))));

  const remedy = (items) => section("Known cause", items.map((item) => h("div", { class: "remedy" }, h("h4", {}, item.title), item.cause ? h("p", {}, item.cause) : null, item.remedy ? h("p", {}, h("b", {}, "Remedy: "), item.remedy) : null, (item.links || []).map((link) => h("p", {}, cumatrix.outside(link))))));

  cumatrix.Panel = class {
    constructor(box, matrix, close) {
      this.box = box;
      this.matrix = matrix;
      this.close = close;
      this.asked = 0;
      box.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          close();
        }
      });
    }

    hide() {
      this.asked++;
      this.box.hidden = true;
      this.box.replaceChildren();
    }

    frame(mark, title, place, content) {
      const heading = h("h2", { tabindex: "-1" }, mark ? cumatrix.chip(mark) : null, " ", title);
      this.box.replaceChildren(
        h("header", {}, heading, h("div", { class: "tools" }, copier("Copy link", () => location.href), h("button", { type: "button", class: "small close", "aria-label": "Close", click: this.close }, "✕"))),
        h("p", { class: "place" }, place),
        ...cumatrix.real(content),
      );
      this.box.hidden = false;
      this.box.scrollTop = 0;
      return heading;
    }

    /** Tell of a cell; the text comes out of a file that may have to be loaded first. */
    async show(cell, { focus = false } = {}) {
      const asked = ++this.asked;
      const { matrix } = this;
      const mark = matrix.mark(cell);
      const value = (key) => matrix.value(cell, key);
      const page = matrix.cases[matrix.codesOf("case")[cell]];
      const name = value("variant") ? `${value("case")} [${value("variant")}]` : value("case");
      const place = [h("a", { href: `cases/${page.page}` }, name), h("br"), [`${value("backend")} ${value("library")}`.trim(), `CUDA ${value("toolkit").replace("+headers", ", headers ")}`, value("target")].join(" · ")];
      const heading = this.frame(mark, mark.word, place, [h("p", { class: "soft", role: "status" }, "Loading…")]);
      if (focus) heading.focus();
      let record, files;
      try {
        [record, files] = await Promise.all([this.record(cell), page.files ? cumatrix.load(page.files) : {}]);
      } catch (error) {
        if (asked === this.asked) this.frame(mark, mark.word, place, [h("p", { class: "bad", role: "alert" }, error.message)]);
        return;
      }
      if (asked !== this.asked) return;
      const focused = document.activeElement === heading;
      const again = this.frame(mark, mark.word, place, this.content(cell, mark, record, files));
      if (focused) again.focus();
    }

    async record(cell) {
      const chunk = await cumatrix.load(this.matrix.chunk(cell));
      const at = cell - chunk.start;
      return Object.fromEntries(Object.entries(chunk.columns).filter(([, column]) => column[at]).map(([key, column]) => [key, chunk.values[column[at]]]));
    }

    content(cell, mark, record, files) {
      if (!record.status) return [h("p", {}, "This cell was planned, but no record of it ever arrived: the run was killed, or its file is not among those of this report."), h("p", {}, h("code", {}, record.cell)), reproduce(this.matrix, cell, record)];
      const [first, ...others] = record.diagnostics || [];
      const place = first && excerpt(files, first);
      const diagnostic = (item) => h("li", {}, h("span", { class: "severity" }, item.severity, item.code ? ` ${item.code}` : ""), ` ${item.message}`, item.file ? h("span", { class: "place" }, ` ${item.file}${item.line ? `:${item.line}` : ""}`) : null);
      const signal = record.signal ? `, by signal ${record.signal}${SIGNALS[record.signal] ? ` (${SIGNALS[record.signal]})` : ""}` : "";
      const rest = Object.entries(record).filter(([key]) => !TOLD.has(key));
      return [
        stages(record, mark),
        facts([
          ["Outcome", [h("b", {}, words(record.status)), record.stage ? ` at ${record.stage}` : "", signal, record.reason ? `: ${record.reason}` : ""]],
          ["Expected", record.expected ? expectation(record.expected) : ""],
          ["Verdict", record.verdict],
          ["Other runs", (record.others || []).map((other) => h("p", {}, h("b", {}, words(other.status)), other.stage && other.status !== "built" ? ` at ${other.stage}` : "", ` in run ${other.run}`, other.reason || other.diagnostic ? `: ${other.reason || other.diagnostic}` : ""))],
          ["Device", record.device ? (record.device.virtual ? "virtual: the library was shown a device that is not there" : spell(record.device)) : ""],
          ["Notes", (record.notes || []).length ? record.notes.map((note) => h("p", {}, note)) : ""],
        ]),
        first ? section(others.length ? "Diagnostics" : "Diagnostic", h("ul", { class: "diagnostics" }, diagnostic(first)), place, others.length ? h("details", { open: others.length < 4 }, h("summary", {}, `${others.length} more`), h("ul", { class: "diagnostics" }, others.slice(0, 200).map(diagnostic))) : null) : null,
        record.remedy ? remedy(record.remedy) : null,
        record.artifact ? resources(record.artifact) : null,
        record.log ? section("Log", code(record.log, "Log"), copier("Copy the log", () => record.log)) : null,
        record.command ? section("Command", code(record.command.join("\n"), "Command")) : null,
        reproduce(this.matrix, cell, record),
        record.history ? history(record.history, this.matrix.marks) : null,
        record.toolchain ? versions(record.toolchain) : null,
        section("Where this comes from", facts([["Cell", h("code", {}, record.cell)], ["Environment", record.environment], ["Run", record.run], ["Compile time", record.seconds === undefined ? "" : `${record.seconds.toFixed(3)} s${record.cached ? ", taken from the cache" : ""}`], ["Fingerprint", record.fingerprint ? h("code", {}, record.fingerprint) : ""], ...rest.map(([key, value]) => [words(key), spell(value)])])),
      ];
    }

    /** Several cells behind one place of the table: told by mark, each with a link. */
    list(cells, title, href) {
      this.asked++;
      const { matrix } = this;
      const byMark = new Map();
      for (const cell of cells) {
        const mark = matrix.mark(cell);
        if (!byMark.has(mark)) byMark.set(mark, []);
        byMark.get(mark).push(cell);
      }
      const groups = [...byMark].sort(([a], [b]) => a.good - b.good || matrix.marks.indexOf(a) - matrix.marks.indexOf(b));
      const heading = this.frame(null, `${cumatrix.count(cells.length)} cells`, title, groups.map(([mark, own]) => h("details", { open: !mark.good || groups.length === 1 }, h("summary", {}, cumatrix.chip(mark), ` ${cumatrix.count(own.length)} ${mark.word}`), h("ul", { class: "plain" }, own.slice(0, 200).map((cell) => h("li", {}, h("a", { href: href(cell) }, `${matrix.value(cell, "variant") || matrix.value(cell, "case")} · ${matrix.value(cell, "backend")} ${matrix.value(cell, "library")} · CUDA ${matrix.value(cell, "toolkit")} · ${matrix.value(cell, "target")}`), matrix.message(cell) ? h("small", {}, ` ${matrix.message(cell)}`) : null)), own.length > 200 ? h("li", {}, `and ${cumatrix.count(own.length - 200)} more: narrow the filter`) : null))));
      heading.focus();
    }
  };
}
