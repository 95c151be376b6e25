// The rows of the table. Existing rows are filled again, which is much faster than creating new ones.
"use strict";

const rows = (() => {
  /**
   * Give a row the squares of some columns.
   *
   * @param {Grid} grid
   * @param {HTMLTableRowElement} row
   * @param {number} left
   * @param {number} right
   */
  const fit = (grid, row, left, right) => {
    const last = /** @type {Element} */ (row.lastElementChild);
    for (let more = right - left - (row.cells.length - 3); more > 0; more--) last.before(grid.blank.cloneNode(true));
    while (row.cells.length - 3 > right - left) last.previousElementSibling?.remove();
    let square = /** @type {Square} */ (row.children[2]);
    for (let column = left; column < right; column++, square = /** @type {Square} */ (square.nextElementSibling)) {
      if (square.column === column) continue;
      square.column = column;
      square.setAttribute("aria-colindex", String(column + 2));
      square.dataset.column = String(column);
    }
  };

  /**
   * Make a row show a line.
   *
   * @param {Grid} grid
   * @param {HTMLTableRowElement} row
   * @param {number} number
   * @param {number} left its first column
   */
  const refill = (grid, row, number, left) => {
    const line = grid.lines[number];
    row.setAttribute("aria-rowindex", String(number + grid.headings.levels.groups.length + 2));
    row.setAttribute("aria-level", String(line.depth + 1));
    if (line.leaf) row.removeAttribute("aria-expanded");
    else row.setAttribute("aria-expanded", String(line.open));
    row.className = line.leaf ? "leaf" : `group depth${line.depth}`;
    row.children[0].replaceWith(grid.headings.row(line, number, grid.cursor.tab(number, -1)));
    let square = /** @type {Square} */ (row.children[2]);
    for (let column = left; square.nextElementSibling; column++) {
      if (square.line !== number) square.dataset.line = String((square.line = number));
      const tab = grid.cursor.tab(number, column);
      if (square.tabIndex !== tab) square.tabIndex = tab;
      if (square.title) square.removeAttribute("title");
      const sum = grid.squares.sum(grid.pivot, line, column);
      const chosen = sum.count === 1 && sum.first === grid.chosen;
      grid.squares.fill(square, line, sum, { wide: grid.headings.wide, width: grid.width - 4, chosen });
      square = /** @type {Square} */ (square.nextElementSibling);
    }
  };

  /**
   * Draw the rows of a part.
   *
   * @param {Grid} grid
   * @param {Part} part
   */
  const draw = (grid, { top, bottom, left, right }) => {
    const { h } = dom;
    const gap = () => h("td", { "aria-hidden": "true", class: "gap" });
    const pad = (/** @type {number} */ count) => {
      const filler = h("td", { colspan: right - left + 3 });
      filler.style.height = `${count * GRID.row}px`;
      return h("tr", { "aria-hidden": "true", class: "pad" }, filler);
    };
    const body = grid.table.tBodies[0] || grid.table.appendChild(h("tbody"));
    const old = [...body.rows].filter((row) => row.className !== "pad");
    /** @type {HTMLTableRowElement[]} */
    const shown = [];
    for (let line = top; line < bottom; line++) {
      const row = old[line - top] || h("tr", { role: "row" }, h("th"), gap(), gap());
      fit(grid, row, left, right);
      refill(grid, row, line, left);
      shown.push(row);
    }
    if (top) shown.unshift(pad(top));
    if (bottom < grid.lines.length) shown.push(pad(grid.lines.length - bottom));
    const kept = new Set(shown);
    for (const row of [...body.rows]) if (!kept.has(row)) row.remove();
    let after = body.firstChild;
    for (const row of shown) {
      if (row === after) after = after.nextSibling;
      else body.insertBefore(row, after);
    }
  };

  return { draw };
})();
