// What stands where a line and a column meet.
"use strict";

/**
 * What a square shows.
 *
 * @typedef {object} Sum
 * @property {number} count how many cells it stands for
 * @property {number} first one of them, or -1
 * @property {number[]} kinds their marks, the gravest first
 * @property {Uint32Array} counts by mark, how many there are; used again for the next square
 */

/**
 * An element of the table, with what it shows.
 *
 * @typedef {HTMLTableCellElement & {line?: number, column?: number, drawn?: string}} Square
 */

// As many as a wide square has room for.
const MOST_LETTERS = 10;

/** Squares of one matrix. */
class Squares {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
    this.counts = new Uint32Array(matrix.marks.length);
    // From what eyes should find first to what is not applicable.
    const weights = matrix.marks.map(
      (mark, place) => (mark.good ? 200 - place : 100 + place) + (mark.key === "unsupported" ? 500 : 0),
    );
    this.gravest = weights.map((_, place) => place).sort((a, b) => weights[a] - weights[b]);
  }

  /**
   * How many cells of each mark a line has in a column.
   *
   * @param {Pivot} pivot
   * @param {Line} line
   * @param {number} column
   * @returns {Sum}
   */
  sum(pivot, line, column) {
    const { counts } = this;
    const { outcome } = this.matrix;
    const marks = this.matrix.outcomes.mark;
    counts.fill(0);
    let count = 0;
    let first = -1;
    // Everything of an open group stands below it.
    if (!line.open) {
      pivot.cells(line.from, line.to, column, (cell) => {
        counts[marks[outcome[cell]]]++;
        if (first < 0) first = cell;
        count++;
      });
    }
    const kinds = count === 1 ? [marks[outcome[first]]] : count ? this.gravest.filter((kind) => counts[kind]) : [];
    return { count, first, kinds, counts };
  }

  /**
   * The letters of several cells and, where there is room, their numbers.
   *
   * @param {Sum} sum
   * @param {boolean} wide
   */
  letters({ kinds, counts }, wide) {
    const { marks } = this.matrix;
    const telling = kinds.filter((kind) => marks[kind].key !== "unsupported");
    const supported = telling.reduce((all, kind) => all + counts[kind], 0);
    const bad = telling.reduce((all, kind) => all + (marks[kind].good ? 0 : counts[kind]), 0);
    let shown = telling;
    if (!telling.length) shown = kinds;
    else if (bad) shown = [kinds[0]];
    else if (telling.length > 2) shown = [...telling].sort((a, b) => counts[b] - counts[a]).slice(0, 2);
    const letters = shown.map((kind) => marks[kind].letter).join("");
    const numbers = bad ? `${text.count(bad)}/${text.count(supported)}` : text.count(supported);
    return {
      text: wide && telling.length ? `${letters} ${numbers}` : letters,
      style: shown.length > 1 ? "mixed" : marks[shown[0]].style,
    };
  }

  /**
   * The bar of several kinds: a share of the width for each, in the order of the legend.
   *
   * @param {Sum} sum
   */
  bar({ count, kinds, counts }) {
    let start = 0;
    const stops = [...kinds]
      .sort((a, b) => a - b)
      .map((kind) => {
        const end = start + (100 * counts[kind]) / count;
        const stop = `var(--${this.matrix.marks[kind].style}-b) ${start.toFixed(1)}% ${end.toFixed(1)}%`;
        start = end;
        return stop;
      });
    return `linear-gradient(90deg, ${stops.join(", ")})`;
  }

  /**
   * What a screen reader says of a square.
   *
   * @param {Line} line
   * @param {Sum} sum
   */
  label(line, { count, kinds, counts }) {
    const { marks } = this.matrix;
    if (line.open) return "see below";
    if (!count) return "not run";
    if (count === 1) return marks[kinds[0]].word;
    const parts = kinds.map((kind) => `${text.count(counts[kind])} ${marks[kind].word}`);
    return `${text.count(count)} cells: ${parts.join(", ")}`;
  }

  /**
   * Make an element show a line and a column; what it shows already is left alone.
   *
   * @param {Square} square
   * @param {Line} line
   * @param {Sum} sum
   * @param {object} how
   * @param {boolean} how.wide whether there is room for numbers
   * @param {boolean} how.chosen whether the cell is the one that the panel tells of
   */
  fill(square, line, sum, { wide, chosen }) {
    const { count, kinds, counts } = sum;
    const drawn = [line.open, wide, count, chosen, kinds.map((kind) => `${kind}=${counts[kind]}`)].join(" ");
    if (square.drawn === drawn) return;
    square.drawn = drawn;
    let letters = "";
    if (count > 1) {
      const several = this.letters(sum, wide);
      letters = several.text;
      square.className = `c many ${several.style}${letters.length > MOST_LETTERS ? " long" : ""}`;
    } else if (count) {
      const mark = this.matrix.marks[kinds[0]];
      letters = mark.letter;
      square.className = `c ${mark.style}`;
    } else square.className = line.open ? "c open" : "c empty";
    // Speech control finds a square by the letters that it shows.
    const label = this.label(line, sum);
    square.setAttribute("aria-label", count > 1 ? `${label}; shown as ${letters}` : label);
    if (chosen) square.setAttribute("aria-selected", "true");
    else square.removeAttribute("aria-selected");
    // One text in one element: at thousands of squares each further box can be felt.
    /** @type {Text} */ (square.firstChild).data = letters;
    if (kinds.length > 1) square.style.setProperty("--bar", this.bar(sum));
    else if (square.hasAttribute("style")) square.removeAttribute("style");
  }
}
