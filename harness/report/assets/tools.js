// The columns of the table of answers: one a tool.
"use strict";

/**
 * Places are those of the data's columns; fields of the named ones name them.
 *
 * @typedef {{heading: string, places: number[], named: Set<number>}} ToolColumn
 */

const tools = (() => {
  /** The most columns before kernel languages share one. */
  const MOST = 8;

  /**
   * Columns of the table: one a tool; header libraries and host compilers have their own where a question names one.
   *
   * Of many tools, those without a row in common share a column: programs of kernel languages are for one tool each.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   * @param {boolean} apart
   * @returns {ToolColumn[]}
   */
  const columnsOf = ({ columns }, found, apart) => {
    const used = new Set(found.flatMap(({ fields }) => [...fields.keys()]));
    const places = columns.map((_, at) => at).filter((at) => used.has(at));
    if (apart) return places.map((at) => ({ heading: columns[at][1], places: [at], named: new Set() }));
    const hasAxis = (/** @type {number} */ at) => Boolean(columns[at][3]);
    const every = [...new Set(places.map((at) => columns[at][2]))].map((tool) => {
      const own = places.filter((at) => columns[at][2] === tool);
      const [, heading] = columns.find(([, , of, axis]) => of === tool && !axis) || columns[own[0]];
      own.sort((a, b) => Number(hasAxis(a)) - Number(hasAxis(b)) || a - b);
      return { heading, places: own, named: new Set(own.length > 1 ? own.filter(hasAxis) : []) };
    });
    const shares = (/** @type {ToolColumn} */ { places: own }) =>
      found.some(
        ({ fields }) => own.some((at) => fields.has(at)) && [...fields.keys()].some((at) => !own.includes(at)),
      );
    const alone = every.length > MOST ? every.filter((column) => !shares(column)) : [];
    if (alone.length < 2) return every;
    const all = alone.flatMap((column) => column.places);
    const one = { heading: "Kernel languages", places: all, named: new Set(all) };
    return [...every.filter((column) => !alone.includes(column)), one];
  };

  return { columnsOf };
})();
