// Small parts of the panel, made from texts of a record.
"use strict";

const facts = (() => {
  const { h } = dom;

  /**
   * A part of the panel with a heading.
   *
   * @param {string} title
   * @param {Child[]} content
   */
  const section = (title, ...content) => h("section", {}, h("h3", {}, title), content);

  /**
   * A text in its printed form.
   *
   * @param {string} printed
   * @param {string} label
   */
  const code = (printed, label) => h("pre", { tabindex: "0", role: "region", "aria-label": label }, printed);

  /**
   * A list of names and values, without empty values.
   *
   * @param {[string, Child][]} pairs
   */
  const list = (pairs) => {
    const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return h(
      "dl",
      {},
      shown.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    );
  };

  /**
   * A table with its own scrollbar.
   *
   * @param {string} label
   * @param {string[]} heads
   * @param {Child[][]} lines each with its heading first
   * @param {string} style
   */
  const table = (label, heads, lines, style = "") => {
    const head = h(
      "tr",
      {},
      heads.map((name) => h("th", { scope: "col" }, name)),
    );
    const body = lines.map(([first, ...rest]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, first),
        rest.map((value) => h("td", {}, value)),
      ),
    );
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
      h("table", { class: `list ${style}`.trim() }, h("thead", {}, head), h("tbody", {}, body)),
    );
  };

  /**
   * Copy a text to the clipboard.
   *
   * @param {string} copied
   */
  const copy = async (copied) => {
    try {
      await navigator.clipboard.writeText(copied);
      return true;
    } catch {
      // A page from disk may have no clipboard. The older API needs no permission.
      const area = h("textarea", { class: "v" }, copied);
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };

  /**
   * A button that copies a text and confirms it.
   *
   * @param {string} label
   * @param {() => string} copied
   */
  const copier = (label, copied) => {
    const button = h("button", { type: "button", class: "small" }, label);
    button.addEventListener("click", async () => {
      button.textContent = (await copy(copied())) ? "Copied" : "Not allowed here";
      setTimeout(() => (button.textContent = label), 1500);
    });
    return button;
  };

  /**
   * The lines around a place in a source, with the diagnostic below its line.
   *
   * @param {Record<string, string>} files
   * @param {CellRecord} item a diagnostic
   */
  const excerpt = (files, item) => {
    const file = item.file || "";
    const name = Object.hasOwn(files, file) ? file : file.split("/").at(-1);
    if (!Object.hasOwn(files, name) || !item.line) return null;
    const lines = files[name].split("\n");
    if (item.line > lines.length) return null;
    const body = [];
    for (let number = Math.max(1, item.line - 3); number <= Math.min(lines.length, item.line + 3); number++) {
      const here = number === item.line;
      const before = h("span", { class: "number" }, `${here ? "▶" : " "}${String(number).padStart(4)} `);
      body.push(h("span", { class: here ? "line here" : "line" }, before, lines[number - 1], "\n"));
      if (here) body.push(h("span", { class: "message" }, `      ${item.severity}: ${item.message}\n`));
    }
    return h(
      "figure",
      { class: "excerpt" },
      h("figcaption", {}, `${name}, line ${item.line}`),
      h("pre", { tabindex: "0", role: "region", "aria-label": `${name} around line ${item.line}` }, body),
    );
  };

  return { section, code, list, table, copier, excerpt };
})();
