// Ways to look at the matrix that the page offers; an address can ask for others.
"use strict";

const views = (() => {
  /** @type {Record<string, string>} by dimensions of the rows, from the outermost on */
  const DOWN = { "topic,case,variant": "Cases and variants", "topic,case": "Cases", topic: "Topics" };

  /** @type {Record<string, string>} by dimensions of the columns */
  const ACROSS = {
    "backend,library,toolkit,target": "Toolchains, each with its targets",
    "backend,library,toolkit": "Toolchains",
    "backend,library": "Libraries by version",
    "target,backend,library,toolkit": "Architectures, each with its toolchains",
    target: "Architectures",
    "toolkit,backend,library,target": "CUDA releases, each with backends and targets",
    "toolkit,backend,library": "CUDA releases, each with its backends",
    toolkit: "CUDA releases",
    backend: "Backends",
  };

  // More columns than this begin as toolchains without their targets.
  const MOST_COLUMNS = 150;

  /**
   * The view that the page begins with.
   *
   * @param {Matrix} matrix
   * @returns {Pair}
   */
  const first = (matrix) => {
    const [down] = Object.keys(DOWN);
    const [targets, toolchains] = Object.keys(ACROSS);
    return { down, across: matrix.columns.backend.length > MOST_COLUMNS ? toolchains : targets };
  };

  /**
   * The choices of a list of views.
   *
   * @param {HTMLSelectElement} select
   * @param {Record<string, string>} options
   * @param {(value: string) => void} choose
   */
  const offer = (select, options, choose) => {
    select.append(...Object.entries(options).map(([value, label]) => dom.h("option", { value }, label)));
    select.addEventListener("change", () => choose(select.value));
  };

  /**
   * Show which view is chosen, one that only an address asks for as well.
   *
   * @param {HTMLSelectElement} select
   * @param {string} value
   */
  const choose = (select, value) => {
    if (![...select.options].some((option) => option.value === value)) {
      const label = DOWN[value] || ACROSS[value] || value.replaceAll(",", ", ");
      select.append(dom.h("option", { value }, label));
    }
    select.value = value;
  };

  // More lines than this are folded into their cases until the reader opens one.
  const OPEN_LINES = 120;

  /** @param {PivotAxis} rows */
  const isSmall = (rows) => rows.entries.length <= OPEN_LINES;

  /**
   * Which groups are open.
   *
   * @param {PivotAxis} rows
   * @param {string[]} fold names of the groups that are not as at first; "*" opens all
   * @returns {(path: string[], depth: number) => boolean}
   */
  const openness = (rows, fold) => {
    const toggled = new Set(fold);
    const all = isSmall(rows) || toggled.has("*");
    const last = rows.dimensions.length - 2;
    return (path, depth) => (all || depth < last) !== toggled.has(address.foldName(path));
  };

  return { DOWN, ACROSS, first, offer, choose, isSmall, openness };
})();
