// The whole page: its state is in its address, and its content follows from the state alone.
"use strict";

class App {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    const { get } = dom;
    this.matrix = matrix;
    this.first = views.first(matrix);
    // A link names its view, so it is the same on every screen. A link from a wide screen may omit the default view.
    this.written = dom.narrow.matches ? { down: "", across: "" } : this.first;
    this.known = [...matrix.axes, ...matrix.parameters].map(({ key }) => key);
    /** @type {State} */
    this.state = address.read("", this.first, this.known);
    this.started = false;
    /** @type {string | null} the cell in the panel */
    this.opened = null;
    this.input = /** @type {HTMLInputElement} */ (get("q"));
    this.status = get("status");
    this.selects = {
      down: /** @type {HTMLSelectElement} */ (get("down")),
      across: /** @type {HTMLSelectElement} */ (get("across")),
    };
    const type = timers.later(0, (/** @type {string} */ q) => this.go({ q }, true));
    this.search = new SearchBox(this.input, get("q-list"), matrix, type);
    this.filters = new Filters(get("facets"), get("legend"), matrix, (field, value) => this.toggle(field, value));
    this.grid = new Grid(get("viewport"), matrix, {
      onCell: (cells, line) => this.choose(cells, line),
      onFold: (line) => this.fold(line),
    });
    this.panel = new Panel(get("cell"), matrix, () => this.shut());
    this.listen();
    get("explorer").hidden = false;
    this.read();
  }

  listen() {
    const { get } = dom;
    views.offer(this.selects.down, views.down(this.matrix), (down) => this.go({ down, fold: [] }));
    views.offer(this.selects.across, views.across(this.matrix), (across) => this.go({ across, fold: [] }));
    get("swap").addEventListener("click", () => {
      this.go({ down: this.state.across, across: this.state.down, fold: [] });
    });
    get("unfold").addEventListener("click", () => {
      this.go({ fold: this.state.fold.includes("*") ? [] : ["*"] }, true);
    });
    get("clear").addEventListener("click", () => {
      this.go({ q: "" });
      this.input.focus();
    });
    addEventListener("hashchange", () => this.read());
    /** @type {NodeListOf<HTMLDetailsElement>} */
    const topics = document.querySelectorAll("details.part");
    const open = (/** @type {boolean} */ all) => topics.forEach((topic) => (topic.open = all));
    open(!dom.narrow.matches);
    addEventListener("beforeprint", () => open(true));
    addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName || "");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || typing) return;
      event.preventDefault();
      this.input.focus();
    });
  }

  /** Read the state from the address. Anchors of other parts of the page are ignored. */
  read() {
    const hash = location.hash.slice(1);
    if (hash && !hash.includes("=")) document.getElementById(hash)?.closest("details")?.setAttribute("open", "");
    if (hash && !hash.includes("=") && this.started) return;
    this.started = true;
    const isPlain = dom.narrow.matches && !/(^|&)(down|across)=/.test(hash);
    this.state = address.read(hash, isPlain ? views.list(this.matrix) : this.first, this.known);
    this.input.value = this.state.q;
    this.update();
    if (this.state.cell) this.panel.box.scrollIntoView({ block: "nearest" });
  }

  /**
   * Change the state, and the address with it.
   *
   * @param {Partial<State>} change
   * @param {boolean} replace whether to replace the entry in the browser's history, as while the user types
   */
  go(change, replace = false) {
    const before = this.state;
    this.state = { ...before, ...change };
    const to = address.write(this.state, this.written);
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    if (change.q !== undefined && this.input.value !== change.q) this.input.value = change.q;
    if (Object.keys(change).join() === "cell") this.tell(true, before.cell);
    else this.update();
  }

  /** @param {string} field @param {string} value to choose in a filter, or to remove */
  toggle(field, value) {
    const { names } = fields.choices(this.matrix, field);
    try {
      this.go({ q: query.toggle(this.state.q, field, value, names) });
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      this.go({ q: query.toggle("", field, value, names) });
    }
  }

  /** @param {Line} line a group to open or close */
  fold(line) {
    const name = address.foldName(line.path);
    const others = this.state.fold.filter((each) => each !== name);
    this.go({ fold: others.length < this.state.fold.length ? others : [...others, name] }, true);
  }

  /** Update the page from the state. */
  update() {
    const { matrix, state } = this;
    const answer = this.ask();
    if (!answer) return;
    const { mask, shown } = answer;
    const isList = state.across === views.LIST;
    const turned = pivot.turn(matrix, state.down.split(","), isList ? [] : state.across.split(","), mask);
    const isOpen = views.openness(turned.rows, state.fold, isList);
    const lines = pivot.lines(matrix, turned.rows, isOpen);
    // The table reads its size first: later writes to the page would require another layout.
    this.grid.show(turned, lines, state.cell ? matrix.find(state.cell) : -1);
    dom.get("small").hidden = !this.grid.squares.targets.some(({ length }) => length);
    this.filters.update(answer);
    this.count(shown, answer.needsMore && !matrix.more);
    dom.get("nothing").hidden = shown > 0;
    this.grid.viewport.hidden = shown === 0;
    dom.get("clear").hidden = !state.q;
    const more = views.byParameter(matrix, this.filters.parameters);
    views.choose(matrix, this.selects.down, state.down, more.down);
    views.choose(matrix, this.selects.across, state.across, more.across);
    const unfold = dom.get("unfold");
    unfold.textContent = state.fold.includes("*") ? "Fold" : "Unfold all";
    const isAllOpen = views.isSmall(turned.rows) && !isList && !state.fold.length;
    unfold.hidden = lines.every((line) => line.leaf) || isAllOpen;
    dom.get("swap").hidden = isList;
    this.tell(false);
  }

  /**
   * The answer to the query, or null for an invalid query: the table then stays, so that half a word does not empty it.
   *
   * @returns {Answer | null}
   */
  ask() {
    const { matrix, state } = this;
    let wrong = "";
    const before = this.answer;
    try {
      this.answer = query.ask(matrix, state.q);
    } catch (error) {
      if (!(error instanceof ConditionError)) throw error;
      wrong = `${error.position ? `character ${error.position}: ` : ""}${error.message}`;
      this.answer ??= query.ask(matrix, "");
    }
    this.input.setAttribute("aria-invalid", String(Boolean(wrong)));
    this.status.classList.toggle("bad", Boolean(wrong));
    if (wrong) this.status.textContent = `Not understood: ${wrong}`;
    if (wrong && before) return null;
    if (this.answer.needsMore && !matrix.more) this.more();
    return this.answer;
  }

  /** @param {number} shown @param {boolean} loading */
  count(shown, loading) {
    if (this.status.classList.contains("bad")) return;
    const { size } = this.matrix;
    const of = shown === size ? "" : ` of ${text.count(size)}`;
    this.status.textContent = `${text.count(shown)}${of} cells${loading ? "; loading messages…" : ""}`;
  }

  /**
   * Show the cell in the state.
   *
   * @param {boolean} moved whether the reader has just chosen it
   * @param {string} before the cell that the panel showed before
   */
  tell(moved, before = "") {
    const { matrix, state } = this;
    if (this.opened === state.cell) return;
    this.opened = state.cell;
    const cell = state.cell ? matrix.find(state.cell) : -1;
    document.body.classList.toggle("telling", Boolean(state.cell));
    if (!state.cell) {
      this.panel.hide();
      if (moved && before) this.grid.cursor.focus();
    } else if (cell < 0) {
      const why = "The link names a cell that this report does not have. It may be in an older or newer one.";
      this.panel.frame(null, "No such cell", state.cell.split(";").join(" "), [dom.h("p", {}, why)]);
    } else this.panel.show(cell, moved);
    // The panel has just taken or released its place next to the table.
    this.grid.select(cell);
  }

  /** @param {number[]} cells @param {Line} line the line of the chosen square */
  choose(cells, line) {
    const link = (/** @type {number} */ cell) => this.matrix.address(cell);
    if (cells.length === 1) {
      this.go({ cell: link(cells[0]) });
      return;
    }
    document.body.classList.add("telling");
    this.opened = "";
    const title = line.path.filter(Boolean).join(" · ");
    this.panel.list(cells, title, (cell) => address.write({ ...this.state, cell: link(cell) }, this.written));
  }

  shut() {
    if (this.state.cell) {
      this.go({ cell: "" });
      return;
    }
    this.panel.hide();
    document.body.classList.remove("telling");
    this.grid.cursor.focus();
  }

  /** Load messages and numbers, which the first view does not need. */
  async more() {
    if (this.loading) return;
    this.loading = true;
    try {
      this.matrix.more = await cumatrix.load("more");
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
      return;
    }
    if (this.answer?.needsMore) this.update();
  }
}

addEventListener("DOMContentLoaded", async () => {
  const data = await cumatrix.load("matrix");
  fields.learn(data.conditions, data.parameters);
  const app = new App(new Matrix(data));
  document.documentElement.dataset.ready = "true";
  const more = timers.later(50, () => app.more());
  requestAnimationFrame(() => more());
});
