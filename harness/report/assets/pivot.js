// The matrix turned round: cells gathered by any dimensions down and any across.
"use strict";

/**
 * One axis of a pivot.
 *
 * @typedef {object} PivotAxis
 * @property {string[]} dimensions
 * @property {number[][]} entries codes of the dimensions, in order
 * @property {Int32Array} place for each cell of the matrix its entry, or -1
 */

/**
 * @typedef {object} Pivot
 * @property {PivotAxis} rows
 * @property {PivotAxis} columns
 * @property {(from: number, to: number, column: number, visit: (cell: number) => void) => void} cells
 *   visits the cells of some rows in one column
 */

/**
 * A line of the table: an entry, or a group with all that is below it.
 *
 * @typedef {object} Line
 * @property {string} label
 * @property {string[]} path labels from the outermost group on
 * @property {number} depth
 * @property {number} from first entry
 * @property {number} to the entry after the last one
 * @property {boolean} leaf whether it is an entry
 * @property {boolean} open whether what is below it has lines of its own
 * @property {string} dimension
 * @property {number} code
 */

const pivot = (() => {
  // Above this, places are looked up and not counted out.
  const MOST_PLACES = 8e6;

  /**
   * One number for each row or column of the data: what its dimensions come to, the first counting most.
   *
   * @param {Matrix} matrix
   * @param {string[]} dimensions
   * @param {Uint32Array} of the side that is meant: place of each cell
   * @param {number} count how many places that side has
   */
  const sideNumbers = (matrix, dimensions, of, count) => {
    const numbers = new Float64Array(count);
    let weight = 1;
    for (const key of [...dimensions].reverse()) {
      const source = matrix.source(key);
      if (source.of === of) for (let at = 0; at < count; at++) numbers[at] += source.codes[at] * weight;
      weight *= matrix.names[key].length;
    }
    return numbers;
  };

  /**
   * Gather the cells of a mask by dimensions of rows and columns.
   *
   * @param {Matrix} matrix
   * @param {string[]} dimensions
   * @param {ArrayLike<number>} mask
   * @returns {PivotAxis}
   */
  const gather = (matrix, dimensions, mask) => {
    const { row, column, size } = matrix;
    const rows = sideNumbers(matrix, dimensions, row, matrix.rows.case.length);
    const columns = sideNumbers(matrix, dimensions, column, matrix.columns.backend.length);
    // Where an axis has dimensions of one side only, that side's places are few: look each of them up once.
    const sides = new Set(dimensions.map((key) => matrix.source(key).of));
    const side = sides.size > 1 ? null : sides.has(row) ? row : column;
    const cache = side && new Int32Array(side === row ? rows.length : columns.length).fill(-1);
    const at = new Map();
    const place = new Int32Array(size).fill(-1);
    /** @type {number[]} */
    const numbers = [];
    /** @type {number[]} */
    const firsts = [];
    for (let cell = 0; cell < size; cell++) {
      if (!mask[cell]) continue;
      let found = cache && side ? cache[side[cell]] : -1;
      if (found < 0) {
        const number = rows[row[cell]] + columns[column[cell]];
        found = at.get(number) ?? -1;
        if (found < 0) {
          found = numbers.length;
          at.set(number, found);
          numbers.push(number);
          firsts.push(cell);
        }
        if (cache && side) cache[side[cell]] = found;
      }
      place[cell] = found;
    }
    const order = numbers.map((_, index) => index).sort((a, b) => numbers[a] - numbers[b]);
    const rank = new Int32Array(order.length);
    order.forEach((index, to) => (rank[index] = to));
    for (let cell = 0; cell < size; cell++) if (place[cell] >= 0) place[cell] = rank[place[cell]];
    const sources = dimensions.map((key) => matrix.source(key));
    const entries = order.map((index) => sources.map(({ codes, of }) => codes[of[firsts[index]]]));
    return { dimensions, entries, place };
  };

  /**
   * Turn the matrix round.
   *
   * @param {Matrix} matrix
   * @param {string[]} down dimensions of the rows, from the outermost on
   * @param {string[]} across dimensions of the columns
   * @param {ArrayLike<number>} mask which cells to take
   * @returns {Pivot}
   */
  const turn = (matrix, down, across, mask) => {
    const rows = gather(matrix, down, mask);
    const columns = gather(matrix, across, mask);
    const width = columns.entries.length;
    const places = rows.entries.length * width;
    const dense = places <= MOST_PLACES ? new Int32Array(places).fill(-1) : null;
    /** @type {Map<number, number>} */
    const sparse = new Map();
    const first = (/** @type {number} */ place) => (dense ? dense[place] : (sparse.get(place) ?? -1));
    // Cells of one place are a list: from its first one by `next`.
    const next = new Int32Array(matrix.size).fill(-1);
    for (let cell = matrix.size - 1; cell >= 0; cell--) {
      if (!mask[cell]) continue;
      const place = rows.place[cell] * width + columns.place[cell];
      next[cell] = first(place);
      if (dense) dense[place] = cell;
      else sparse.set(place, cell);
    }
    /** @type {Pivot["cells"]} */
    const cells = (from, to, column, visit) => {
      for (let row = from; row < to; row++)
        for (let cell = first(row * width + column); cell >= 0; cell = next[cell]) visit(cell);
    };
    return { rows, columns, cells };
  };

  /**
   * Lines to show: groups with all that is below them, and entries; what is closed hides its own.
   *
   * @param {Matrix} matrix
   * @param {PivotAxis} rows
   * @param {(path: string[], depth: number) => boolean} isOpen
   * @returns {Line[]}
   */
  const lines = (matrix, rows, isOpen) => {
    /** @type {Line[]} */
    const found = [];
    const { entries, dimensions } = rows;
    const last = dimensions.length - 1;
    const name = (/** @type {number} */ depth, /** @type {number} */ code) => matrix.names[dimensions[depth]][code];
    /** @param {number} from @param {number} to @param {number} depth @param {string[]} outer */
    const walk = (from, to, depth, outer) => {
      for (let start = from, end; start < to; start = end) {
        const code = entries[start][depth];
        end = start + 1;
        while (end < to && entries[end][depth] === code) end++;
        const label = name(depth, code);
        const path = [...outer, label];
        // A case without variants is one line, not a group of one.
        const inner = entries[start].slice(depth + 1);
        const alone = end - start === 1 && inner.every((each, place) => name(depth + 1 + place, each) === "");
        const leaf = depth === last || alone;
        const open = !leaf && isOpen(path, depth);
        found.push({ label, path, depth, from: start, to: end, leaf, open, dimension: dimensions[depth], code });
        if (open) walk(start, end, depth + 1, path);
      }
    };
    walk(0, entries.length, 0, []);
    return found;
  };

  return { turn, lines };
})();
