// The table: only the part in view is in the document, so 100,000 cells scroll like a hundred.
"use strict";

/**
 * Callbacks for chosen cells and for opened or closed groups.
 *
 * @typedef {object} GridActions
 * @property {(cells: number[], line: Line) => void} onCell
 * @property {(line: Line) => void} onFold
 */

class Grid {
  /**
   * @param {HTMLElement} viewport
   * @param {Matrix} matrix
   * @param {GridActions} actions
   */
  constructor(viewport, matrix, actions) {
    const { h } = dom;
    this.viewport = viewport;
    const names = { role: "treegrid", "aria-label": "Matrix", "aria-describedby": "grid-help" };
    this.table = h("table", { class: "matrix", ...names });
    viewport.append(this.table);
    this.blank = h("td", { role: "gridcell", tabindex: "-1", class: "c" }, document.createTextNode(""));
    this.squares = new Squares(matrix);
    // Empty until the first answer.
    /** @type {Line[]} */
    this.lines = [];
    this.chosen = -1;
    this.pivot = pivot.turn(matrix, ["case"], ["backend"], new Uint8Array(matrix.size));
    this.headings = new Headings(matrix, this.pivot);
    this.width = GRID.wide;
    /** @type {Part | null} */
    this.drawn = null;
    this.drawnHead = "";
    this.cursor = new Cursor(this, actions);
    this.extend = timers.later(GRID.pause, () => this.draw(false, GRID.ahead));
    viewport.addEventListener("scroll", () => requestAnimationFrame(() => this.draw(false)), { passive: true });
    new ResizeObserver(() => this.draw(false)).observe(viewport);
    this.table.addEventListener("mouseover", (event) => this.hint(dom.around(event, "td[data-column]")));
    addEventListener("beforeprint", () => this.draw(true, Infinity));
    addEventListener("afterprint", () => this.draw(true));
  }

  /**
   * Show lines and columns of a pivot.
   *
   * @param {Pivot} turned
   * @param {Line[]} lines
   * @param {number} chosen the cell in the panel, or -1
   */
  show(turned, lines, chosen) {
    this.pivot = turned;
    this.lines = lines;
    this.chosen = chosen;
    this.headings = new Headings(this.squares.matrix, turned);
    this.squares.arrange(turned, this.headings.wide);
    this.table.classList.toggle("wide", this.headings.wide);
    this.cursor.clamp();
    this.table.setAttribute("aria-rowcount", String(lines.length + this.headings.levels.groups.length + 1));
    this.table.setAttribute("aria-colcount", String(turned.columns.entries.length + 1));
    this.draw(true);
  }

  /**
   * Draw the part in view and some of its surroundings.
   *
   * @param {boolean} again whether to redraw what is already drawn
   * @param {number} ahead as in `parts.inView`
   */
  draw(again, ahead = 1) {
    const width = this.columnWidth();
    if (width !== this.width) again = true;
    this.width = width;
    const size = { lines: this.lines.length, columns: this.pivot.columns.entries.length, width: this.width };
    const part = parts.inView(this.viewport, size, ahead);
    if (!again && parts.covers(this.drawn, part)) return;
    this.drawn = part;
    if (ahead === 1) this.extend();
    const hadFocus = this.table.contains(document.activeElement);
    rows.draw(this, part);
    this.drawHead(part);
    // The focused element may represent another cell by now.
    if (hadFocus) this.cursor.focus();
  }

  columnWidth() {
    if (!this.headings.wide) return GRID.narrow;
    if (this.pivot.columns.dimensions.length) return GRID.wide;
    const room = this.viewport.clientWidth - parts.headingOf(this.viewport, 1);
    return Math.max(GRID.wide, Math.min(GRID.list, room));
  }

  /** @param {Part} part */
  drawHead({ left, right, heading }) {
    const { dimensions, entries } = this.pivot.columns;
    const begins = this.headings.begins.slice(left, right);
    const head = JSON.stringify([
      ...[left, entries.length, heading, this.width, this.pivot.rows.dimensions, dimensions, begins],
      entries.slice(left, right),
    ]);
    if (head === this.drawnHead) return;
    this.drawnHead = head;
    const own = Array(Math.max(0, right - left)).fill(this.width);
    const columns = [heading, left * this.width, ...own, (entries.length - right) * this.width].map((width) => {
      const column = dom.h("col");
      column.style.width = `${width}px`;
      return column;
    });
    // Lines between groups, drawn once for the whole table: squares have no room for their own borders.
    const lines = begins.flatMap((first, place) => (first ? [heading + (left + place) * this.width] : []));
    this.table.style.backgroundPosition = lines.map((at) => `${at}px 0`).join();
    this.table.style.backgroundImage = lines.map(() => "linear-gradient(var(--line), var(--line))").join();
    this.table.style.setProperty("--across", `${entries.length * this.width}px`);
    this.table.style.setProperty("--heading", `${heading}px`);
    this.table.style.width = `${heading + entries.length * this.width}px`;
    this.table.querySelector("colgroup")?.remove();
    this.table.tHead?.remove();
    this.table.prepend(dom.h("colgroup", {}, columns), this.headings.head(left, right));
  }

  /**
   * Add a tooltip when the pointer enters a square.
   *
   * @param {HTMLElement | null} square
   */
  hint(square) {
    const line = square && this.lines[Number(square.dataset.line)];
    if (!square || !line || square.title || line.open) return;
    const column = Number(square.dataset.column);
    const sum = this.squares.sum(this.pivot, line, column);
    const messages = sum.count === 1 ? [this.squares.matrix.message(sum.first)] : [];
    const listed = sum.count > 1 && sum.targets.length ? this.squares.listing(sum) : messages;
    const texts = [line.path.filter(Boolean).join(" "), this.headings.column(column), square.ariaLabel, ...listed];
    square.title = texts.filter(Boolean).join("\n");
  }

  /** The number of whole lines in view. */
  get linesInView() {
    return Math.max(1, Math.floor((this.viewport.clientHeight - this.headHeight) / GRID.row) - 1);
  }

  get headHeight() {
    return this.table.tHead?.offsetHeight ?? 0;
  }

  /**
   * The square of a line and a column.
   *
   * @param {number} line
   * @param {number} column
   */
  selector(line, column) {
    return `td[data-line="${line}"][data-column="${column}"]`;
  }

  /**
   * Scroll a place into view.
   *
   * @param {number} line
   * @param {number} column
   */
  reveal(line, column) {
    const { viewport, width } = this;
    const heading = this.drawn?.heading ?? GRID.heading;
    const scrollbar = 16;
    const [top, left] = [line * GRID.row, Math.max(0, column) * width];
    const tall = viewport.clientHeight - this.headHeight - scrollbar;
    const broad = viewport.clientWidth - heading - scrollbar;
    if (top < viewport.scrollTop) viewport.scrollTop = top;
    if (top + GRID.row > viewport.scrollTop + tall) viewport.scrollTop = top + GRID.row - tall;
    if (column < 0 || left < viewport.scrollLeft) viewport.scrollLeft = left;
    if (left + width > viewport.scrollLeft + broad) viewport.scrollLeft = left + width - broad;
    this.draw(false);
  }

  /**
   * Mark the cell in the panel, and scroll it into view.
   *
   * @param {number} cell or -1 for none
   */
  select(cell) {
    this.chosen = cell;
    /** @type {Square | null} */
    const before = this.table.querySelector('[aria-selected="true"]');
    if (before) {
      before.removeAttribute("aria-selected");
      before.drawn = "";
    }
    if (cell < 0) return;
    const [row, column] = [this.pivot.rows.place[cell], this.pivot.columns.place[cell]];
    const line = this.lines.findIndex((each) => !each.open && each.from <= row && row < each.to);
    if (row < 0 || line < 0) return;
    this.cursor.move(line, column, false);
    this.table.querySelector(this.selector(line, column))?.setAttribute("aria-selected", "true");
  }
}
