// Answers to a question: the lines that it finds, and what is known of each. The same as harness/answers/answer.py.
"use strict";

/** @typedef {{kind: string, text: string, note: string, yours?: string}} Verdict yours: what own cells alone say */
/** @typedef {[string[], string[], string]} VersionGrid versions, CUDA releases, and a letter for each pair */
/** @typedef {[string[], string[], string[]]} Words of the name, of title and features, of causes */
/** @typedef {{case: string, title: string, topic: string, page: string, words: Words}} Feature */
/**
 * @typedef {object} AnswersData
 * @property {Vocabulary} vocabulary
 * @property {[string, string][]} targets with the name of their architecture
 * @property {string} first the target that is shown at first
 * @property {[string, string, string, string][]} columns key, heading, backend, header library
 * @property {Feature[]} features
 */
/** @typedef {[number, number, number, number?][]} Fields column, verdict, grid, and the verdict of own cells alone */
/** @typedef {[number, string, string[], Fields]} FeatureLine feature, label, words */
/** @typedef {{verdicts: [string, string, string][], grids: VersionGrid[], lines: FeatureLine[]}} OnTarget */
/**
 * @typedef {object} Asked
 * @property {string[]} targets
 * @property {string[] | null} toolkits
 * @property {Map<string, string[] | null> | null} tools versions by backend, null for all
 * @property {Map<string, string[]>} headers
 * @property {string[]} words
 */
/** @typedef {{line: FeatureLine, fields: Map<number, Verdict>}} Found */

const answering = (() => {
  const SILENT = "nu.";

  /** @param {string} letters @returns {Verdict} */
  const silent = (letters) => {
    if (letters.includes("u")) return { kind: "untried", text: "not available", note: "" };
    const text = letters.includes("n") ? "not applicable" : "not tried";
    return { kind: letters.includes("n") ? "na" : "untried", text, note: "" };
  };

  /**
   * What is known of some of the versions.
   *
   * @param {VersionGrid} grid
   * @param {string[] | null} libraries
   * @param {string[] | null} toolkits
   * @returns {Verdict}
   */
  const picked = ([versions, releases, letters], libraries, toolkits) => {
    const found = versions
      .flatMap((library, row) =>
        releases.map((toolkit, at) => ({ of: [library, toolkit], letter: letters[row * releases.length + at] })),
      )
      .filter(({ of }) => (!libraries || libraries.includes(of[0])) && (!toolkits || toolkits.includes(of[1])));
    const told = found.filter(({ letter }) => !SILENT.includes(letter));
    if (!told.length) return silent(found.map(({ letter }) => letter).join(""));
    const works = told.filter(({ letter }) => letter === "w");
    if (works.length === told.length) return { kind: "works", text: "works", note: "" };
    if (!works.length) {
      const fault = told.every(({ letter }) => letter === "k");
      return { kind: fault ? "fault" : "never", text: `does not work${fault ? ": a known fault" : ""}`, note: "" };
    }
    for (const [place, prefix] of /** @type {[number, string][]} */ ([
      [0, ""],
      [1, "CUDA "],
    ])) {
      const [good, bad] = [true, false].map((wanted) => [
        ...new Set(told.filter(({ letter }) => (letter === "w") === wanted).map(({ of }) => of[place])),
      ]);
      if (!good.some((name) => bad.includes(name))) {
        return {
          kind: "part",
          text: `works with ${prefix}${good.join(", ")}; not with ${prefix}${bad.join(", ")}`,
          note: "",
        };
      }
    }
    return { kind: "part", text: `works in ${works.length} of ${told.length} combinations`, note: "" };
  };

  /**
   * What a question asks for.
   *
   * @param {Chip[]} chips
   * @param {Vocabulary} known
   * @returns {Asked}
   */
  const asked = (chips, known) => {
    const values = (/** @type {string} */ kind) => [
      ...new Set(chips.filter((chip) => chip.kind === kind).flatMap((chip) => chip.values)),
    ];
    /** @type {Map<string, string[] | null>} */
    const tools = new Map();
    for (const chip of chips.filter(({ kind }) => kind === "tool")) {
      for (const backend of known.tools[chip.name]) {
        const versions = [...(tools.get(backend) || []), ...chip.values];
        tools.set(backend, versions.length ? versions : null);
      }
    }
    const toolkits = values("toolkit");
    return {
      targets: values("target"),
      toolkits: toolkits.length ? toolkits : null,
      tools: tools.size ? tools : null,
      headers: new Map(chips.filter(({ kind }) => kind === "header").map((chip) => [chip.name, chip.values])),
      words: [...new Set(chips.filter(({ kind }) => kind === "word" || kind === "header").map(({ name }) => name))],
    };
  };

  /**
   * The lines that a question finds, best first, with what is known of each field.
   *
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {Asked} of
   * @returns {Found[]}
   */
  const find = (data, part, of) => {
    const { synonyms } = data.vocabulary;
    const withHeader = part.lines.filter(([, , , fields]) =>
      fields.some(([column]) => of.headers.has(data.columns[column][3])),
    );
    const lines = withHeader.length ? withHeader : part.lines;
    const words = withHeader.length ? of.words.filter((word) => !of.headers.has(word)) : of.words;
    const scored = lines.map((line, at) => ({
      line,
      at,
      ...question.score(words, [...data.features[line[0]].words, line[2]], synonyms),
      own: words.filter((word) => line[2].some((each) => question.says(word, each, synonyms))).length,
    }));
    const least = Math.min(...scored.map(({ missing }) => missing));
    const good = scored.filter(({ missing }) => missing === least && (missing < words.length || !words.length));
    /** @type {Map<number, number>} */
    const most = new Map();
    for (const { line, own } of good) most.set(line[0], Math.max(most.get(line[0]) || 0, own));
    const some = Boolean(of.toolkits || of.tools || of.headers.size);
    return good
      .filter(({ line, own }) => own === most.get(line[0]))
      .sort((a, b) => b.total - a.total || a.at - b.at)
      .map(({ line }) => ({ line, fields: fieldsOf(data, part, line, of, some) }))
      .filter(({ fields }) => fields.size);
  };

  /**
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {FeatureLine} line
   * @param {Asked} of
   * @param {boolean} some whether only some versions may be asked for
   */
  const fieldsOf = (data, part, line, of, some) => {
    /** @type {Map<number, Verdict>} */
    const found = new Map();
    for (const [column, verdict, grid, mine] of line[3]) {
      const [, , backend, header] = data.columns[column];
      if (of.tools && !of.tools.has(backend)) continue;
      const [kind, text, note] = part.verdicts[verdict];
      const yours = mine === undefined ? "" : part.verdicts[mine][1];
      const versions = header ? of.headers.get(header) || [] : (of.tools?.get(backend) ?? []);
      if (!some || !(versions.length || of.toolkits)) {
        found.set(column, { kind, text, note, yours });
        continue;
      }
      const own = picked(part.grids[grid], versions.length ? versions : null, of.toolkits);
      const silentOne = kind === "na" || kind === "untried";
      const overall =
        silentOne || text === own.text || (text === "never" && own.kind !== "untried")
          ? ""
          : `with other versions: ${text}`;
      found.set(column, { ...own, note: [overall, note].filter(Boolean).join("; "), yours });
    }
    return found;
  };

  return { asked, find, picked };
})();
