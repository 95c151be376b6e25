// The reader's place in the table: keyboard, pointer and focus.
"use strict";

/** The reader's place: a line, and a column or -1 for the line's heading. */
class Cursor {
  /**
   * @param {Grid} grid
   * @param {GridActions} actions
   */
  constructor(grid, actions) {
    this.grid = grid;
    this.actions = actions;
    this.line = 0;
    this.column = -1;
    grid.table.addEventListener("click", (event) => this.click(event));
    grid.table.addEventListener("keydown", (event) => this.key(event));
    grid.table.addEventListener("focusin", (event) => this.focused(event));
  }

  /** @returns {[number, number]} the last line and the last column */
  get last() {
    return [this.grid.lines.length - 1, this.grid.pivot.columns.entries.length - 1];
  }

  /** Stay within the table after it became smaller. */
  clamp() {
    const [line, column] = this.last;
    this.line = Math.min(this.line, Math.max(0, line));
    this.column = Math.min(this.column, column);
  }

  /**
   * The value of `tabindex`. Exactly one place of the table is reachable by Tab.
   *
   * @param {number} line
   * @param {number} column
   */
  tab(line, column) {
    return this.line === line && this.column === column ? 0 : -1;
  }

  /**
   * The place of an event.
   *
   * @param {Event} event
   */
  place(event) {
    const cell = dom.around(event, "[data-line]");
    return cell && { line: Number(cell.dataset.line), column: Number(cell.dataset.column ?? -1) };
  }

  /** @param {Event} event */
  click(event) {
    const place = this.place(event);
    if (!place) return;
    this.move(place.line, place.column);
    this.choose();
  }

  /** Open the reader's place. */
  choose() {
    const line = this.grid.lines[this.line];
    if (this.column < 0) {
      if (!line.leaf) this.actions.onFold(line);
      return;
    }
    if (line.open) return;
    /** @type {number[]} */
    const cells = [];
    this.grid.pivot.cells(line.from, line.to, this.column, (cell) => cells.push(cell));
    if (cells.length) this.actions.onCell(cells, line);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.metaKey || !this.place(event)) return;
    const { line, column } = this;
    const [lastLine, lastColumn] = this.last;
    const here = this.grid.lines[line];
    const page = this.grid.linesInView;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowDown: [line + 1, column],
      ArrowUp: [line - 1, column],
      ArrowRight: [line, column + 1],
      ArrowLeft: [line, column - 1],
      PageDown: [line + page, column],
      PageUp: [line - page, column],
      Home: event.ctrlKey ? [0, -1] : [line, -1],
      End: event.ctrlKey ? [lastLine, lastColumn] : [line, lastColumn],
    };
    const folds = column === -1 && !here.leaf && event.key === (here.open ? "ArrowLeft" : "ArrowRight");
    if (event.key === "Enter" || event.key === " ") this.choose();
    else if (folds) this.actions.onFold(here);
    else if (Object.hasOwn(moves, event.key)) {
      const [toLine, toColumn] = moves[event.key];
      this.move(Math.max(0, Math.min(lastLine, toLine)), Math.max(-1, Math.min(lastColumn, toColumn)));
    } else return;
    event.preventDefault();
  }

  /** @param {Event} event */
  focused(event) {
    const place = this.place(event);
    if (place && (place.line !== this.line || place.column !== this.column)) this.move(place.line, place.column, false);
  }

  /**
   * Go to a place and scroll it into view.
   *
   * @param {number} line
   * @param {number} column
   * @param {boolean} focus whether to take the focus from another element
   */
  move(line, column, focus = true) {
    this.grid.table.querySelector('tbody [tabindex="0"]')?.setAttribute("tabindex", "-1");
    this.line = line;
    this.column = column;
    this.grid.reveal(line, column);
    this.focus(focus);
  }

  /**
   * Focus the element of the place.
   *
   * @param {boolean} really whether to take the focus from another element
   */
  focus(really = true) {
    const { line, column } = this;
    const heading = `tbody th[data-line="${line}"]`;
    /** @type {HTMLElement | null} */
    const cell = this.grid.table.querySelector(column < 0 ? heading : this.grid.selector(line, column));
    if (!cell) return;
    cell.tabIndex = 0;
    if (really || document.activeElement === document.body) cell.focus({ preventScroll: true });
  }
}
