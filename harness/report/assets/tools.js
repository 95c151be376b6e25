// The columns of the table of answers: one per tool.
"use strict";

/**
 * Places are indices of the data's columns. Fields of the named places show their names.
 *
 * @typedef {{heading: string, places: number[], named: Set<number>}} ToolColumn
 */

const tools = (() => {
  /**
   * Columns of the table, one per tool. Header libraries and host compilers have their own if a question names one.
   *
   * If there are many tools, kernel languages share a column: each of their programs is for one tool.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   * @param {boolean} apart
   * @returns {ToolColumn[]}
   */
  const columnsOf = ({ columns, shared }, found, apart) => {
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
    const isShared = (/** @type {ToolColumn} */ { places: own }) => shared.backends.includes(columns[own[0]][2]);
    const alone = every.length > shared.most ? every.filter(isShared) : [];
    if (alone.length < 2) return every;
    const all = alone.flatMap((column) => column.places);
    const one = { heading: shared.heading, places: all, named: new Set(all) };
    return [...every.filter((column) => !isShared(column)), one];
  };

  return { columnsOf };
})();
