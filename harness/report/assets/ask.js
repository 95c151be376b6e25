// The answer page: the question, its chips, the architecture, and the table.
"use strict";

/** @typedef {{part: OnTarget, target: string, put: Requested}} Nearest a question as put, and its results */

const ITSELF = "The architecture itself: whether anything is compiled for it";

/** @param {Feature} feature @returns {string} its page; the data has unusual names only */
const pageOf = ({ case: name, page }) => page || `${name.replaceAll("/", "-")}.html`;

/** The answer page. */
class AnswerPage {
  /** @param {AnswersData} data */
  constructor(data) {
    this.data = data;
    question.addNames(data);
    this.chosen = data.first;
    this.input = /** @type {HTMLInputElement} */ (dom.get("ask"));
    this.on = /** @type {HTMLSelectElement} */ (dom.get("on"));
    this.sentence = dom.get("sentence");
    this.table = /** @type {HTMLTableElement} */ (dom.get("answers"));
    /** @type {Set<string>} open topics on a narrow screen, where topics are initially closed */
    this.open = new Set();
    /** @type {Set<string>} features with all variants visible */
    this.varied = new Set();
    const soon = timers.later(120, () => this.update());
    this.input.addEventListener("input", () => soon());
    this.on.addEventListener("change", () => this.choose(this.on.value));
    addEventListener("hashchange", () => this.read());
    dom.narrow.addEventListener("change", () => this.update());
    dom.get("asking").hidden = false;
    this.read();
  }

  /** Read the request in the address. */
  read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    this.input.value = parts.get("ask") || "";
    const on = parts.get("on") || this.data.first;
    this.chosen = this.data.targets.some(([target]) => target === on) ? on : this.data.first;
    this.update();
  }

  /** @param {string} target a chosen architecture that replaces the question's ones */
  choose(target) {
    for (const chip of this.chips().filter(({ kind }) => kind === "target")) this.replaceChip(chip.text, target);
    this.chosen = target;
    this.update();
  }

  chips() {
    return question.parse(this.input.value, this.data.vocabulary);
  }

  /** @param {string} text to replace @param {string} by its replacement */
  replaceChip(text, by) {
    const at = this.input.value.toLowerCase().replace(/\s+/g, " ").indexOf(text);
    const value = this.input.value.replace(/\s+/g, " ");
    if (at >= 0)
      this.input.value = `${value.slice(0, at)}${by}${value.slice(at + text.length)}`.replace(/\s+/g, " ").trim();
  }

  async update() {
    const text = this.input.value;
    const typed = this.chips();
    const { intent, decides, chips, keys } = intents.read(text, typed, this.data);
    const of = requests.read(chips, this.data.vocabulary);
    // Compilers name compute_120 even if they mean sm_120.
    const known = (/** @type {string} */ each) => this.data.targets.some(([target]) => target === each);
    const real = (/** @type {string} */ each) => each.replace("compute_", "sm_");
    of.targets = of.targets.map((each) => (!known(each) && known(real(each)) ? real(each) : each));
    const tried = of.targets.find(known);
    // Names in a question apply to that question only.
    this.on.value = tried || this.chosen;
    const target = this.on.value;
    const hash = new URLSearchParams();
    if (this.input.value.trim()) hash.set("ask", this.input.value.trim());
    if (target !== this.data.first) hash.set("on", target);
    history.replaceState(null, "", hash.size ? `#${hash}` : location.pathname + location.search);
    timers.pending++;
    try {
      const reply = await this.reply(text, intent, keys, decides);
      if (this.input.value !== text) return;
      if (reply) {
        this.showChips(intent === "runs" ? chips : typed, of.targets[0] ?? target);
        this.showReply(reply);
        document.documentElement.dataset.ready = "true";
        return;
      }
      const nearest = await this.nearest(chips, of, target);
      if (target !== this.on.value || this.input.value !== text) return;
      if (of.targets.includes(nearest.target)) this.on.value = nearest.target;
      this.show(nearest, chips, of, intent, decides);
    } catch (error) {
      this.sentence.textContent = error instanceof Error ? error.message : String(error);
    } finally {
      timers.pending--;
    }
    document.documentElement.dataset.ready = "true";
  }

  /**
   * The reply to a question about releases, architectures, limits or messages.
   *
   * @param {string} text
   * @param {string} intent
   * @param {string[]} keys
   * @param {boolean} decides
   * @returns {Promise<Reply | undefined>}
   */
  async reply(text, intent, keys, decides) {
    if (intent === "why") return intents.cause(text, await cumatrix.load("causes"));
    if (!keys.length) return undefined;
    const runs = intent === "runs";
    const found = intents.reply(keys, await cumatrix.load(runs ? "gpus" : "replies"), this.data.features, decides);
    // The page has the newest release of each package.
    return found || !runs ? found : { sentence: `Not here: cumatrix ask "${text}"`, rows: [], sources: [] };
  }

  /** @param {Reply} reply */
  showReply({ sentence, rows, sources }) {
    const { h } = dom;
    this.caption(false);
    this.overview(false);
    this.sentence.textContent = sentence;
    const titles = new Map(this.data.features.map((feature) => [feature.case, feature]));
    let before = "";
    const lines = rows.map(([name, kind, text, cells]) => {
      const feature = titles.get(name);
      const heading = feature && name !== before && h("a", { href: `cases/${pageOf(feature)}` }, feature.title);
      before = name;
      return h(
        "tr",
        { class: heading && "first" },
        h("th", { scope: "row" }, heading),
        h("td", { class: kind && `is-${kind}` }, text, cells.length > 0 && h("small", {}, cells.join(" · "))),
      );
    });
    const pages = sources.map((source) =>
      h("tr", {}, h("th", { scope: "row" }, "Source"), h("td", {}, h("a", { href: source }, source))),
    );
    this.table.tHead?.replaceChildren(
      h("tr", {}, h("th", { scope: "col" }, "Feature"), h("th", { scope: "col" }, "Evidence")),
    );
    this.table.tBodies[0].replaceChildren(...lines, ...pages);
  }

  /** @param {boolean} shown whether there is no question: breakage and news, and one row per feature */
  overview(shown) {
    this.table.classList.toggle("brief", shown);
    const now = document.getElementById("now");
    if (!now) return;
    now.hidden = !shown;
    // Narrow screens show the answers first.
    const place = dom.narrow.matches ? this.table.parentElement : this.sentence;
    if (place?.nextElementSibling !== now) place?.after(now);
  }

  /** @param {boolean} shown whether the table is about one architecture, as its caption says */
  caption(shown) {
    if (this.table.caption) this.table.caption.hidden = !shown;
  }

  /**
   * The results on an architecture, if the best feature has an answer there. Else, for a question without an
   * architecture, the results on the first one with an answer, else the results with other tools and CUDA releases than
   * the question names.
   *
   * @param {Chip[]} chips
   * @param {Requested} of
   * @param {string} target
   * @returns {Promise<Nearest>}
   */
  async nearest(chips, of, target) {
    /** @type {OnTarget} */
    const part = await cumatrix.load(`answers-${target}`);
    const here = await this.best({ part, target, put: of });
    const tells = (/** @type {OnTarget} */ its, put = of) =>
      answering.tells(this.data, its, put) && (put.targets.length || !answering.isElsewhere(this.data, its, put));
    if (!chips.length || tells(part)) return here;
    const known = this.data.targets.map(([each]) => each);
    const found = answering.find(this.data, part, of).length > 0;
    for (const other of found ? [] : of.targets.filter((each) => each !== target && known.includes(each))) {
      /** @type {OnTarget} */
      const its = await cumatrix.load(`answers-${other}`);
      if (answering.tells(this.data, its, of)) return { part: its, target: other, put: of };
    }
    const others = of.targets.length ? [] : this.data.targets.filter(([each]) => each !== target);
    // If a tool has the feature, but these versions are untried, that is the answer.
    const none = of.words.length && of.tools && !answering.find(this.data, part, of).length;
    const wider = none ? [{ ...of, tools: null, toolkits: null }] : [];
    for (const put of [of, ...wider]) {
      if (put !== of && answering.tells(this.data, part, put)) return { ...here, put };
      for (const [other] of others) {
        /** @type {OnTarget} */
        const its = await cumatrix.load(`answers-${other}`);
        if (tells(its, put)) return { part: its, target: other, put };
      }
    }
    return here;
  }

  /**
   * The target of a GPU for which most tools build the first feature: an H100 runs sm_90 and sm_90a.
   *
   * @param {Nearest} first
   * @returns {Promise<Nearest>}
   */
  async best(first) {
    const builds = (/** @type {Nearest} */ { part, put }) => {
      const [found] = answering.find(this.data, part, put);
      return found
        ? [...found.fields.values()].filter(({ kind }) => this.data.kinds[kind].sense === "works").length
        : 0;
    };
    let [best, most] = [first, builds(first)];
    const number = (/** @type {string} */ target) => target.replace(/[af]$/, "");
    for (const target of first.put.targets) {
      const same = target !== first.target && number(target) === number(first.target);
      if (!same || !this.data.targets.some(([known]) => known === target)) continue;
      /** @type {OnTarget} */
      const part = await cumatrix.load(`answers-${target}`);
      const other = { part, target, put: first.put };
      if (builds(other) > most) [best, most] = [other, builds(other)];
    }
    return best;
  }

  /**
   * @param {Nearest} nearest
   * @param {Chip[]} chips
   * @param {Requested} of
   * @param {string} intent
   * @param {boolean} decides
   */
  show({ part, target, put }, chips, of, intent, decides) {
    // Of an untried architecture, another one tells nothing.
    const all = answering.find(this.data, part, put).filter(({ line }) => line[0] >= 0 || of.targets.includes(target));
    const unknown = chips.filter(({ kind }) => kind === "unknown").map((chip) => chip.text);
    const missing = [...unknown, ...answering.lacking(this.data, put)];
    if (missing.length) {
      dom.get("shown-on").textContent = target;
      this.showChips(chips, target);
      this.showUnknown(missing, all, chips);
      return;
    }
    const found =
      intent === "fails"
        ? answering.failing(
            this.data,
            all.filter(({ line }) => line[0] >= 0),
          )
        : all;
    dom.get("shown-on").textContent = target;
    this.caption(true);
    this.showChips(chips, target);
    this.say(found, chips, of, target, put !== of, intent === "fails" ? all : found, intent, decides);
    const columns = tools.columnsOf(this.data, found, Boolean(of.headers.size || of.hosts.size));
    const { h } = dom;
    const head = h(
      "tr",
      {},
      h("th", { scope: "col" }, "Feature"),
      columns.map(({ heading }) => h("th", { scope: "col" }, heading)),
    );
    const overview = !chips.length;
    this.overview(overview);
    const rank = (/** @type {Found} */ { line }) => this.data.features[line[0]]?.rank ?? -1;
    const shown = overview ? [...found].sort((one, other) => rank(one) - rank(other)) : found;
    let before = -2;
    /** @type {Map<string, RowGroup>} */
    const topics = new Map();
    /** @type {Map<string, HTMLTableRowElement[]>} rows of each feature */
    const features = new Map();
    const rows = shown.flatMap(({ line, fields }) => {
      const [feature, label] = line;
      const found = this.data.features[feature];
      const [title, page] = found ? [found.title, pageOf(found)] : [ITSELF, ""];
      const first = feature !== before;
      const link = page ? h("a", { href: `cases/${page}` }, title) : title;
      const name = first ? link : h("span", { class: "v" }, title);
      before = feature;
      const row = h(
        "tr",
        { class: first && "first" },
        h("th", { scope: "row" }, name, label && h("small", {}, label)),
        columns.map((column) => this.field(fields, feature, target, column)),
      );
      if (overview && page) features.set(page, [...(features.get(page) || []), row]);
      const its = this.data.features[feature]?.topic;
      if (!overview || !its) return [row];
      const topic = topics.get(its);
      topic?.rows.push(row);
      if (topic) return [row];
      const made = dom.rowGroup(its, columns.length + 1, this.open);
      topics.set(its, made);
      made.rows.push(row);
      return [made.row, row];
    });
    for (const { fold } of topics.values()) fold();
    for (const [page, [head, ...more]] of features)
      if (more.length) head.cells[0].append(dom.further(page, more, this.varied));
    this.table.tHead?.replaceChildren(head);
    this.table.tBodies[0].replaceChildren(...rows);
  }

  /**
   * A sentence that no case has some words, with links to cases with the other words, but no statement about those.
   *
   * @param {string[]} words
   * @param {Found[]} closest
   * @param {Chip[]} chips
   */
  showUnknown(words, closest, chips) {
    const { h } = dom;
    this.caption(false);
    this.overview(false);
    const strange = chips.filter(({ kind, name }) => kind === "unknown" && name !== "word");
    const near = chips
      .filter((chip) => chip.kind === "unknown" && !strange.includes(chip))
      .flatMap((chip) => chip.near);
    const absent = words.filter((word) => !strange.some(({ text }) => text === word));
    this.sentence.textContent = [
      absent.length && `Not known: no case has ${absent.join(" and ")}.`,
      near.length && `Did you mean ${near.join(" or ")}?`,
      ...strange.map(({ text, near: known }) =>
        known.length
          ? `Nothing is known as ${text}; the nearest: ${known.join(", ")}.`
          : `Nothing is known as ${text}.`,
      ),
    ]
      .filter(Boolean)
      .join(" ");
    const named = chips.some(({ kind }) => kind === "word");
    const cases = new Set(named ? closest.map(({ line }) => line[0]).filter((place) => place >= 0) : []);
    const rows = [...cases].slice(0, 5).map((place) => {
      const { title, page } = this.data.features[place];
      return h("tr", {}, h("th", { scope: "row" }, h("a", { href: `cases/${page}` }, title)));
    });
    this.table.tHead?.replaceChildren(h("tr", {}, rows.length > 0 && h("th", { scope: "col" }, "Closest cases")));
    this.table.tBodies[0].replaceChildren(...rows);
  }

  /**
   * @param {Map<number, Verdict>} fields
   * @param {number} feature
   * @param {string} target
   * @param {ToolColumn} column
   */
  field(fields, feature, target, { heading, places, named }) {
    const { h } = dom;
    const shown = places.filter((at) => fields.has(at));
    const first = fields.get(shown[0]);
    if (!first) return h("td");
    const parts = shown.map((at, number) => {
      const verdict = /** @type {Verdict} */ (fields.get(at));
      const proof = this.proof(verdict, feature, at, target);
      const name = named.has(at) && h("small", {}, this.data.columns[at][1]);
      const note = verdict.note && h("small", { class: "fine" }, verdict.note);
      const yours = verdict.yours && h("small", { class: "yours" }, `yours: ${verdict.yours}`);
      const content = [proof, name, note, yours];
      return number ? h("div", { class: `further is-${verdict.kind}` }, ...content) : content;
    });
    return h("td", { class: `is-${first.kind}`, "data-tool": heading }, ...parts);
  }

  /** @param {Verdict} verdict @param {number} feature @param {number} column @param {string} target */
  proof(verdict, feature, column, target) {
    const { h } = dom;
    if (verdict.kind === "untried") return verdict.text;
    const [, , backend, axis] = this.data.columns[column];
    const host = this.data.vocabulary.hosts.includes(axis) ? ` and "${axis}-" in host_compiler` : "";
    const name = this.data.features[feature]?.case;
    const query = `${name ? `case == "${name}" and ` : ""}backend == "${backend}"${host} and target == "${target}"`;
    const href = `matrix.html#q=${encodeURIComponent(query)}`;
    return h("a", { href, title: "The cells that show it" }, verdict.text);
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
      package: "package",
      unknown: "not known",
    });
    dom.get("chips").replaceChildren(
      ...chips.map((chip) => {
        const others =
          chip.kind === "target"
            ? chip.values.filter((value) => value !== target && this.data.targets.some(([known]) => known === value))
            : chip.near;
        const label = chip.kind === "target" && chip.name !== target ? `${chip.text}: ${target}` : chip.text;
        return h(
          "li",
          { class: `chip is-${chip.kind}` },
          h("small", {}, names[chip.kind]),
          ` ${label} `,
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
    this.replaceChip(chip.text, number && name ? `${name} ${by}` : by);
    this.update();
    this.input.focus();
  }

  /**
   * @param {Found[]} found
   * @param {Chip[]} chips
   * @param {Requested} of
   * @param {string} target
   * @param {boolean} widely whether the request ignores the question's tools and CUDA releases
   * @param {Found[]} all the results before the selection of failures
   * @param {string} intent
   * @param {boolean} decides
   */
  say(found, chips, of, target, widely, all, intent, decides) {
    const missed =
      of.targets.length && !of.targets.includes(target)
        ? `Not tried on ${of.targets.join(", ")}; this is ${target}. `
        : "";
    const used = chips.filter(({ kind }) => kind === "tool" || kind === "toolkit").map((chip) => chip.text);
    const others = widely ? `Not tried with ${used.join(" and ")}; this is what is known of others. ` : "";
    const elsewhere =
      !widely && !of.targets.length && target !== this.on.value
        ? `Not tried on ${this.on.value}; this is ${target}. `
        : others;
    if (!chips.length) {
      this.sentence.textContent = "";
      return;
    }
    const answered = found.filter(({ fields }) =>
      [...fields.values()].some((each) => !answering.isSilent(this.data, each)),
    );
    const none = `Not tried on ${target}: `;
    const first = (found.length && this.data.features[found[0].line[0]]?.case) || "";
    const command = `${none}${requests.command(of, chips, this.data.vocabulary, target, first)}`;
    const count = (/** @type {Found[]} */ some) =>
      new Set(some.map(({ line }) => line[0]).filter((place) => place >= 0)).size;
    const features = count(found);
    if (all !== found) {
      const answered = all.filter(({ fields }) =>
        [...fields.values()].some((each) => !answering.isSilent(this.data, each)),
      );
      if (widely || !answered.length) {
        this.sentence.textContent = `${missed}${command}`;
        return;
      }
      const using = used.length ? ` with ${used.join(" and ")}` : "";
      const cases = `${features} of ${count(answered)} cases tried on ${target}${using}`;
      this.sentence.textContent = `${missed}${cases} have a form that does not build.`;
      return;
    }
    const some = features
      ? `${features} feature${features === 1 ? "" : "s"} on ${target}.`
      : `Nothing but the architecture itself was tried on ${target}.`;
    const itself = answered.length > 0 && answered[0].line[0] < 0;
    const sentence = of.words.length || itself ? answering.sentence(this.data, answered, intent, decides) : "";
    const lead = sentence && !of.targets.length ? `On ${target}: ${sentence}` : sentence;
    this.sentence.textContent = `${missed}${elsewhere}${lead}${answered.length ? some : command}`;
  }
}

// Links of earlier reports use this address for the matrix.
if (/(^#|&)(q|cell|down|across|fold)=/.test(location.hash)) location.replace(`matrix.html${location.hash}`);
else
  addEventListener("DOMContentLoaded", async () => {
    new AnswerPage(await cumatrix.load("answers"));
  });
