// Views of the matrix that the page offers. An address can request others.
"use strict";

const views = (() => {
  /**
   * Keys of the axes of one side, with commas, outermost first. A later axis is included only if a cell has a value.
   *
   * @param {Matrix} matrix
   * @param {"row" | "column"} side
   * @param {string[]} but to omit
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
   * Views by a parameter with several values among the cells, by their dimensions.
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

  // With more columns, the initial view has toolchains without their targets.
  const MOST_COLUMNS = 150;

  /**
   * The initial view of the page.
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
   * The initial view of a narrow screen, which has no room for columns.
   *
   * @param {Matrix} matrix
   * @returns {Pair}
   */
  const list = (matrix) => ({ down: Object.keys(down(matrix))[1], across: LIST });

  /**
   * Set the choices of a list of views.
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
   * Show the chosen view, including one from an address only.
   *
   * @param {Matrix} matrix
   * @param {HTMLSelectElement} select
   * @param {string} value
   * @param {Record<string, string>} more further views for the shown cells
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

  // With more lines, cases are folded until the reader opens one.
  const OPEN_LINES = 120;

  /** @param {PivotAxis} rows */
  const isSmall = (rows) => rows.entries.length <= OPEN_LINES;

  /**
   * The open groups.
   *
   * @param {PivotAxis} rows
   * @param {string[]} fold names of groups that differ from the initial state; "*" opens all
   * @param {boolean} isList whether every group is initially closed
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
