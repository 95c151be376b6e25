// The headings of the columns, and of a row.
"use strict";

/** @typedef {{groups: number[][], leaf: number[]}} Levels positions of the dimensions of each level of headings */

/** Headings of one pivot. */
class Headings {
  /**
   * @param {Matrix} matrix
   * @param {Pivot} pivot
   */
  constructor(matrix, pivot) {
    this.matrix = matrix;
    this.pivot = pivot;
    const across = pivot.columns.dimensions;
    const many = ["target", "variant"].some((key) => across.includes(key)) && across.length > 1;
    /** Whether columns are wide enough for numbers. */
    this.wide = !many;
    this.levels = Headings.levels(pivot.columns, this.wide ? 1.2 : 2.5, matrix.later);
    /** Whether each column is the first of its group. */
    this.begins = pivot.columns.entries.map((entry, column) => {
      const upto = (this.levels.groups.at(-1)?.at(-1) ?? -1) + 1;
      const before = column ? pivot.columns.entries[column - 1] : [];
      return upto > 0 && !Headings.same(entry, before, upto);
    });
    /** Number of letters of the longest label. */
    this.longest = Math.max(4, ...pivot.columns.entries.map((entry) => this.label(this.levels.leaf, entry).length));
  }

  /**
   * Levels of headings. Backend and library share a level, and an axis with few values shares the level before it. A
   * level with a heading for each single column becomes part of the column's label.
   *
   * @param {PivotAxis} columns
   * @param {number} least minimum average number of columns below a heading
   * @param {string[]} later axes with few values
   * @returns {Levels}
   */
  static levels(columns, least, later) {
    /** @type {number[][]} */
    const found = [];
    columns.dimensions.forEach((key, place) => {
      const joins = later.includes(key) || (key === "library" && columns.dimensions[place - 1] === "backend");
      if (joins && found.length) found[found.length - 1].push(place);
      else found.push([place]);
    });
    const spans = (/** @type {number} */ upto) =>
      new Set(columns.entries.map((entry) => entry.slice(0, upto).join())).size;
    const above = (/** @type {number[]} */ places) => columns.entries.length / spans(Math.max(...places) + 1);
    let count = 0;
    while (count < found.length - 1 && above(found[count]) >= least) count++;
    return { groups: found.slice(0, count), leaf: found.slice(count).flat() };
  }

  /**
   * Whether two entries start with the same codes.
   *
   * @param {number[]} entry
   * @param {number[]} other
   * @param {number} upto number of codes to compare
   */
  static same(entry, other, upto) {
    for (let place = 0; place < upto; place++) if (entry[place] !== other[place]) return false;
    return true;
  }

  /**
   * The label of an entry, from some of its dimensions.
   *
   * @param {number[]} places
   * @param {number[]} entry
   */
  label(places, entry) {
    const named = places.map((place) => {
      const key = this.pivot.columns.dimensions[place];
      return this.matrix.label(key, this.matrix.names[key][entry[place]]) || this.without(key);
    });
    return named.filter(Boolean).join(" ");
  }

  /**
   * The label of a column, from all of its dimensions.
   *
   * @param {number} column
   */
  column(column) {
    return this.label([...this.pivot.columns.dimensions.keys()], this.pivot.columns.entries[column]);
  }

  /**
   * The label of a column below its groups.
   *
   * @param {number} column
   */
  leaf(column) {
    const { dimensions, entries } = this.pivot.columns;
    return dimensions.length ? this.label(this.levels.leaf, entries[column]) : "Architectures";
  }

  /**
   * The label of entries without a value: "no bytes" for a parameter, empty for an axis.
   *
   * @param {string} key
   */
  without(key) {
    return this.matrix.parameters.some((item) => item.key === key) ? `no ${this.matrix.dimension(key)?.title}` : "";
  }

  /** The label of the rows for the corner: "Case, variant". It omits the topic if the topic only groups cases. */
  corner() {
    const { dimensions } = this.pivot.rows;
    const titles = dimensions
      .filter((key) => key !== "topic" || dimensions.length === 1)
      .map((key) => this.matrix.dimension(key)?.title ?? key)
      .join(", ");
    return titles.charAt(0).toUpperCase() + titles.slice(1);
  }

  /**
   * The head of the table for the columns from `left` until before `right`.
   *
   * @param {number} left
   * @param {number} right
   */
  head(left, right) {
    const { h } = dom;
    const { entries } = this.pivot.columns;
    const count = this.levels.groups.length;
    const gap = () => h("td", { "aria-hidden": "true", class: "gap" });
    const heading = (/** @type {number} */ column, /** @type {string} */ label, /** @type {object} */ attributes) =>
      h("th", { role: "columnheader", "aria-colindex": column + 2, title: label, ...attributes }, h("span", {}, label));
    const rows = [...Array(count + 1).keys()].map((place) => h("tr", { role: "row", "aria-rowindex": place + 1 }));
    rows[0].append(
      h(
        "th",
        { class: "corner", scope: "col", rowspan: count + 1, role: "columnheader", "aria-colindex": 1 },
        this.corner(),
      ),
    );
    this.levels.groups.forEach((places, level) => {
      const upto = places[places.length - 1] + 1;
      rows[level].append(gap());
      for (let start = left, end; start < right; start = end) {
        end = start + 1;
        while (end < right && Headings.same(entries[end], entries[start], upto)) end++;
        const label = this.label(places, entries[start]);
        rows[level].append(heading(start, label, { class: "group", scope: "colgroup", colspan: end - start }));
      }
      rows[level].append(gap());
    });
    const own = rows[count];
    own.append(gap());
    for (let column = left; column < right; column++) {
      const style = `leaf${this.begins[column] ? " begins" : ""}${this.wide ? "" : " upright"}`;
      own.append(heading(column, this.leaf(column), { class: style, scope: "col" }));
    }
    own.append(gap());
    if (!this.wide) own.style.height = `${Math.min(190, this.longest * 6.4 + 14)}px`;
    return h("thead", {}, rows);
  }

  /**
   * The heading of a row.
   *
   * @param {Line} line
   * @param {number} number the line's number
   * @param {number} tab
   */
  row(line, number, tab) {
    const { h } = dom;
    const label = line.label || this.without(line.dimension) || "(no variant)";
    const title = line.dimension === "case" ? this.matrix.cases[line.code].title : "";
    const inner = h(
      "span",
      {},
      !line.leaf && h("i", { class: "fold", "aria-hidden": "true" }, line.open ? "▾" : "▸"),
      line.label ? this.matrix.label(line.dimension, label) : label,
      title && h("small", {}, ` ${title}`),
    );
    const depth = line.depth - (this.pivot.rows.dimensions[0] === "topic" ? 1 : 0);
    inner.style.paddingLeft = `${depth * 12 + (line.leaf ? 12 : 0)}px`;
    return h(
      "th",
      {
        scope: "row",
        role: "rowheader",
        "aria-colindex": 1,
        tabindex: tab,
        "data-line": number,
        title: title ? `${label}: ${title}` : label,
      },
      inner,
    );
  }
}
