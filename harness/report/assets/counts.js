// The numbers next to the filters: the number of cells after choosing that value.
"use strict";

const counts = (() => {
  /**
   * The number of cells of each row, column or outcome that match the query without one term.
   *
   * @param {Matrix} matrix
   * @param {Answer} answer
   * @param {number} but position of the ignored term, or -1
   * @returns {Map<ArrayLike<number> | null, Uint32Array>} by `Matrix.source(…).of`
   */
  const tally = (matrix, { misses, missed }, but) => {
    const rows = new Uint32Array(matrix.rows.case.length);
    const columns = new Uint32Array(matrix.columns.backend.length);
    const outcomes = new Uint32Array(matrix.outcomes.mark.length);
    const { row, column, outcome } = matrix;
    for (let cell = 0; cell < matrix.size; cell++) {
      if (misses[cell] && (misses[cell] > 1 || missed[cell] !== but)) continue;
      rows[row[cell]]++;
      columns[column[cell]]++;
      outcomes[outcome[cell]]++;
    }
    return new Map([
      [row, rows],
      [column, columns],
      [outcome, outcomes],
    ]);
  };

  /**
   * The chosen values of each field's filter, and the number of cells for each value.
   *
   * @param {Matrix} matrix
   * @param {Answer} answer
   * @param {string[]} names fields
   * @returns {Map<string, FieldState>}
   */
  const ofFields = (matrix, answer, names) => {
    const all = tally(matrix, answer, -1);
    return new Map(
      names.map((field) => {
        const place = query.filterOf(answer.parts, field);
        const part = answer.parts[place];
        // A choice does not count against the other values of its own field.
        const sums = part ? tally(matrix, answer, place) : all;
        const { names: values, places, of } = fields.choices(matrix, field);
        const found = new Map([...values, ""].map((value) => [value, 0]));
        sums.get(of)?.forEach((count, at) => found.set(places[at], (found.get(places[at]) || 0) + count));
        return [field, { chosen: part?.op === "test" ? values.filter(part.holds) : [], counts: found }];
      }),
    );
  };

  return { ofFields };
})();
