// Next steps for a cell: texts and commands, made from its record.
"use strict";

/**
 * A possible next step.
 *
 * @typedef {object} NextStep
 * @property {string} title
 * @property {string} [about] its purpose, in a sentence
 * @property {string} code the text to copy
 * @property {[string, string][]} [links] name and address
 */

const next = (() => {
  // GitHub rejects addresses of more than about 8,000 letters. An encoded text is up to three times as long.
  const MOST_ADDRESS = 7000;
  const MOST_PROGRAM = 3000;
  const MOST_LOG = 2000;

  /**
   * The start of a text.
   *
   * @param {string} whole
   * @param {number} most
   */
  const cut = (whole, most) => (whole.length > most ? `${whole.slice(0, most)}\n… (cut)` : whole);

  /**
   * A text as a block of code in Markdown, within a fence that the text does not contain.
   *
   * @param {string} language
   * @param {string} body
   */
  const block = (language, body) => {
    const longest = Math.max(2, ...(body.match(/`+/g) || []).map((run) => run.length));
    const fence = "`".repeat(longest + 1);
    return `${fence}${language}\n${body.replace(/\n*$/, "")}\n${fence}`;
  };

  /**
   * Whether the record has a failure to report: a refusal or crash of a compiler or library.
   *
   * @param {CellRecord} record
   */
  const failed = (record) => ["rejected", "crashed", "timed_out"].includes(record.status);

  /**
   * The program among the files of a case: name and text.
   *
   * @param {Record<string, string>} files
   * @param {boolean} python
   */
  const sourceOf = (files, python) => {
    const found = Object.entries(files).filter(([name]) => /\.(cu|py|cuh)$/.test(name) && name !== "reference.py");
    return found.find(([name]) => name.endsWith(".py") === python) || found[0];
  };

  /**
   * Title and text of a report to upstream.
   *
   * @param {CellRecord} record
   * @param {string} place toolchain and target
   * @param {string} title of the case
   * @param {Record<string, string>} files texts of the case's files
   * @param {boolean} python whether it was compiled from Python
   */
  const report = (record, place, title, files, python = false) => {
    const message = (record.diagnostics || [])[0]?.message || record.reason || text.words(record.status);
    const [first] = message.split("\n");
    const { requested = {}, observed = {} } = record.toolchain || {};
    const versions = Object.entries({ ...requested.packages, ...requested.libraries, ...observed })
      .filter(([, value]) => ["string", "number"].includes(typeof value) && value !== "")
      .map(([name, value]) => `- ${name} ${value}`);
    const [name = "", program = ""] = sourceOf(files, python) || [];
    const stage = record.stage ? ` at ${record.stage}` : "";
    const known = record.cell.replaceAll("`", "'");
    const parts = [
      `${title || "A program"}: ${text.words(record.status)}${stage} with ${place}.`,
      block("text", cut(message, MOST_LOG)),
      program && `${name}:\n\n${block(name.endsWith(".py") ? "python" : "cuda", cut(program, MOST_PROGRAM))}`,
      record.command?.length && `What was run:\n\n${block("text", cut(record.command.join("\n"), MOST_LOG))}`,
      versions.length && `Versions:\n\n${versions.join("\n")}`,
      `Found with cumatrix, as \`${known}\`. \`cumatrix repro\` makes a folder that shows it without cumatrix.`,
    ];
    return { title: cut(`${first.slice(0, 120)} (${place})`, 200), body: parts.filter(Boolean).join("\n\n") };
  };

  /**
   * The address of a form for a new issue, filled in up to the maximum length of an address.
   *
   * @param {string} form
   * @param {{title: string, body: string}} report
   */
  const formAddress = (form, { title, body }) => {
    // A quote would end the address in HTML, and half a surrogate pair cannot be encoded.
    const encoded = (/** @type {string} */ part) =>
      encodeURIComponent(part.replace(/[\ud800-\udfff]/gu, "\ufffd")).replaceAll("'", "%27");
    const whole = (/** @type {string} */ part) => `${form}?title=${encoded(title)}&body=${encoded(part)}`;
    let most = body.length;
    while (whole(cut(body, most)).length > MOST_ADDRESS && most > 100) most = Math.floor(most * 0.8);
    return whole(cut(body, most));
  };

  /**
   * @typedef {object} AboutCell
   * @property {string} title of the case
   * @property {string} place toolchain and target
   * @property {Record<string, string>} files texts of the case's files
   * @property {Trackers} trackers
   * @property {string[]} libraries header libraries in the variant
   */

  /**
   * The program as commands name it: a case with its variant, or a file with its options.
   *
   * @param {(key: string) => string} value
   * @param {CellRecord} record
   */
  const programOf = (value, record) => {
    const [name, variant] = [commands.caseOf(value, record), value("variant")];
    if (!record.program) return text.shell(variant ? `${name}[${variant}]` : name);
    return [text.shell(name), variant].filter(Boolean).join(" ");
  };

  /**
   * Searches for the release that changed the outcome.
   *
   * @param {(key: string) => string} value
   * @param {CellRecord} record
   * @param {AboutCell} about
   */
  const searches = (value, record, { trackers, libraries }) => {
    const what = programOf(value, record);
    const backend = value("backend");
    const own = Object.hasOwn(trackers.searched, backend) ? [trackers.searched[backend]] : [];
    const lines = [...libraries, ...own, "cuda"].map((axis) => {
      const words = [
        "-b",
        backend,
        ...(axis === "cuda" ? [] : release(value)),
        "-a",
        value("target"),
        ...commands.host(value),
      ];
      return `cumatrix bisect ${what} --over ${axis} ${words.map(text.shell).join(" ")}`;
    });
    return lines.join("\n");
  };

  /** @param {(key: string) => string} value */
  const release = (value) => (value("toolkit").includes("@") ? [] : ["-t", value("toolkit")]);

  /**
   * Whether a backend compiled Python: it accepts nothing else, or the case has nothing else.
   *
   * @param {string} backend
   * @param {Record<string, string>} files
   * @param {Trackers} trackers
   */
  const isPython = (backend, files, { languages }) => {
    const names = Object.keys(files).filter((name) => name !== "reference.py");
    const only = names.some((name) => name.endsWith(".py")) && !names.some((name) => name.endsWith(".cu"));
    return only || (Object.hasOwn(languages, backend) && languages[backend] === "python");
  };

  /**
   * The report to upstream, with its forms.
   *
   * @param {(key: string) => string} value
   * @param {CellRecord} record
   * @param {AboutCell} about
   * @returns {NextStep}
   */
  const upstream = (value, record, { title, place, files, trackers, libraries }) => {
    const { backends } = trackers;
    const of = value("backend");
    const issue = report(record, place, title, files, isPython(of, files, trackers));
    const forms = [
      ...(Object.hasOwn(backends, of) ? [backends[of]] : []),
      ...libraries.filter((each) => Object.hasOwn(trackers.libraries, each)).map((each) => trackers.libraries[each]),
    ];
    return {
      title: "Report it upstream",
      about: forms.length
        ? "The form for a new issue, filled in: nothing is sent before you look at it and send it."
        : "No tracker of its compiler has a form for that: a text to copy.",
      code: `${issue.title}\n\n${issue.body}`,
      links: forms.map((form) => [form.split("/").slice(3, 5).join("/"), formAddress(form, issue)]),
    };
  };

  /**
   * Possible next steps for a cell.
   *
   * @param {(key: string) => string} value the cell's value of an axis
   * @param {CellRecord} record
   * @param {AboutCell} about
   * @returns {NextStep[]}
   */
  const steps = (value, record, about) => {
    const answered = failed(record) || record.status === "built";
    const name = commands.caseOf(value, record);
    const words = ["-b", value("backend"), ...release(value), "-a", value("target"), ...commands.host(value)]
      .map(text.shell)
      .join(" ");
    const python = isPython(value("backend"), about.files, about.trackers);
    /** @type {(NextStep | false)[]} */
    const found = [
      answered && {
        title: "Show it without cumatrix",
        about: "A folder with the program, a short script and exact versions, for a bug report.",
        code: `cumatrix repro ${text.shell(record.cell)} --out repro`,
      },
      !record.program && {
        title: "Try your own program",
        about: "With the same compiler, CUDA release and architecture.",
        code: `cumatrix try ${python ? "kernel.py" : "kernel.cu"} ${words}`,
      },
      answered && {
        title: "Find out since when",
        about: "Tries releases until two neighbours differ.",
        code: searches(value, record, about),
      },
      failed(record) && upstream(value, record, about),
      !record.program && {
        title: "Change what is expected",
        about: `It stands in cases/${name}/case.toml; bless writes there what was observed, after showing it.`,
        code: `cumatrix bless reports ${text.shell(name)} --diff`,
      },
    ];
    return found.filter((step) => step !== false);
  };

  return { steps, report, formAddress, block };
})();
