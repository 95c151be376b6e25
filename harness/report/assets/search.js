// The search box with its completion.
"use strict";

/** An input for queries with completions below it (the combobox pattern of ARIA). */
class SearchBox {
  /**
   * @param {HTMLInputElement} input
   * @param {HTMLElement} list
   * @param {Matrix} matrix
   * @param {(query: string) => void} change
   */
  constructor(input, list, matrix, change) {
    this.input = input;
    this.list = list;
    this.matrix = matrix;
    this.change = change;
    /** @type {Offer} */
    this.offered = { start: 0, end: 0, options: [] };
    /** The highlighted option, or -1. */
    this.at = -1;
    input.addEventListener("input", () => {
      this.offer();
      change(input.value);
    });
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("focus", () => this.offer());
    input.addEventListener("blur", () => this.hide());
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const item = dom.around(event, "[role=option]");
      if (item) this.take(Number(item.dataset.place));
    });
  }

  offer() {
    const { h } = dom;
    const { input, list } = this;
    this.offered = completion.complete(this.matrix, input.value, input.selectionStart ?? input.value.length);
    const { options, start, end } = this.offered;
    const typed = input.value.slice(start, end);
    this.at = -1;
    input.removeAttribute("aria-activedescendant");
    const items = options.map((option, place) =>
      h(
        "li",
        { role: "option", id: `offer-${place}`, "data-place": place, "aria-selected": "false" },
        h("b", {}, option.text.trim()),
        option.about && h("small", {}, ` ${option.about}`),
      ),
    );
    list.replaceChildren(...items);
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

  /** @param {KeyboardEvent} event */
  key(event) {
    const { key } = event;
    const open = !this.list.hidden;
    if (key === "Escape") {
      if (open) this.hide();
      else if (this.input.value) {
        this.input.value = "";
        this.change("");
      } else return;
      event.preventDefault();
    } else if (key === "ArrowDown" || (key === "ArrowUp" && open)) {
      if (!open) this.offer();
      this.highlight(this.at + (key === "ArrowDown" ? 1 : -1));
      event.preventDefault();
    } else if ((key === "Enter" || key === "Tab") && open && this.at >= 0) {
      this.take(this.at);
      event.preventDefault();
    } else if (key === "Enter") this.hide();
  }

  /** @param {number} place modulo the number of options */
  highlight(place) {
    const items = [...this.list.children];
    if (!items.length) return;
    this.at = (place + items.length) % items.length;
    items.forEach((item, each) => item.setAttribute("aria-selected", String(each === this.at)));
    items[this.at].scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", items[this.at].id);
  }

  /** @param {number} place of the option to insert into the query */
  take(place) {
    const { start, end, options } = this.offered;
    const added = options[place].text;
    const rest = this.input.value.slice(end).replace(/^ +/, added.endsWith(" ") ? "" : " ");
    this.input.value = this.input.value.slice(0, start) + added + rest;
    const caret = start + added.length;
    this.input.setSelectionRange(caret, caret);
    this.change(this.input.value);
    this.offer();
  }
}
