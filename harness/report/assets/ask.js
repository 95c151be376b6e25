// The answer page: the question, its chips, the architecture, and the table.
"use strict";

const ITSELF = "The architecture itself: whether anything is compiled for it";

/** The answer page. */
class AnswerPage {
  /** @param {AnswersData} data */
  constructor(data) {
    this.data = data;
    this.chosen = data.first;
    this.input = /** @type {HTMLInputElement} */ (dom.get("ask"));
    this.on = /** @type {HTMLSelectElement} */ (dom.get("on"));
    this.told = dom.get("told");
    this.table = /** @type {HTMLTableElement} */ (dom.get("answers"));
    const soon = timers.later(120, () => this.update());
    this.input.addEventListener("input", () => soon());
    this.on.addEventListener("change", () => this.choose(this.on.value));
    addEventListener("hashchange", () => this.read());
    dom.get("asking").hidden = false;
    this.read();
  }

  /** What the address asks for. */
  read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    this.input.value = parts.get("ask") || "";
    const on = parts.get("on") || this.data.first;
    this.chosen = this.data.targets.some(([target]) => target === on) ? on : this.data.first;
    this.update();
  }

  /** @param {string} target an architecture that was chosen, in the place of those of the question */
  choose(target) {
    for (const chip of this.chips().filter(({ kind }) => kind === "target")) this.mend(chip.text, target);
    this.chosen = target;
    this.update();
  }

  chips() {
    return question.parse(this.input.value, this.data.vocabulary);
  }

  /** @param {string} text what was typed @param {string} by what takes its place */
  mend(text, by) {
    const at = this.input.value.toLowerCase().replace(/\s+/g, " ").indexOf(text);
    const value = this.input.value.replace(/\s+/g, " ");
    if (at >= 0)
      this.input.value = `${value.slice(0, at)}${by}${value.slice(at + text.length)}`.replace(/\s+/g, " ").trim();
  }

  async update() {
    const chips = this.chips();
    const of = asking.asked(chips, this.data.vocabulary);
    const tried = of.targets.find((target) => this.data.targets.some(([known]) => known === target));
    // What a question names holds for that question alone.
    this.on.value = tried || this.chosen;
    const target = this.on.value;
    const hash = new URLSearchParams();
    if (this.input.value.trim()) hash.set("ask", this.input.value.trim());
    if (target !== this.data.first) hash.set("on", target);
    history.replaceState(null, "", hash.size ? `#${hash}` : location.pathname + location.search);
    timers.pending++;
    try {
      /** @type {OnTarget} */
      const part = await cumatrix.load(`answers-${target}`);
      if (target !== this.on.value) return;
      this.show(part, chips, of, target);
    } catch (error) {
      this.told.textContent = error instanceof Error ? error.message : String(error);
    } finally {
      timers.pending--;
    }
    document.documentElement.dataset.ready = "true";
  }

  /** @param {OnTarget} part @param {Chip[]} chips @param {Asked} of @param {string} target */
  show(part, chips, of, target) {
    // Of an architecture that nobody tried, another one tells nothing.
    const found = answering.find(this.data, part, of).filter(({ line }) => line[0] >= 0 || of.targets.includes(target));
    dom.get("shown-on").textContent = target;
    this.showChips(chips, target);
    this.say(found, chips, of, target);
    const used = new Set(found.flatMap(({ fields }) => [...fields.keys()]));
    const columns = this.data.columns.map((_, at) => at).filter((at) => used.has(at));
    const { h } = dom;
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "Feature"),
      columns.map((at) => h("th", { scope: "col" }, this.data.columns[at][1])),
    );
    let before = -2;
    const rows = found.map(({ line, fields }) => {
      const [feature, label] = line;
      const { title, page } = this.data.features[feature] || { title: ITSELF, page: "" };
      const first = feature !== before;
      const name = !first || !page ? h("span", { class: "v" }, title) : h("a", { href: `cases/${page}` }, title);
      before = feature;
      return h(
        "tr",
        { class: first && "first" },
        h("th", { scope: "row" }, name, label && h("small", { class: "variant" }, label)),
        columns.map((at) => this.field(fields.get(at), feature, at, target)),
      );
    });
    this.table.tHead?.replaceChildren(head);
    this.table.tBodies[0].replaceChildren(...rows);
  }

  /** @param {Verdict | undefined} verdict @param {number} feature @param {number} column @param {string} target */
  field(verdict, feature, column, target) {
    const { h } = dom;
    if (!verdict) return h("td");
    const [, , backend, axis] = this.data.columns[column];
    const host = this.data.vocabulary.hosts.includes(axis) ? ` host_compiler:${axis}-*` : "";
    const name = this.data.features[feature]?.case;
    const query = `${name ? `case:"${name}" ` : ""}backend:${backend}${host} target:${target}`;
    const proof =
      verdict.kind === "untried"
        ? verdict.text
        : h("a", { href: `matrix.html#q=${encodeURIComponent(query)}`, title: "The cells that show it" }, verdict.text);
    const yours = verdict.yours && h("small", { class: "yours" }, `yours: ${verdict.yours}`);
    return h("td", { class: `is-${verdict.kind}` }, proof, verdict.note && h("small", {}, verdict.note), yours);
  }

  /** @param {Chip[]} chips @param {string} target */
  showChips(chips, target) {
    const { h } = dom;
    const names = /** @type {Record<string, string>} */ ({
      target: "architecture",
      toolkit: "CUDA",
      tool: "tool",
      header: "library",
      host: "host compiler",
      word: "feature",
      unknown: "not known",
    });
    dom.get("chips").replaceChildren(
      ...chips.map((chip) => {
        const others =
          chip.kind === "target"
            ? chip.values.filter((value) => value !== target && this.data.targets.some(([known]) => known === value))
            : chip.near;
        const told = chip.kind === "target" && chip.name !== target ? `${chip.text}: ${target}` : chip.text;
        return h(
          "li",
          { class: `chip is-${chip.kind}` },
          h("small", {}, names[chip.kind]),
          ` ${told} `,
          others.map((other) =>
            h("button", { type: "button", class: "small", click: () => this.take(chip, other) }, other),
          ),
          h(
            "button",
            { type: "button", class: "small", "aria-label": `Without ${chip.text}`, click: () => this.take(chip, "") },
            "×",
          ),
        );
      }),
    );
  }

  /** @param {Chip} chip @param {string} by */
  take(chip, by) {
    const number = /^[\d.]+$/.test(by);
    const name = number ? chip.text.replace(/-?[<>=@v]*\d[\d.+x*]*$/, "").trim() : "";
    this.mend(chip.text, number && name ? `${name} ${by}` : by);
    this.update();
    this.input.focus();
  }

  /** @param {Found[]} found @param {Chip[]} chips @param {Asked} of @param {string} target */
  say(found, chips, of, target) {
    const unknown = chips.filter(({ kind }) => kind === "unknown");
    const missed =
      of.targets.length && !of.targets.includes(target)
        ? `Nobody tried ${of.targets.join(", ")}; this is ${target}. `
        : "";
    const odd = unknown
      .map(
        (chip) =>
          `Nothing is known as ${chip.text}${chip.near.length ? `; the nearest: ${chip.near.join(", ")}` : ""}. `,
      )
      .join("");
    if (!chips.length) {
      this.told.textContent = "";
      return;
    }
    const told = found.filter(({ fields }) =>
      [...fields.values()].some(({ kind }) => kind !== "untried" && kind !== "na"),
    );
    const none = found.length ? "Nobody tried that: " : "No feature is like that: ";
    const first = (found.length && this.data.features[found[0].line[0]]?.case) || "";
    const command = `${none}${asking.command(of, chips, this.data.vocabulary, target, first)}`;
    const features = new Set(found.map(({ line }) => line[0]).filter((place) => place >= 0)).size;
    const some = `${features} feature${features === 1 ? "" : "s"} on ${target}.`;
    this.told.textContent = `${odd}${missed}${told.length ? some : command}`;
  }
}

// Links of earlier reports name the matrix by this address.
if (/(^#|&)(q|cell|down|across|fold)=/.test(location.hash)) location.replace(`matrix.html${location.hash}`);
else
  addEventListener("DOMContentLoaded", async () => {
    new AnswerPage(await cumatrix.load("answers"));
  });
