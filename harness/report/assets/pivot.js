// The matrix turned round: cells gathered by any dimensions down and any across.
"use strict";

{
  /** Entries of one axis in order, and for each cell of the matrix the entry that it belongs to. */
  const axis = (matrix, dimensions, mask) => {
    const own = dimensions.filter((key) => matrix.source(key).of === matrix.row);
    const [inner, outer] = [matrix.row, matrix.column];
    const keys = (of, count) => {
      // One number for each row or column of the data: what its dimensions come to, the first counting most.
      const weights = new Map();
      let weight = 1;
      for (const key of [...dimensions].reverse()) {
        weights.set(key, weight);
        weight *= matrix.names[key].length;
      }
      const found = new Float64Array(count);
      for (const key of dimensions) {
        const source = matrix.source(key);
        if (source.of === of) for (let place = 0; place < count; place++) found[place] += source.codes[place] * weights.get(key);
      }
      return found;
    };
    const rows = keys(inner, matrix.rows.case.length);
    const columns = keys(outer, matrix.columns.backend.length);
    const at = new Map();
    const place = new Int32Array(matrix.size).fill(-1);
    // Where an axis has dimensions of one side only, that side's entries are few: look each of them up once.
    const cacheOf = own.length === dimensions.length ? inner : own.length === 0 ? outer : null;
    const cache = cacheOf && new Int32Array(cacheOf === inner ? rows.length : columns.length).fill(-1);
    const numbers = [];
    const firsts = [];
    const { size } = matrix;
    for (let cell = 0; cell < size; cell++) {
      if (!mask[cell]) continue;
      let found = cache ? cache[cacheOf[cell]] : -1;
      if (found < 0) {
        const number = rows[inner[cell]] + columns[outer[cell]];
        found = at.get(number) ?? -1;
        if (found < 0) {
          found = numbers.length;
          at.set(number, found);
          numbers.push(number);
          firsts.push(cell);
        }
        if (cache) cache[cacheOf[cell]] = found;
      }
      place[cell] = found;
    }
    const order = numbers.map((_, index) => index).sort((a, b) => numbers[a] - numbers[b]);
    const rank = new Int32Array(order.length);
    order.forEach((index, to) => (rank[index] = to));
    for (let cell = 0; cell < place.length; cell++) if (place[cell] >= 0) place[cell] = rank[place[cell]];
    const entries = order.map((index) => dimensions.map((key) => {
      const { codes, of } = matrix.source(key);
      return codes[of[firsts[index]]];
    }));
    return { dimensions, entries, place };
  };

  /** Cells by row and column entry: a list through `next` that begins at `head`. */
  cumatrix.pivot = (matrix, down, across, mask) => {
    const rows = axis(matrix, down, mask);
    const columns = axis(matrix, across, mask);
    const width = columns.entries.length;
    const dense = rows.entries.length * width <= 8e6;
    const head = dense ? new Int32Array(rows.entries.length * width).fill(-1) : new Map();
    const next = new Int32Array(matrix.size).fill(-1);
    for (let cell = matrix.size - 1; cell >= 0; cell--) {
      if (!mask[cell]) continue;
      const slot = rows.place[cell] * width + columns.place[cell];
      if (dense) {
        next[cell] = head[slot];
        head[slot] = cell;
      } else {
        next[cell] = head.get(slot) ?? -1;
        head.set(slot, cell);
      }
    }
    const first = (row, column) => (dense ? head[row * width + column] : head.get(row * width + column) ?? -1);
    /** Cells of some rows in one column. */
    const cells = (from, to, column, visit) => {
      for (let row = from; row < to; row++) for (let cell = first(row, column); cell >= 0; cell = next[cell]) visit(cell);
    };
    return { rows, columns, cells };
  };

  /** Lines to show: groups with all that is below them, and entries; what is closed hides its own. */
  cumatrix.lines = (matrix, rows, isOpen) => {
    const lines = [];
    const { entries, dimensions } = rows;
    const last = dimensions.length - 1;
    const name = (depth, code) => matrix.names[dimensions[depth]][code];
    const walk = (from, to, depth, path) => {
      for (let start = from; start < to; ) {
        const code = entries[start][depth];
        let end = start + 1;
        while (end < to && entries[end][depth] === code) end++;
        const label = name(depth, code);
        const own = [...path, label];
        // A case without variants is one line, not a group of one.
        const alone = depth < last && end - start === 1 && entries[start].slice(depth + 1).every((each, place) => name(depth + 1 + place, each) === "");
        if (depth === last || alone) lines.push({ label, path: own, depth, from: start, to: end, leaf: true, dimension: dimensions[depth], code });
        else {
          const open = isOpen(own, depth, end - start);
          lines.push({ label, path: own, depth, from: start, to: end, leaf: false, open, dimension: dimensions[depth], code });
          if (open) walk(start, end, depth + 1, own);
        }
        start = end;
      }
    };
    walk(0, entries.length, 0, []);
    return lines;
  };
}
