// The panel with everything known about one cell, or with a list of several.
"use strict";

class Panel {
  /**
   * @param {HTMLElement} box
   * @param {Matrix} matrix
   * @param {() => void} close
   */
  constructor(box, matrix, close) {
    this.box = box;
    this.matrix = matrix;
    this.close = close;
    /** Number of requests: a result that arrives after a later request is ignored. */
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

  /**
   * Show a heading with content below.
   *
   * @param {Mark | null} mark
   * @param {string} title
   * @param {Child} place
   * @param {Child[]} content
   */
  frame(mark, title, place, content) {
    const { h } = dom;
    const heading = h("h2", { tabindex: "-1" }, mark && dom.chip(mark), " ", title);
    const shut = h("button", { type: "button", class: "small close", "aria-label": "Close", click: this.close }, "✕");
    const tools = h(
      "div",
      { class: "tools" },
      facts.copier("Copy link", () => location.href),
      shut,
    );
    this.box.replaceChildren(h("header", {}, heading, tools), h("p", { class: "place" }, place), ...dom.real(content));
    this.box.hidden = false;
    this.box.scrollTop = 0;
    return heading;
  }

  /**
   * Show a cell, after loading the file with its details if necessary.
   *
   * @param {number} cell
   * @param {boolean} focus whether to focus the panel
   */
  async show(cell, focus) {
    const { h } = dom;
    const asked = ++this.asked;
    const { matrix } = this;
    const mark = matrix.mark(cell);
    const about = matrix.cases[matrix.codesOf("case")[cell]];
    const described = matrix.describe(cell);
    const name = described.variant ? `${described.case} [${described.variant}]` : described.case;
    const place = [h("a", { href: `cases/${about.page}` }, name), h("br"), described.toolchain];
    const heading = this.frame(mark, mark.word, place, [h("p", { class: "soft", role: "status" }, "Loading…")]);
    if (focus) heading.focus();
    let record, files;
    try {
      [record, files] = await Promise.all([this.record(cell), about.files ? cumatrix.load(about.files) : {}]);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const content = h("p", { class: "bad", role: "alert" }, message);
      if (asked === this.asked) this.frame(mark, mark.word, place, [content]);
      return;
    }
    if (asked !== this.asked) return;
    const focused = document.activeElement === heading;
    const again = this.frame(mark, mark.word, place, this.content(cell, record, files));
    if (focused) again.focus();
  }

  /**
   * The record of a cell. A file has each value of a key once, and the index of each cell's value.
   *
   * @param {number} cell
   * @returns {Promise<CellRecord>}
   */
  async record(cell) {
    const chunk = await cumatrix.load(this.matrix.chunk(cell));
    const at = cell - chunk.start;
    const columns = Object.entries(chunk.columns).filter(([, { of }]) => of[at]);
    const record = Object.fromEntries(columns.map(([key, { values, of }]) => [key, values[of[at]]]));
    return { ...record, cell: this.matrix.id(cell, record.cell) };
  }

  /**
   * Everything known about a cell.
   *
   * @param {number} cell
   * @param {CellRecord} record
   * @param {Record<string, string>} files texts of the case's files
   * @returns {Child[]}
   */
  content(cell, record, files) {
    const { matrix } = this;
    const { h } = dom;
    const lines = commands.reproduce((key) => matrix.value(cell, key), record);
    const again = facts.section(
      "How to reproduce",
      facts.code(lines, "Commands"),
      facts.copier("Copy the commands", () => lines),
    );
    if (!record.status) {
      const why = "the run was killed, or its file is not among those of this report.";
      const never = `This cell was planned, but no record of it ever arrived: ${why}`;
      return [h("p", {}, never), h("p", {}, h("code", {}, record.cell)), again];
    }
    const log = () => [facts.code(record.log, "Log"), facts.copier("Copy the log", () => record.log)];
    return [
      sections.stages(matrix.stages, record, matrix.mark(cell)),
      sections.outcome(record, matrix.marks),
      sections.diagnostics(record.diagnostics || [], files),
      record.remedy && sections.remedy(record.remedy),
      record.artifact && sections.resources(record.artifact),
      record.artifact && code.section(matrix, cell),
      record.log && facts.section("Log", log()),
      record.command && facts.section("Command", facts.code(record.command.join("\n"), "Command")),
      again,
      this.next(cell, record, files),
      record.history && sections.history(record.history, matrix.marks),
      record.toolchain && sections.versions(record.toolchain),
      sections.origin(record),
    ];
  }

  /**
   * Possible next steps for the cell.
   *
   * @param {number} cell
   * @param {CellRecord} record
   * @param {Record<string, string>} files
   */
  next(cell, record, files) {
    const { h } = dom;
    const { matrix } = this;
    const value = (/** @type {string} */ key) => matrix.value(cell, key);
    const { title } = matrix.cases[matrix.codesOf("case")[cell]];
    const own = matrix.parameters.filter(({ library, key }) => library && value(key));
    const headers = own.map(({ key }) => matrix.label(key, value(key)));
    const place = [matrix.describe(cell).toolchain, ...headers].join(" · ");
    const libraries = own.map((item) => item.title);
    const about = { title, place, files, libraries, trackers: matrix.trackers };
    return facts.section(
      "What next",
      next.steps(value, record, about).map(({ title: name, about: note, code, links = [] }) =>
        h(
          "details",
          { class: "next" },
          h("summary", {}, name),
          note && h("p", { class: "soft" }, note),
          links.map(([label, address]) => h("p", {}, dom.outside(address, `New issue for ${label}`))),
          facts.code(code, name),
          facts.copier("Copy", () => code),
        ),
      ),
    );
  }

  /**
   * Several cells at one place of the table, by mark, each with a link.
   *
   * @param {number[]} cells
   * @param {string} title
   * @param {(cell: number) => string} href
   */
  list(cells, title, href) {
    const { h } = dom;
    const MOST = 200;
    this.asked++;
    const { matrix } = this;
    /** @type {Map<Mark, number[]>} */
    const byMark = new Map();
    for (const cell of cells) {
      const mark = matrix.mark(cell);
      const own = byMark.get(mark);
      if (own) own.push(cell);
      else byMark.set(mark, [cell]);
    }
    const item = (/** @type {number} */ cell) => {
      const described = matrix.describe(cell);
      const label = `${described.variant || described.case} · ${described.toolchain}`;
      const message = matrix.message(cell);
      return h("li", {}, h("a", { href: href(cell) }, label), message && h("small", {}, ` ${message}`));
    };
    const rank = (/** @type {Mark} */ mark) => (mark.good ? 1000 : 0) + matrix.marks.indexOf(mark);
    const groups = [...byMark].sort(([a], [b]) => rank(a) - rank(b));
    const content = groups.map(([mark, own]) => {
      const more = own.length > MOST && h("li", {}, `and ${text.count(own.length - MOST)} more: narrow the filter`);
      const count = h("summary", {}, dom.chip(mark), ` ${text.count(own.length)} ${mark.word}`);
      const links = h("ul", { class: "plain" }, own.slice(0, MOST).map(item), more);
      return h("details", { open: !mark.good || groups.length === 1 }, count, links);
    });
    this.frame(null, `${text.count(cells.length)} cells`, title, content).focus();
  }
}
