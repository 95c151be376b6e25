// The pivot of the matrix: cells grouped by any dimensions of rows and of columns.
"use strict";

/**
 * One axis of a pivot.
 *
 * @typedef {object} PivotAxis
 * @property {string[]} dimensions
 * @property {number[][]} entries codes of the dimensions, in order
 * @property {number[][]} levels positions of the dimensions of each level of groups
 * @property {Int32Array} place the entry of each cell of the matrix, or -1
 */

/**
 * @typedef {object} Pivot
 * @property {PivotAxis} rows
 * @property {PivotAxis} columns
 * @property {(from: number, to: number, column: number, visit: (cell: number) => void) => void} cells
 *   visits the cells of some rows in one column
 */

/**
 * A line of the table: an entry, or a group with everything below it.
 *
 * @typedef {object} Line
 * @property {string} label
 * @property {string[]} path labels, outermost group first
 * @property {number} depth
 * @property {number} from first entry
 * @property {number} to the entry after the last one
 * @property {boolean} leaf whether it is an entry
 * @property {boolean} open whether the entries below it have their own lines
 * @property {string} dimension the first dimension of its level
 * @property {number} code
 */

const pivot = (() => {
  // Above this, places are looked up instead of counted.
  const MOST_PLACES = 8e6;

  /**
   * A number for each row or column of the data that encodes its dimensions, the first one most significant.
   *
   * @param {Matrix} matrix
   * @param {string[]} dimensions
   * @param {Uint32Array} of of the side: the place of each cell
   * @param {number} count number of places of that side
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
   * Places in the order of their numbers. Places with the same number share a rank.
   *
   * @param {ArrayLike<number>} there whether each place exists
   * @param {(place: number) => number} number
   * @returns {{ranks: Int32Array, firsts: number[]}} rank of each place, or -1; the first place of each rank
   */
  const rank = (there, number) => {
    const at = new Map();
    const ranks = new Int32Array(there.length).fill(-1);
    /** @type {number[]} */
    const numbers = [];
    /** @type {number[]} */
    const firsts = [];
    for (let place = 0; place < ranks.length; place++) {
      if (!there[place]) continue;
      const own = number(place);
      let found = at.get(own);
      if (found === undefined) {
        at.set(own, (found = numbers.length));
        numbers.push(own);
        firsts.push(place);
      }
      ranks[place] = found;
    }
    const order = numbers.map((_, index) => index).sort((a, b) => numbers[a] - numbers[b]);
    const sorted = new Int32Array(order.length);
    order.forEach((index, to) => (sorted[index] = to));
    for (let place = 0; place < ranks.length; place++) if (ranks[place] >= 0) ranks[place] = sorted[ranks[place]];
    return { ranks, firsts: order.map((index) => firsts[index]) };
  };

  /**
   * Group the cells of a mask by dimensions of rows or columns.
   *
   * @param {Matrix} matrix
   * @param {string[]} dimensions
   * @param {ArrayLike<number>} mask
   * @param {Map<Uint32Array, Uint8Array>} there rows and columns of the data with cells in the mask
   * @returns {{axis: PivotAxis, ranks: Int32Array, of: Uint32Array | null}} `ranks` by place of a side,
   *   and each cell's place in `of`; by cell if `of` is null
   */
  const gather = (matrix, dimensions, mask, there) => {
    const { row, column, size } = matrix;
    const rows = sideNumbers(matrix, dimensions, row, matrix.rows.case.length);
    const columns = sideNumbers(matrix, dimensions, column, matrix.columns.backend.length);
    const sources = dimensions.map((key) => matrix.source(key));
    const place = new Int32Array(size).fill(-1);
    const levels = dimensions.map((_, at) => [at]);
    // If all dimensions of an axis belong to one side, that side's few places suffice, and cells are not read.
    const [of, ...others] = new Set(sources.map((source) => source.of));
    const side = there.get(of);
    if (!others.length && side) {
      const numbers = of === row ? rows : columns;
      const { ranks, firsts } = rank(side, (at) => numbers[at]);
      const entries = firsts.map((first) => sources.map(({ codes }) => codes[first]));
      return { axis: { dimensions, entries, levels, place }, ranks, of };
    }
    const { ranks, firsts } = rank(mask, (cell) => rows[row[cell]] + columns[column[cell]]);
    const entries = firsts.map((first) => sources.map((source) => source.codes[source.of[first]]));
    return { axis: { dimensions, entries, levels, place }, ranks, of: null };
  };

  /**
   * The rows and columns of the data with cells in a mask.
   *
   * @param {Matrix} matrix
   * @param {ArrayLike<number>} mask
   */
  const sidesOf = ({ row, column, rows, columns }, mask) => {
    const inRows = new Uint8Array(rows.case.length);
    const inColumns = new Uint8Array(columns.backend.length);
    for (let cell = 0; cell < row.length; cell++) {
      if (mask[cell]) inRows[row[cell]] = inColumns[column[cell]] = 1;
    }
    return new Map([
      [row, inRows],
      [column, inColumns],
    ]);
  };

  /**
   * Levels of a list, which has no columns: each toolchain is one line.
   *
   * @param {Matrix} matrix
   * @param {string[]} down
   * @returns {number[][]}
   */
  const listLevels = (matrix, down) => {
    const sideOf = (/** @type {number} */ at) => matrix.dimension(down[at])?.side;
    /** @type {number[][]} */
    const levels = [];
    down.forEach((_, at) => {
      if (at && sideOf(at) === "column" && sideOf(at - 1) === "column") levels[levels.length - 1].push(at);
      else levels.push([at]);
    });
    return levels;
  };

  /**
   * Compute the pivot of the matrix.
   *
   * @param {Matrix} matrix
   * @param {string[]} down dimensions of the rows, outermost first
   * @param {string[]} across dimensions of the columns; without any, the table is a list
   * @param {ArrayLike<number>} mask the selected cells
   * @returns {Pivot}
   */
  const turn = (matrix, down, across, mask) => {
    const there = sidesOf(matrix, mask);
    const lower = gather(matrix, down, mask, there);
    const upper = gather(matrix, across, mask, there);
    const [rows, columns] = [lower.axis, upper.axis];
    if (!across.length) rows.levels = listLevels(matrix, down);
    const width = columns.entries.length;
    const places = rows.entries.length * width;
    const dense = places <= MOST_PLACES ? new Int32Array(places).fill(-1) : null;
    /** @type {Map<number, number>} */
    const sparse = new Map();
    const first = (/** @type {number} */ place) => (dense ? dense[place] : (sparse.get(place) ?? -1));
    // Cells of one place form a linked list through `next`.
    const next = new Int32Array(matrix.size).fill(-1);
    for (let cell = matrix.size - 1; cell >= 0; cell--) {
      if (!mask[cell]) continue;
      const row = (rows.place[cell] = lower.ranks[lower.of ? lower.of[cell] : cell]);
      const column = (columns.place[cell] = upper.ranks[upper.of ? upper.of[cell] : cell]);
      const place = row * width + column;
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
   * Lines to show: groups with everything below them, and entries. A closed group hides its entries.
   *
   * @param {Matrix} matrix
   * @param {PivotAxis} rows
   * @param {(path: string[], depth: number) => boolean} isOpen
   * @returns {Line[]}
   */
  const lines = (matrix, rows, isOpen) => {
    /** @type {Line[]} */
    const found = [];
    const { entries, dimensions, levels } = rows;
    const last = levels.length - 1;
    const name = (/** @type {number} */ place, /** @type {number} */ code) => matrix.names[dimensions[place]][code];
    /** @param {number[]} entry @param {number} depth */
    const labelOf = (entry, depth) => {
      const [first, ...rest] = levels[depth];
      const others = rest.map((place) => matrix.label(dimensions[place], name(place, entry[place])));
      return [name(first, entry[first]), ...others].filter(Boolean).join(" ");
    };
    /** @param {number[]} entry @param {number[]} other @param {number} depth */
    const same = (entry, other, depth) => levels[depth].every((place) => entry[place] === other[place]);
    /** @param {number} from @param {number} to @param {number} depth @param {string[]} outer */
    const walk = (from, to, depth, outer) => {
      for (let start = from, end; start < to; start = end) {
        const [first, ...rest] = levels[depth];
        const code = entries[start][first];
        end = start + 1;
        while (end < to && same(entries[end], entries[start], depth)) end++;
        const label = labelOf(entries[start], depth);
        const path = [...outer, label];
        // A case without variants is one line, not a group of one.
        const inside = (rest.at(-1) ?? first) + 1;
        const inner = entries[start].slice(inside);
        const alone = end - start === 1 && inner.every((each, place) => name(inside + place, each) === "");
        const leaf = depth === last || alone;
        const open = !leaf && isOpen(path, depth);
        found.push({ label, path, depth, from: start, to: end, leaf, open, dimension: dimensions[first], code });
        if (open) walk(start, end, depth + 1, path);
      }
    };
    walk(0, entries.length, 0, []);
    return found;
  };

  return { turn, lines };
})();
