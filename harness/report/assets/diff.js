// A comparison of two texts line by line.
"use strict";

/**
 * Lines of both texts, of the first alone, or of the second alone.
 *
 * @typedef {{kind: "same" | "gone" | "new", lines: string[]}} Run
 */

const diff = (() => {
  /** Maximum number of different lines. Beyond it, the search for matching lines stops. */
  const MOST = 3000;

  /**
   * The shortest edit from one list of lines to another (Myers, An O(ND) Difference Algorithm and Its Variations,
   * 1986).
   *
   * @param {string[]} a
   * @param {string[]} b
   * @returns {Run[] | null} null if more than `MOST` lines differ
   */
  const shortest = (a, b) => {
    const most = Math.min(MOST, a.length + b.length);
    // The reach of each diagonal with this number of differences. The diagonal k is at index k + differences.
    /** @type {Int32Array[]} */
    const reached = [];
    for (let count = 0; count <= most; count++) {
      const before = reached[count - 1];
      const now = new Int32Array(2 * count + 1);
      reached.push(now);
      for (let k = -count; k <= count; k += 2) {
        let x = 0;
        if (count) {
          const above = k < count - 1 ? before[k + 1 + count - 1] : -1;
          const left = k > 1 - count ? before[k - 1 + count - 1] + 1 : -1;
          x = k === -count || (k !== count && left <= above) ? above : left;
        }
        while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
        now[k + count] = x;
        if (x >= a.length && x - k >= b.length) return back(a, b, reached);
      }
    }
    return null;
  };

  /**
   * The path back from the end.
   *
   * @param {string[]} a
   * @param {string[]} b
   * @param {Int32Array[]} reached
   * @returns {Run[]}
   */
  const back = (a, b, reached) => {
    /** @type {["same" | "gone" | "new", string][]} */
    const lines = [];
    let [x, y] = [a.length, b.length];
    for (let count = reached.length - 1; count > 0; count--) {
      const before = reached[count - 1];
      const at = (/** @type {number} */ k) => (Math.abs(k) < count ? before[k + count - 1] : -1);
      const k = x - y;
      const down = k === -count || (k !== count && at(k - 1) + 1 <= at(k + 1));
      const fromX = down ? at(k + 1) : at(k - 1);
      const fromY = fromX - (down ? k + 1 : k - 1);
      const [startX, startY] = down ? [fromX, fromY + 1] : [fromX + 1, fromY];
      while (x > startX && y > startY) [x, y] = (lines.push(["same", a[x - 1]]), [x - 1, y - 1]);
      lines.push(down ? ["new", b[fromY]] : ["gone", a[fromX]]);
      [x, y] = [fromX, fromY];
    }
    while (x > 0) lines.push(["same", a[--x]]);
    return runs(lines.reverse());
  };

  /**
   * Consecutive lines of one kind, grouped.
   *
   * @param {["same" | "gone" | "new", string][]} lines
   * @returns {Run[]}
   */
  const runs = (lines) => {
    /** @type {Run[]} */
    const found = [];
    for (const [kind, line] of lines) {
      const last = found.at(-1);
      if (last?.kind === kind) last.lines.push(line);
      else found.push({ kind, lines: [line] });
    }
    return found;
  };

  /**
   * The common and the different lines of two texts.
   *
   * @param {string} one
   * @param {string} other
   * @returns {Run[] | null} null if they have too little in common
   */
  const texts = (one, other) => {
    const [a, b] = [one.split("\n"), other.split("\n")];
    const end = Math.min(a.length, b.length);
    let first = 0;
    while (first < end && a[first] === b[first]) first++;
    let last = 0;
    while (last < end - first && a[a.length - 1 - last] === b[b.length - 1 - last]) last++;
    const middle = shortest(a.slice(first, a.length - last), b.slice(first, b.length - last));
    if (!middle) return null;
    const same = (/** @type {string[]} */ lines) =>
      lines.length ? [{ kind: /** @type {"same"} */ ("same"), lines }] : [];
    return [...same(a.slice(0, first)), ...middle, ...same(a.slice(a.length - last))];
  };

  return { texts };
})();
