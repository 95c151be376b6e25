// PTX and SASS of a cell, next to those of another cell of the same program. Loaded on demand.
"use strict";

/**
 * Names and kinds of texts, and cells with the numbers of their texts.
 *
 * @typedef {{texts: [string, string][], cells: [number, number][]}} CodeIndex
 */
/** @typedef {{text?: string, by?: string, problem?: string}} CodeText */

const code = (() => {
  const { h } = dom;
  /** Maximum number of cells to choose from. */
  const MOST = 500;
  /** Number of equal lines shown around different ones. */
  const AROUND = 3;
  const SIGNS = { same: " ", gone: "−", new: "+" };

  /**
   * The part of the panel, closed. It loads nothing until it is opened.
   *
   * @param {Matrix} matrix
   * @param {number} cell
   */
  const section = (matrix, cell) => {
    const about = matrix.cases[matrix.codesOf("case")[cell]];
    if (!about.code) return null;
    const content = h("div", { "aria-live": "polite" }, h("p", { class: "soft" }, "Loading…"));
    const opened = h("details", { class: "code" }, h("summary", {}, "Show PTX or SASS"), content);
    opened.addEventListener("toggle", () => shown(matrix, cell, about.code, content), { once: true });
    return facts.section("Code", opened);
  };

  /**
   * @param {Matrix} matrix
   * @param {number} cell
   * @param {string} name of the file that maps cells to texts
   * @param {HTMLElement} content
   */
  const shown = async (matrix, cell, name, content) => {
    try {
      /** @type {CodeIndex} */
      const index = await cumatrix.load(name);
      const own = index.cells.find(([number]) => number === cell);
      if (!own) {
        const missing =
          "What this cell built was not kept: run it with --keep-artifacts, into the folder of this report.";
        content.replaceChildren(h("p", {}, missing));
        return;
      }
      const [file, kind] = index.texts[own[1]];
      /** @type {CodeText} */
      const made = await cumatrix.load(file);
      if (made.text === undefined) {
        content.replaceChildren(h("p", {}, made.problem));
        return;
      }
      const text = made.text;
      const place = h("div", {}, facts.code(text, kind));
      const others = chooser(matrix, cell, index, kind, (other) => compare(text, other, kind, index, place));
      content.replaceChildren(
        h("p", { class: "soft" }, kind, made.by && ` without offsets, by ${made.by}`),
        ...dom.real([others]),
        place,
        facts.copier(`Copy the ${kind}`, () => text),
      );
    } catch (error) {
      content.replaceChildren(h("p", { class: "bad", role: "alert" }, textOf(error)));
    }
  };

  /**
   * Other cells of the program with a text of the same kind, cells of the same variant first.
   *
   * @param {Matrix} matrix
   * @param {number} cell
   * @param {CodeIndex} index
   * @param {string} kind
   * @param {(other: number | null) => void} chosen
   * @returns {Child}
   */
  const chooser = (matrix, cell, index, kind, chosen) => {
    const own = matrix.describe(cell).variant;
    const all = index.cells.filter(([number, text]) => number !== cell && index.texts[text][1] === kind);
    if (!all.length) return h("p", { class: "soft" }, `No other cell of this program has ${kind} here.`);
    const described = all.map(([number]) => ({ number, ...matrix.describe(number) }));
    const sorted = [...described.filter((it) => it.variant === own), ...described.filter((it) => it.variant !== own)];
    const options = sorted.slice(0, MOST).map(({ number, variant, toolchain }) => {
      const label = variant === own ? toolchain : `${toolchain} · ${variant || "no variant"}`;
      return h("option", { value: String(number) }, label);
    });
    const list = h("select", {}, h("option", { value: "" }, "nothing"), options);
    list.addEventListener("change", () => chosen(list.value === "" ? null : Number(list.value)));
    const more = sorted.length > MOST && ` ${text.count(sorted.length - MOST)} more are not listed.`;
    return h("p", {}, h("label", {}, "Sidecars it: ", list), more);
  };

  /** Number of the latest choice of a second cell: a text that arrives after another choice is ignored. */
  let asked = 0;

  /**
   * Show a text, alone or compared with another cell's text.
   *
   * @param {string} own
   * @param {number | null} other
   * @param {string} kind
   * @param {CodeIndex} index
   * @param {HTMLElement} place
   */
  const compare = async (own, other, kind, index, place) => {
    const turn = ++asked;
    if (other === null) {
      place.replaceChildren(facts.code(own, kind));
      return;
    }
    try {
      const found = index.cells.find(([number]) => number === other);
      /** @type {CodeText} */
      const made = await cumatrix.load(index.texts[found ? found[1] : -1][0]);
      if (turn !== asked) return;
      const content = made.text === undefined ? [h("p", {}, made.problem)] : differing(own, made.text, kind);
      place.replaceChildren(...dom.real(content));
    } catch (error) {
      if (turn === asked) place.replaceChildren(h("p", { class: "bad", role: "alert" }, textOf(error)));
    }
  };

  /**
   * Lines in one text only, with some lines around them.
   *
   * @param {string} own
   * @param {string} other
   * @param {string} kind
   * @returns {Child[]}
   */
  const differing = (own, other, kind) => {
    if (own === other) return [h("p", { role: "status" }, "Line by line the same."), facts.code(own, kind)];
    const runs = diff.texts(own, other);
    if (!runs) {
      const why = `They differ in too many lines to be compared. This is the other cell's ${kind}:`;
      return [h("p", { role: "status" }, why), facts.code(other, kind)];
    }
    const count = (/** @type {string} */ wanted) =>
      runs.reduce((sum, run) => sum + (run.kind === wanted ? run.lines.length : 0), 0);
    const gone = count("gone");
    const lines = `${text.count(gone)} line${gone === 1 ? "" : "s"}`;
    const summary = `${lines} of this cell alone (−), ${text.count(count("new"))} of the other (+).`;
    const body = runs.flatMap((run, at) => part(run, at === 0, at === runs.length - 1));
    return [
      h("p", { role: "status" }, summary),
      h("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": `Differences of the ${kind}` }, body),
    ];
  };

  /**
   * One run of lines. A long run of equal lines is reduced to those next to different ones.
   *
   * @param {Run} run
   * @param {boolean} first
   * @param {boolean} last
   * @returns {Child[]}
   */
  const part = ({ kind, lines }, first, last) => {
    const line = (/** @type {string} */ it) => h("span", { class: `line ${kind}` }, `${SIGNS[kind]} ${it}\n`);
    const before = first ? 0 : AROUND;
    const after = last ? 0 : AROUND;
    if (kind !== "same" || lines.length <= before + after + 1) return lines.map(line);
    const left = lines.length - before - after;
    const note = h("span", { class: "line left" }, `  … ${text.count(left)} lines that are the same\n`);
    return [...lines.slice(0, before).map(line), note, ...lines.slice(lines.length - after).map(line)];
  };

  const textOf = (/** @type {unknown} */ error) => (error instanceof Error ? error.message : String(error));

  return { section };
})();
