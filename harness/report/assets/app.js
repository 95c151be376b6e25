// The page as a whole: its state is in its address, and what is shown follows from the state alone.
"use strict";

{
  const { h, query } = cumatrix;
  const DOWN = { "topic,case,variant": "Cases and variants", "topic,case": "Cases", topic: "Topics" };
  const ACROSS = {
    "backend,library,toolkit,target": "Toolchains, each with its targets",
    "backend,library,toolkit": "Toolchains",
    "backend,library": "Libraries by version",
    "target,backend,library,toolkit": "Architectures, each with its toolchains",
    target: "Architectures",
    "toolkit,backend,library,target": "CUDA releases, each with backends and targets",
    "toolkit,backend,library": "CUDA releases, each with its backends",
    toolkit: "CUDA releases",
    backend: "Backends",
  };
  const FIRST_DOWN = "topic,case,variant";
  const KEYS = ["topic", "case", "variant", "backend", "library", "toolkit", "target"];
  // More lines than this are folded into their cases until the reader opens one.
  const OPEN_LINES = 120;

  /** A dimension list out of an address, or nothing when it is not one. */
  const dimensions = (text) => {
    const keys = (text || "").split(",");
    return keys.length === new Set(keys).size && keys.every((key) => KEYS.includes(key)) ? keys.join() : "";
  };

  /** Addresses are for people to read: only what would end or change a part of one is encoded. */
  const encode = (text) => text.replace(/[%&+#\s"<>`\\^{}|]/g, (letter) => encodeURIComponent(letter)).replaceAll("%20", "+");
  const decode = (text) => {
    try {
      return decodeURIComponent(text.replaceAll("+", " "));
    } catch {
      return text;
    }
  };

  class App {
    constructor(matrix) {
      this.matrix = matrix;
      const get = (id) => document.getElementById(id);
      this.get = get;
      this.firstAcross = matrix.columns.backend.length > 150 ? "backend,library,toolkit" : "backend,library,toolkit,target";
      this.search = new cumatrix.SearchBox(get("q"), get("q-list"), matrix, cumatrix.later(0, (text) => this.go({ q: text }, true)));
      this.facets = new cumatrix.Facets(get("facets"), get("legend"), matrix, (field, value) => this.toggle(field, value));
      this.grid = new cumatrix.Grid(get("viewport"), { onCell: (cells, line) => this.choose(cells, line), onFold: (line) => this.fold(line) });
      this.panel = new cumatrix.Panel(get("cell"), matrix, () => this.shut());
      this.axes(get("down"), DOWN, "down");
      this.axes(get("across"), ACROSS, "across");
      get("swap").addEventListener("click", () => this.go({ down: this.state.across, across: this.state.down, fold: [] }));
      get("unfold").addEventListener("click", () => this.foldAll());
      get("clear").addEventListener("click", () => {
        this.go({ q: "" });
        get("q").focus();
      });
      addEventListener("hashchange", () => this.read());
      addEventListener("keydown", (event) => {
        if (event.key === "/" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
          event.preventDefault();
          get("q").focus();
        }
      });
      get("explorer").hidden = false;
      this.read();
    }

    axes(select, options, key) {
      select.append(...Object.entries(options).map(([value, label]) => h("option", { value }, label)));
      select.addEventListener("change", () => this.go({ [key]: select.value, fold: [] }));
    }

    /** The state that the address tells. Anchors of other parts of the page are left alone. */
    read() {
      const text = location.hash.slice(1);
      if (text && !text.includes("=")) {
        if (this.state) return;
      }
      const found = Object.fromEntries(text.split("&").filter((part) => part.includes("=")).map((part) => [part.slice(0, part.indexOf("=")), decode(part.slice(part.indexOf("=") + 1))]));
      let [down, across] = [dimensions(found.down) || FIRST_DOWN, dimensions(found.across) || this.firstAcross];
      if (down.split(",").some((key) => across.split(",").includes(key))) [down, across] = [FIRST_DOWN, this.firstAcross];
      this.state = { q: found.q || "", down, across, fold: found.fold ? found.fold.split(";") : [], cell: found.cell || "" };
      this.get("q").value = this.state.q;
      this.update();
      if (this.state.cell) this.get("cell").scrollIntoView({ block: "nearest" });
    }

    address(state) {
      const parts = [];
      if (state.q) parts.push(`q=${encode(state.q)}`);
      if (state.down !== FIRST_DOWN) parts.push(`down=${state.down}`);
      if (state.across !== this.firstAcross) parts.push(`across=${state.across}`);
      if (state.fold.length) parts.push(`fold=${encode(state.fold.join(";"))}`);
      if (state.cell) parts.push(`cell=${encode(state.cell)}`);
      return parts.length ? `#${parts.join("&")}` : "#";
    }

    /** Change the state, the address with it; while somebody types, the entry in the browser's history is replaced. */
    go(change, replace = false) {
      const before = this.state;
      this.state = { ...before, ...change };
      history[replace ? "replaceState" : "pushState"](null, "", this.address(this.state));
      if (change.q !== undefined && this.get("q").value !== change.q) this.get("q").value = change.q;
      if (Object.keys(change).join() === "cell") this.tell(true, before.cell);
      else this.update();
    }

    toggle(field, value) {
      try {
        this.go({ q: query.toggle(this.state.q, field, value) });
      } catch (error) {
        if (!(error instanceof query.QueryError)) throw error;
        this.go({ q: query.toggle("", field, value) });
      }
    }

    fold(line) {
      const name = this.name(line.path);
      const fold = this.state.fold.filter((each) => each !== name);
      this.go({ fold: fold.length < this.state.fold.length ? fold : [...fold, name] }, true);
    }

    name(path) {
      return path.map((part) => part.replace(/[%;/]/g, encodeURIComponent)).join("/");
    }

    /** Open everything, or back to how it was. */
    foldAll() {
      this.go({ fold: this.state.fold.includes("*") ? [] : ["*"] }, true);
    }

    isOpen(rows) {
      const toggled = new Set(this.state.fold);
      const few = rows.entries.length <= OPEN_LINES || toggled.has("*");
      const last = rows.dimensions.length - 2;
      return (path, depth) => (few || depth < last) !== toggled.has(this.name(path));
    }

    /** From the state to what is shown. */
    update() {
      const { matrix, state } = this;
      const said = this.get("said");
      try {
        this.answer = query.ask(matrix, state.q);
        this.get("q").setAttribute("aria-invalid", "false");
        said.classList.remove("bad");
      } catch (error) {
        if (!(error instanceof query.QueryError)) throw error;
        // What was shown stays, so that half a word does not empty the table.
        this.get("q").setAttribute("aria-invalid", "true");
        said.classList.add("bad");
        said.textContent = `Not understood: ${error.message}.`;
        if (this.answer) return;
        this.answer = query.ask(matrix, "");
      }
      if (this.answer.needsMore && !matrix.more) this.more();
      const { mask } = this.answer;
      this.facets.update(this.answer);
      this.pivot = cumatrix.pivot(matrix, state.down.split(","), state.across.split(","), mask);
      const lines = cumatrix.lines(matrix, this.pivot.rows, this.isOpen(this.pivot.rows));
      const chosen = state.cell ? matrix.find(state.cell) : -1;
      this.grid.show(matrix, this.pivot, lines, chosen);
      let count = 0;
      for (let cell = 0; cell < mask.length; cell++) count += mask[cell];
      if (!said.classList.contains("bad")) {
        said.textContent = count === matrix.size ? `${cumatrix.count(count)} cells` : `${cumatrix.count(count)} of ${cumatrix.count(matrix.size)} cells`;
        if (this.answer.needsMore && !matrix.more) said.textContent += "; loading messages…";
      }
      this.get("nothing").hidden = count > 0;
      this.get("viewport").hidden = count === 0;
      this.get("clear").hidden = !state.q;
      for (const [id, options] of [["down", DOWN], ["across", ACROSS]]) {
        const select = this.get(id);
        if (![...select.options].some((option) => option.value === state[id])) select.append(h("option", { value: state[id] }, options[state[id]] || state[id].replaceAll(",", ", ")));
        select.value = state[id];
      }
      this.get("unfold").textContent = state.fold.includes("*") ? "Fold" : "Unfold all";
      this.get("unfold").hidden = !lines.some((line) => !line.leaf) || (this.pivot.rows.entries.length <= OPEN_LINES && !state.fold.length);
      this.tell(false);
    }

    /** Show the cell that the state names. */
    tell(moved, before = "") {
      const { matrix, state } = this;
      if (this.told === state.cell) return;
      this.told = state.cell;
      const cell = state.cell ? matrix.find(state.cell) : -1;
      document.body.classList.toggle("telling", Boolean(state.cell));
      if (!state.cell) {
        this.panel.hide();
        if (moved && before) this.grid.focus(true);
      } else if (cell < 0) this.panel.frame(null, "No such cell", state.cell.split(";").join(" "), [h("p", {}, "The link names a cell that this report does not have. It may be in an older or newer one.")]);
      else this.panel.show(cell, { focus: moved });
      // After the panel has taken its place beside the table, or given it back.
      this.grid.select(cell);
    }

    choose(cells, line) {
      if (cells.length === 1) this.go({ cell: this.matrix.address(cells[0]) });
      else {
        document.body.classList.add("telling");
        this.told = "";
        this.panel.list(cells, line.path.filter(Boolean).join(" · "), (cell) => this.address({ ...this.state, cell: this.matrix.address(cell) }));
      }
    }

    shut() {
      if (this.state.cell) this.go({ cell: "" });
      else {
        this.panel.hide();
        document.body.classList.remove("telling");
        this.grid.focus(true);
      }
    }

    /** Messages and numbers, which the first look does without. */
    async more() {
      if (this.loading) return;
      this.loading = true;
      try {
        this.matrix.more = await cumatrix.load("more");
      } catch (error) {
        this.get("said").textContent = error.message;
        return;
      }
      if (this.answer.needsMore) this.update();
    }
  }

  addEventListener("DOMContentLoaded", async () => {
    const raw = await cumatrix.load("matrix");
    const app = new App(new cumatrix.Matrix(raw));
    document.documentElement.dataset.ready = "true";
    const more = cumatrix.later(50, () => app.more());
    requestAnimationFrame(() => more());
  });
}
