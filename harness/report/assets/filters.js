// The filters above the table, and the legend.
"use strict";

/**
 * A value of a field in a filter.
 *
 * @typedef {{name: string, box: HTMLInputElement, count: HTMLElement, label: HTMLElement}} FilterValue
 */
/** @typedef {{group: HTMLDetailsElement, chosen: HTMLElement, values: FilterValue[]}} Filter */
/** @typedef {{chosen: string[], counts: Map<string, number>}} FieldState cells by value, "" for none */
/** @typedef {{mark: Mark, count: HTMLElement, button: HTMLElement}} LegendEntry */

// A parameter with more values has no filter, but can be typed.
const MOST_VALUES = 1000;

/** Filters by value, and the legend, which is the filter for marks. */
class Filters {
  /**
   * @param {HTMLElement} box
   * @param {HTMLElement} legend
   * @param {Matrix} matrix
   * @param {(field: string, value: string) => void} toggle
   */
  constructor(box, legend, matrix, toggle) {
    this.matrix = matrix;
    this.toggle = toggle;
    /** @type {Map<string, Filter>} */
    this.filters = new Map();
    for (const [field, { filter }] of Object.entries(fields.FIELDS)) {
      const count = filter ? fields.choices(matrix, field).names.length : 0;
      if (count > 1 && count <= MOST_VALUES) this.filters.set(field, this.filter(field));
    }
    /** @type {string[]} parameters with several values among the shown cells */
    this.parameters = [];
    box.append(...[...this.filters.values()].map(({ group }) => group));
    // At most one list is open, and none after a click elsewhere.
    document.addEventListener("click", (event) => this.shut(dom.around(event, "details.facet")));
    box.addEventListener("focusout", (event) => {
      const to = /** @type {Node | null} */ (event.relatedTarget);
      if (to && !box.contains(to)) this.shut(null);
    });
    box.addEventListener("keydown", (event) => {
      const open = event.key === "Escape" && dom.around(event, "details.facet[open]");
      if (!open) return;
      open.removeAttribute("open");
      open.querySelector("summary")?.focus();
    });
    this.legend = matrix.marks.map((mark, code) => this.entry(mark, code)).filter((entry) => entry !== null);
    legend.append(...this.legend.map(({ button }) => dom.h("li", {}, button)));
  }

  /**
   * The filter of a field.
   *
   * @param {string} field
   * @returns {Filter}
   */
  filter(field) {
    const { h } = dom;
    const values = fields.choices(this.matrix, field).names.map((name) => {
      const box = h("input", { type: "checkbox", change: () => this.toggle(field, name) });
      const count = h("span", { class: "count" });
      const label = this.matrix.label(field, name);
      const shown = label === name ? text.words(name) : label;
      return { name, box, count, label: h("label", {}, box, h("span", {}, shown), count) };
    });
    const labels = values.map(({ label }) => label);
    const chosen = h("span", { class: "chosen" });
    const choices = h("div", { class: "choices", role: "group", "aria-label": field }, labels);
    return { group: h("details", { class: "facet" }, h("summary", {}, field, chosen), choices), chosen, values };
  }

  /**
   * A mark in the legend, if any cell has it.
   *
   * @param {Mark} mark
   * @param {number} code
   * @returns {LegendEntry | null}
   */
  entry(mark, code) {
    if (!this.matrix.outcomes.mark.includes(code)) return null;
    const { h } = dom;
    const count = h("b", {});
    const choose = () => this.toggle("mark", mark.key);
    const button = h(
      "button",
      { type: "button", "aria-pressed": "false", title: mark.meaning, click: choose },
      ...[dom.chip(mark), " ", count, " ", mark.word],
    );
    return { mark, count, button };
  }

  /** @param {Element | null} but the list that stays open */
  shut(but) {
    for (const { group } of this.filters.values()) if (group !== but) group.open = false;
  }

  /**
   * Update counts and choices after a query.
   *
   * @param {Answer} answer
   */
  update(answer) {
    const found = counts.ofFields(this.matrix, answer, [...this.filters.keys(), "mark"]);
    for (const [field, state] of found) {
      const filter = this.filters.get(field);
      if (filter) this.updateFilter(filter, state.chosen, state.counts);
      else this.updateLegend(state.chosen, state.counts);
    }
    this.parameters = this.matrix.parameters
      .filter((item) => this.filters.has(item.key) && this.applies(item, found.get(item.key)))
      .map(({ key }) => key);
    for (const { key } of this.matrix.parameters) {
      const group = this.filters.get(key)?.group;
      if (group) group.hidden = !this.parameters.includes(key);
    }
  }

  /**
   * Whether a parameter is useful for the shown cells: most cells have one of several values. A header library always
   * is.
   *
   * @param {Parameter} item
   * @param {FieldState} [state]
   */
  applies({ library }, state) {
    if (!state) return false;
    const own = [...state.counts].filter(([value]) => value).map(([, count]) => count);
    const sum = own.reduce((total, count) => total + count, 0);
    const several = own.filter(Boolean).length > 1;
    return state.chosen.length > 0 || (several && (library || sum > (state.counts.get("") || 0)));
  }

  /** @param {Filter} filter @param {string[]} chosen @param {Map<string, number>} numbers by value */
  updateFilter(filter, chosen, numbers) {
    const [only] = chosen;
    filter.chosen.textContent = chosen.length > 1 ? ` ${chosen.length} chosen` : only ? ` ${only}` : "";
    filter.group.classList.toggle("active", chosen.length > 0);
    for (const { name, box, count, label } of filter.values) {
      box.checked = chosen.includes(name);
      count.textContent = text.count(numbers.get(name) || 0);
      label.classList.toggle("none", !numbers.get(name) && !box.checked);
    }
  }

  /** @param {string[]} chosen @param {Map<string, number>} numbers by mark */
  updateLegend(chosen, numbers) {
    for (const { mark, count, button } of this.legend) {
      count.textContent = text.count(numbers.get(mark.key) || 0);
      button.setAttribute("aria-pressed", String(chosen.includes(mark.key)));
      button.classList.toggle("none", !numbers.get(mark.key));
    }
  }
}
