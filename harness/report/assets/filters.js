// The search box with its completion, the filters with their counts, and the legend.
"use strict";

{
  const { h } = cumatrix;
  const FACETS = ["topic", "backend", "library", "toolkit", "target", "status", "verdict", "stage", "environment"];

  /** A box to type a query into; what could come next is offered below it (the combobox pattern of ARIA). */
  cumatrix.SearchBox = class {
    constructor(input, list, matrix, change) {
      Object.assign(this, { input, list, matrix, change, options: null, at: -1 });
      input.addEventListener("input", () => {
        this.offer();
        change(input.value);
      });
      input.addEventListener("keydown", (event) => this.key(event));
      input.addEventListener("focus", () => this.offer());
      input.addEventListener("blur", () => this.hide());
      list.addEventListener("mousedown", (event) => {
        event.preventDefault();
        const item = event.target.closest("[role=option]");
        if (item) this.take(Number(item.dataset.place));
      });
    }

    offer() {
      const { input, list } = this;
      this.options = cumatrix.query.complete(this.matrix, input.value, input.selectionStart ?? input.value.length);
      const { options, start, end } = this.options;
      const typed = input.value.slice(start, end);
      this.at = -1;
      input.removeAttribute("aria-activedescendant");
      list.replaceChildren(...options.map((option, place) => h("li", { role: "option", id: `offer-${place}`, "data-place": place, "aria-selected": "false" }, h("b", {}, option.text.trim()), option.about ? h("small", {}, ` ${option.about}`) : null)));
      const useful = options.length > 0 && !(options.length === 1 && options[0].text.trim() === typed);
      list.hidden = !useful || document.activeElement !== input;
      input.setAttribute("aria-expanded", String(!list.hidden));
    }

    hide() {
      this.list.hidden = true;
      this.input.setAttribute("aria-expanded", "false");
      this.input.removeAttribute("aria-activedescendant");
      this.at = -1;
    }

    key(event) {
      const open = !this.list.hidden;
      if (event.key === "Escape") {
        if (open) this.hide();
        else if (this.input.value) {
          this.input.value = "";
          this.change("");
        } else return;
        event.preventDefault();
      } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (open || event.key === "ArrowDown")) {
        if (!open) this.offer();
        this.highlight(this.at + (event.key === "ArrowDown" ? 1 : -1));
        event.preventDefault();
      } else if ((event.key === "Enter" || (event.key === "Tab" && this.at >= 0)) && open && this.at >= 0) {
        this.take(this.at);
        event.preventDefault();
      } else if (event.key === "Enter") this.hide();
    }

    highlight(place) {
      const items = [...this.list.children];
      if (!items.length) return;
      this.at = (place + items.length) % items.length;
      items.forEach((item, each) => item.setAttribute("aria-selected", String(each === this.at)));
      items[this.at].scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", items[this.at].id);
    }

    take(place) {
      const { start, end, options } = this.options;
      const { text } = options[place];
      const rest = this.input.value.slice(end);
      this.input.value = this.input.value.slice(0, start) + text + rest.replace(/^ +/, text.endsWith(" ") ? "" : " ");
      const caret = start + text.length;
      this.input.setSelectionRange(caret, caret);
      this.change(this.input.value);
      this.offer();
    }
  };

  /** Filters by value; each count is what choosing that value would give. */
  cumatrix.Facets = class {
    constructor(box, legend, matrix, toggle) {
      Object.assign(this, { box, legend, matrix, toggle, items: new Map() });
      for (const field of FACETS) {
        const names = matrix.names[field];
        if (names.filter(Boolean).length < 2) continue;
        const group = h("details", { class: "facet" });
        const chosen = h("span", { class: "chosen" });
        const entries = names.map((name, code) => {
          if (!name) return null;
          const box = h("input", { type: "checkbox", change: () => toggle(field, name) });
          const count = h("span", { class: "count" });
          return { code, name, box, count, label: h("label", {}, box, h("span", {}, field === "toolkit" ? `CUDA ${name}` : name.replaceAll("_", " ")), count) };
        }).filter(Boolean);
        group.append(h("summary", {}, field, chosen), h("div", { class: "choices", role: "group", "aria-label": field }, entries.map((entry) => entry.label)));
        box.append(group);
        this.items.set(field, { group, chosen, entries });
      }
      // One list open at a time, and none when the reader goes elsewhere.
      document.addEventListener("click", (event) => this.shut(event.target.closest("details.facet")));
      box.addEventListener("focusout", (event) => event.relatedTarget && !box.contains(event.relatedTarget) && this.shut(null));
      box.addEventListener("keydown", (event) => {
        const open = event.key === "Escape" && event.target.closest("details.facet[open]");
        if (open) {
          open.open = false;
          open.querySelector("summary").focus();
        }
      });
      this.marks = matrix.marks.map((mark, code) => {
        if (!matrix.outcomes.mark.includes(code)) return null;
        const count = h("b", {});
        const button = h("button", { type: "button", "aria-pressed": "false", title: mark.meaning, click: () => toggle("mark", mark.key) }, cumatrix.chip(mark), " ", count, " ", mark.word);
        legend.append(h("li", {}, button));
        return { count, button, mark };
      });
    }

    shut(but) {
      for (const { group } of this.items.values()) if (group !== but) group.open = false;
    }

    /** How many cells there are in each row, column and outcome, of those that the query lets through but for the term at a place. */
    tally({ misses, missed }, place) {
      const { matrix } = this;
      const sums = new Map([matrix.row, matrix.column, matrix.outcome].map((of, place) => [of, new Uint32Array([matrix.rows.case.length, matrix.columns.backend.length, matrix.outcomes.mark.length][place])]));
      const [rows, columns, outcomes] = sums.values();
      const { row, column, outcome } = matrix;
      for (let cell = 0; cell < matrix.size; cell++) {
        if (misses[cell] && (misses[cell] > 1 || missed[cell] !== place)) continue;
        rows[row[cell]]++;
        columns[column[cell]]++;
        outcomes[outcome[cell]]++;
      }
      return sums;
    }

    /** Counts and choices after a query. */
    update(answer) {
      const { matrix } = this;
      const { tree } = answer;
      const found = this.tally(answer, -1);
      for (const [field, { group, chosen, entries }] of [...this.items, ["mark", { entries: [] }]]) {
        const term = cumatrix.query.filterTerm(tree, field);
        const place = term ? tree.parts.indexOf(term) : -1;
        // What is chosen already does not count against the other values of its own field.
        const sums = term ? this.tally(answer, place) : found;
        const { codes, of } = matrix.source(field);
        const counts = new Uint32Array(matrix.names[field].length);
        sums.get(of).forEach((count, at) => (counts[codes[at]] += count));
        const values = term ? term.values : [];
        if (field === "mark") {
          this.marks.forEach((item, code) => {
            if (!item) return;
            item.count.textContent = cumatrix.count(counts[code]);
            item.button.setAttribute("aria-pressed", String(values.includes(item.mark.key)));
            item.button.classList.toggle("none", !counts[code]);
          });
          continue;
        }
        chosen.textContent = values.length ? (values.length === 1 ? ` ${values[0]}` : ` ${values.length} chosen`) : "";
        group.classList.toggle("active", values.length > 0);
        for (const entry of entries) {
          entry.box.checked = values.includes(entry.name);
          entry.count.textContent = cumatrix.count(counts[entry.code]);
          entry.label.classList.toggle("none", !counts[entry.code] && !entry.box.checked);
        }
      }
    }
  };
}
