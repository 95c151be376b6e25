// The drawn part of the table.
"use strict";

/**
 * Lines and columns of the table, from `top` until before `bottom` and so on, and the width of the headings in pixels.
 *
 * @typedef {{top: number, bottom: number, left: number, right: number, heading: number}} Part
 */
/** @typedef {Pick<Element, "scrollTop" | "scrollLeft" | "clientHeight" | "clientWidth">} Box */

/** Sizes in pixels, as in the style sheet, and the amount to draw. */
const GRID = {
  row: 28,
  narrow: 28,
  wide: 84,
  // Row headings shrink with the screen.
  smallScreen: 640,
  heading: 300,
  smallHeading: 150,
  listHeading: 210,
  // The only column of a list is no wider than its small squares need.
  list: 380,
  // The part out of view is drawn later, so the result of a filter appears at once.
  ahead: 10,
  pause: 200,
  // A table with fewer cells is completely in the document for the browser's own search and printing.
  all: 3000,
};

const parts = (() => {
  /**
   * The width of the row headings.
   *
   * @param {Box} box
   * @param {number} columns
   */
  const headingOf = (box, columns) => {
    if (box.clientWidth >= GRID.smallScreen) return GRID.heading;
    return columns > 1 ? GRID.smallHeading : GRID.listHeading;
  };

  /**
   * The part in view, and some lines and columns around it.
   *
   * @param {Box} box the element that scrolls the table
   * @param {{lines: number, columns: number, width: number}} table its size; `width` is the width of a column in pixels
   * @param {number} ahead 1 for the part in view, more for as many lines and columns around it, Infinity for paper
   * @returns {Part}
   */
  const inView = (box, { lines, columns, width }, ahead) => {
    const heading = headingOf(box, columns);
    const all = ahead > 1 && lines * columns <= GRID.all;
    const margin = all ? Infinity : ahead > 1 ? ahead : 0;
    /** @param {number} at @param {number} count @param {number} end */
    const range = (at, count, end) => [Math.max(0, Math.min(at, end - 1) - margin), Math.min(end, at + count + margin)];
    const tall = Math.ceil(box.clientHeight / GRID.row);
    const broad = Math.ceil((box.clientWidth - heading) / width) + 1;
    const [top, bottom] = range(Math.floor(box.scrollTop / GRID.row), tall, lines);
    const [left, right] = range(Math.floor(box.scrollLeft / width), broad, columns);
    return { top, bottom, left, right, heading };
  };

  /**
   * Whether the drawn part contains another part.
   *
   * @param {Part | null} drawn
   * @param {Part} part
   */
  const covers = (drawn, part) =>
    drawn !== null &&
    drawn.heading === part.heading &&
    drawn.top <= part.top &&
    drawn.bottom >= part.bottom &&
    drawn.left <= part.left &&
    drawn.right >= part.right;

  return { headingOf, inView, covers };
})();
