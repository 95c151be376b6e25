// Ways to look at the matrix that the page offers; an address can ask for others.
"use strict";

const views = (() => {
  /**
   * Keys of the axes of one side, with commas, from the outermost on; of one that came later only where a cell has a
   * value of it.
   *
   * @param {Matrix} matrix
   * @param {"row" | "column"} side
   * @param {string[]} but those that are left out
   */
  const keys = (matrix, side, ...but) =>
    matrix.axes
      .filter((axis) => axis.side === side && !but.includes(axis.key))
      .filter((axis) => !axis.optional || matrix.names[axis.key].some(Boolean))
      .map((axis) => axis.key)
      .join();

  /** No columns: a list, for narrow screens. */
  const LIST = "none";

  /**
   * Names of views of the rows, by their dimensions.
   *
   * @param {Matrix} matrix
   * @returns {Record<string, string>}
   */
  const down = (matrix) => ({
    [keys(matrix, "row")]: "Cases and variants",
    [`topic,case,${keys(matrix, "column", "target")}`]: "Cases, each with its toolchains",
    "topic,case": "Cases",
    topic: "Topics",
  });

  /**
   * Names of views of the columns, by their dimensions.
   *
   * @param {Matrix} matrix
   * @returns {Record<string, string>}
   */
  const across = (matrix) => {
    const toolchain = keys(matrix, "column", "target");
    const others = keys(matrix, "column", "target", "toolkit");
    return {
      [`${toolchain},target`]: "Toolchains, each with its targets",
      [toolchain]: "Toolchains",
      "backend,library": "Libraries by version",
      [`target,${toolchain}`]: "Architectures, each with its toolchains",
      target: "Architectures",
      [`toolkit,${others},target`]: "CUDA releases, each with backends and targets",
      [`toolkit,${others}`]: "CUDA releases, each with its backends",
      toolkit: "CUDA releases",
      backend: "Backends",
      [LIST]: "Nothing, as a list",
    };
  };

  /**
   * Views by a parameter that some cells have more than one value of, by their dimensions.
   *
   * @param {Matrix} matrix
   * @param {string[]} shown keys of such parameters
   * @returns {{down: Record<string, string>, across: Record<string, string>}}
   */
  const byParameter = (matrix, shown) => {
    const of = (/** @type {string} */ rest, /** @type {string} */ each) =>
      Object.fromEntries(shown.map((key) => [key + rest, `By ${matrix.dimension(key)?.title}${each}`]));
    return {
      down: of(",case,variant", ", each with its cases"),
      across: { ...of("", ""), ...of(",backend,library", ", each with its libraries") },
    };
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
    const [cases] = Object.keys(down(matrix));
    const [targets, toolchains] = Object.keys(across(matrix));
    return { down: cases, across: matrix.columns.backend.length > MOST_COLUMNS ? toolchains : targets };
  };

  /**
   * The view of a narrow screen, which has no room for columns.
   *
   * @param {Matrix} matrix
   * @returns {Pair}
   */
  const list = (matrix) => ({ down: Object.keys(down(matrix))[1], across: LIST });

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
   * @param {Matrix} matrix
   * @param {HTMLSelectElement} select
   * @param {string} value
   * @param {Record<string, string>} more views that are offered of what is shown
   */
  const choose = (matrix, select, value, more = {}) => {
    select.querySelector("optgroup")?.remove();
    const others = Object.entries(more).map(([each, label]) => dom.h("option", { value: each }, label));
    if (others.length) select.append(dom.h("optgroup", { label: "By parameter" }, others));
    if (![...select.options].some((option) => option.value === value)) {
      const label = down(matrix)[value] || across(matrix)[value] || value.replaceAll(",", ", ");
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
   * @param {boolean} isList whether everything is closed at first
   * @returns {(path: string[], depth: number) => boolean}
   */
  const openness = (rows, fold, isList = false) => {
    const toggled = new Set(fold);
    const all = (isSmall(rows) && !isList) || toggled.has("*");
    const last = isList ? 0 : rows.levels.length - 2;
    return (path, depth) => (all || depth < last) !== toggled.has(address.foldName(path));
  };

  return { LIST, down, across, byParameter, first, list, offer, choose, isSmall, openness };
})();
