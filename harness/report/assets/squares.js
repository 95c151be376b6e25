// The content of a place in the table.
"use strict";

/**
 * The content of a square.
 *
 * @typedef {object} Sum
 * @property {number} count number of cells
 * @property {number} first one of them, or -1
 * @property {number[]} kinds their marks, the most severe first
 * @property {Uint32Array} counts number of cells by mark; reused for the next square
 * @property {number[]} targets the architectures of its column, if the square shows them
 * @property {Uint32Array} masks by architecture, a bit for each of its marks; reused for the next square
 */

/**
 * An element of the table, with its content.
 *
 * @typedef {HTMLTableCellElement & {line?: number, column?: number, drawn?: string}} Square
 */

// Maximum number of small squares in a wide square.
const MOST_LETTERS = 10;

// Sizes of the small squares, in pixels, with the gap that follows each.
const SMALL = { height: 22, most: 12, gap: 1 };

// Marks that a small square shows in its lower half, and the mark that it shows as a line.
const LOW = ["rejected", "died", "xfail"];
const FLAT = "unsupported";

// The least informative mark: any other mark of an architecture replaces it.
const ABSENT = "unavailable";

/** Squares of one matrix. */
class Squares {
  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.matrix = matrix;
    this.counts = new Uint32Array(matrix.marks.length);
    this.masks = new Uint32Array(matrix.names.target.length);
    const virtual = (/** @type {number} */ code) => matrix.names.target[code].startsWith("compute_");
    // Newest first, virtual architectures last.
    this.newest = matrix.names.target.map((_, code) => code).reverse();
    this.newest.sort((a, b) => Number(virtual(a)) - Number(virtual(b)));
    /** @type {number[][]} by column, the architectures in its squares */
    this.targets = [];
    /** The depth of lines of one case: above it, lines mix architectures of several cases. */
    this.depth = 0;
    /** @type {Map<string, string>} backgrounds by content */
    this.drawings = new Map();
    // From the most important marks to not applicable.
    const weights = matrix.marks.map(
      (mark, place) => (mark.good ? 200 - place : 100 + place) + (mark.key === "unsupported" ? 500 : 0),
    );
    /** Marks, the most severe first. */
    this.gravest = weights.map((_, place) => place).sort((a, b) => weights[a] - weights[b]);
  }

  /**
   * Find the architectures of each column, unless a dimension of the pivot is the architecture.
   *
   * @param {Pivot} pivot
   * @param {boolean} wide whether there is room for them
   */
  arrange({ rows, columns }, wide) {
    const { matrix, newest } = this;
    this.targets = columns.entries.map(() => []);
    const dimensions = [...rows.dimensions, ...columns.dimensions];
    if (!wide || dimensions.includes("target") || !dimensions.includes("case")) return;
    const found = columns.entries.map(() => new Uint8Array(newest.length));
    const { target } = matrix.columns;
    columns.place.forEach((place, cell) => {
      if (place >= 0) found[place][target[matrix.column[cell]]] = 1;
    });
    this.targets = found.map((has) => newest.filter((code) => has[code]));
    this.depth = Math.max(
      0,
      rows.levels.findIndex(([place]) => rows.dimensions[place] === "case"),
    );
  }

  /**
   * The number of cells by mark at a line and a column.
   *
   * @param {Pivot} pivot
   * @param {Line} line
   * @param {number} column
   * @returns {Sum}
   */
  sum(pivot, line, column) {
    const { counts, masks } = this;
    const { outcome, column: columnOf } = this.matrix;
    const marks = this.matrix.outcomes.mark;
    const { target } = this.matrix.columns;
    counts.fill(0);
    masks.fill(0);
    let count = 0;
    let first = -1;
    // The entries of an open group are below it.
    if (!line.open) {
      pivot.cells(line.from, line.to, column, (cell) => {
        const mark = marks[outcome[cell]];
        counts[mark]++;
        masks[target[columnOf[cell]]] |= 1 << mark;
        if (first < 0) first = cell;
        count++;
      });
    }
    const kinds = count === 1 ? [marks[outcome[first]]] : count ? this.gravest.filter((kind) => counts[kind]) : [];
    return { count, first, kinds, counts, targets: line.depth < this.depth ? [] : (this.targets[column] ?? []), masks };
  }

  /**
   * The marks in an architecture's small square: over its height, in its lower half, and as a line.
   *
   * @param {number} mask
   */
  shapes(mask) {
    const { marks } = this.matrix;
    const kinds = this.gravest.filter((kind) => mask & (1 << kind)).map((kind) => marks[kind]);
    const low = kinds.find(({ key }) => LOW.includes(key));
    const fulls = kinds.filter(({ key }) => key !== FLAT && !LOW.includes(key));
    const full = fulls.find(({ key }) => key !== ABSENT) ?? (low ? undefined : fulls[0]);
    return { full, low, flat: full || low ? undefined : kinds[0] };
  }

  /**
   * The background of a square with architectures: a small square for each, line by line.
   *
   * @param {Sum} sum
   * @param {number} width of the square
   */
  drawing({ targets, masks }, width) {
    const shown = targets.map((code) => masks[code]);
    const key = `${width} ${shown.join()}`;
    const known = this.drawings.get(key);
    if (known !== undefined) return known;
    const side = (/** @type {number} */ lines) =>
      Math.floor(Math.min(width / Math.ceil(shown.length / lines), SMALL.height / lines, SMALL.most));
    const lines = [1, 2, 3].reduce((best, each) => (side(each) > side(best) ? each : best));
    const [size, each] = [side(lines), Math.ceil(shown.length / lines)];
    const ink = size - SMALL.gap;
    const top = Math.ceil((SMALL.height - lines * size) / 2) + 1;
    const shapes = shown.map((mask) => this.shapes(mask));
    /** @type {string[]} */
    const layers = [];
    for (let line = 0; line < lines; line++) {
      const own = shapes.slice(line * each, (line + 1) * each);
      const bottom = top + line * size + ink;
      // The first of two layers is in front.
      for (const [shape, height] of /** @type {const} */ ([
        ["flat", 2],
        ["low", Math.ceil(ink / 2)],
        ["full", ink],
      ])) {
        const stops = own.map((of, place) => {
          const colour = of[shape] ? `var(--${of[shape]?.style}-b)` : "#0000";
          return `${colour} ${place * size}px ${place * size + ink}px, #0000 0 ${(place + 1) * size}px`;
        });
        if (!own.some((of) => of[shape])) continue;
        layers.push(
          `linear-gradient(90deg, ${stops.join(", ")}, #0000 0) 0 ${bottom - height}px / 100% ${height}px no-repeat`,
        );
      }
    }
    const drawing = layers.join(", ");
    this.drawings.set(key, drawing);
    return drawing;
  }

  /**
   * The architectures of a square by mark, one line per mark: "built: sm_90, sm_80".
   *
   * @param {Sum} sum
   */
  listing({ kinds, targets, masks }) {
    const { marks, names } = this.matrix;
    return kinds.map((kind) => {
      const own = targets.filter((code) => masks[code] & (1 << kind));
      return `${marks[kind].word}: ${own.map((code) => names.target[code]).join(", ")}`;
    });
  }

  /**
   * The letters of several cells and, if there is room, their numbers.
   *
   * @param {Sum} sum
   * @param {boolean} wide
   */
  letters({ kinds, counts }, wide) {
    const { marks } = this.matrix;
    const answered = kinds.filter((kind) => ![FLAT, ABSENT].includes(marks[kind].key));
    const telling = answered.length ? answered : kinds.filter((kind) => marks[kind].key !== FLAT);
    const supported = telling.reduce((all, kind) => all + counts[kind], 0);
    const bad = telling.reduce((all, kind) => all + (marks[kind].good ? 0 : counts[kind]), 0);
    const built = marks.findIndex(({ key }) => key === "built");
    if (wide && !bad && counts[built] && counts[built] < supported) {
      const share = `${text.count(counts[built])}/${text.count(supported)}`;
      const letter = share.length + 2 > MOST_LETTERS ? "" : `${marks[built].letter} `;
      return { text: `${letter}${share}`, style: "mixed" };
    }
    let shown = telling;
    if (!telling.length) shown = kinds;
    else if (bad) shown = [telling[0]];
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
   * The label of a square for screen readers.
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
   * Make an element show a line and a column. An element with the same content stays unchanged.
   *
   * @param {Square} square
   * @param {Line} line
   * @param {Sum} sum
   * @param {object} how
   * @param {boolean} how.wide whether there is room for numbers
   * @param {number} how.width of the square in pixels
   * @param {boolean} how.chosen whether the cell is in the panel
   */
  fill(square, line, sum, { wide, width, chosen }) {
    const { count, kinds, counts, targets, masks } = sum;
    const small = count > 1 && targets.length > 0;
    const shown = small ? targets.map((code) => masks[code]) : [];
    const each = kinds.map((kind) => `${kind}=${counts[kind]}`);
    const drawn = [line.open, wide, width, count, chosen, each, targets.length, shown].join(" ");
    if (square.drawn === drawn) return;
    square.drawn = drawn;
    let letters = "";
    if (small) {
      square.className = "c small";
    } else if (count > 1) {
      const several = this.letters(sum, wide);
      letters = several.text;
      square.className = `c many ${several.style}${letters.length > MOST_LETTERS ? " long" : ""}`;
    } else if (count) {
      const mark = this.matrix.marks[kinds[0]];
      letters = mark.letter;
      square.className = `c ${mark.style}`;
    } else square.className = line.open ? "c open" : "c empty";
    // Speech control finds a square by its visible letters.
    const label = this.label(line, sum);
    square.setAttribute("aria-label", letters && count > 1 ? `${label}; shown as ${letters}` : label);
    if (chosen) square.setAttribute("aria-selected", "true");
    else square.removeAttribute("aria-selected");
    // One text in one element: with thousands of squares, each further box is slow.
    /** @type {Text} */ (square.firstChild).data = letters;
    square.removeAttribute("style");
    if (small) {
      square.style.setProperty("--bar", this.drawing(sum, width));
      const [gravest] = kinds.map((kind) => this.matrix.marks[kind]);
      if (!gravest.good && gravest.key !== ABSENT) square.style.setProperty("--ring", `var(--${gravest.style}-b)`);
    } else if (kinds.length > 1) square.style.setProperty("--bar", this.bar(sum));
  }
}
