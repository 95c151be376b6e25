// The matrix turned round: cells gathered by any dimensions down and any across.
"use strict";

/**
 * One axis of a pivot.
 *
 * @typedef {object} PivotAxis
 * @property {string[]} dimensions
 * @property {number[][]} entries codes of the dimensions, in order
 * @property {number[][]} levels places of the dimensions that each level of groups has
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
 * @property {string} dimension the first one of its level
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
   * Places in the order of their numbers: those with the same number share a rank.
   *
   * @param {ArrayLike<number>} there which places there are
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
   * Gather the cells of a mask by dimensions of rows and columns.
   *
   * @param {Matrix} matrix
   * @param {string[]} dimensions
   * @param {ArrayLike<number>} mask
   * @param {Map<Uint32Array, Uint8Array>} there which rows and which columns of the data the mask has cells of
   * @returns {{axis: PivotAxis, ranks: Int32Array, of: Uint32Array | null}} `ranks` by place of a side, which each cell
   *   has in `of`; without one by cell
   */
  const gather = (matrix, dimensions, mask, there) => {
    const { row, column, size } = matrix;
    const rows = sideNumbers(matrix, dimensions, row, matrix.rows.case.length);
    const columns = sideNumbers(matrix, dimensions, column, matrix.columns.backend.length);
    const sources = dimensions.map((key) => matrix.source(key));
    const place = new Int32Array(size).fill(-1);
    const levels = dimensions.map((_, at) => [at]);
    // Where an axis has dimensions of one side only, that side's places are few, and cells need not be looked at.
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
   * Which rows and columns of the data the cells of a mask stand in.
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
   * Turn the matrix round.
   *
   * @param {Matrix} matrix
   * @param {string[]} down dimensions of the rows, from the outermost on
   * @param {string[]} across dimensions of the columns; without any, the table is a list
   * @param {ArrayLike<number>} mask which cells to take
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
    // Cells of one place are a list: from its first one by `next`.
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
