// The intent of a question: an interpreter of the table in harness/answers/vocabulary.py,
// and causes of a pasted message.
"use strict";

/**
 * @typedef {object} Intent
 * @property {string} name
 * @property {string} pattern
 * @property {string[]} needs
 * @property {string[]} lacks
 * @property {string[]} words
 * @property {string} key
 * @property {boolean} decides whether the answer starts with a yes or no
 */
/** @typedef {{intent: string, decides: boolean, chips: Chip[], keys: string[]}} QuestionReading */
/** @typedef {[string, string, string, string[]]} ReplyRow case, kind, text, cells */
/** @typedef {{sentence: string, rows: ReplyRow[], sources: string[]}} Reply */
/**
 * @typedef {object} RepliesData
 * @property {[number, string, string, string[]][]} rows without duplicates: feature (or -1), kind, text, cells
 * @property {Record<string, [string, number[], string[]]>} replies sentence, rows, sources by key
 */
/**
 * A known cause: patterns of a missing header's name, of the message, of text that the message must not contain, and of
 * the rest of the log; then title, context, sentences, links, tools with this message, and the pattern of text that the
 * log must not contain.
 *
 * @typedef {[string, string, string, string, string, string, string[], string[], string[], string, string]} CauseData
 */
/** @typedef {{header: string, causes: CauseData[]}} CausesData */

const intents = (() => {
  const RELEASES = ["toolkit", "tool", "header", "host"];

  /** @param {Chip[]} chips @param {Vocabulary} known @returns {[string, string[]][]} */
  const releasesOf = (chips, known) =>
    chips
      .filter(({ kind, values }) => RELEASES.includes(kind) && values.length)
      .map(({ name, values }) => [Object.hasOwn(known.libraries, name) ? known.libraries[name] : name, values]);

  /** @param {string} target the digits of a compute capability; a target of another vendor keeps its name */
  const numberOf = (target) => (/^(sm|compute)_/.test(target) ? target.replace(/\D/g, "") : target);

  /** @param {Chip[]} chips @param {Vocabulary} known the kinds of names in a question, as in `needs` */
  const namedBy = (chips, known) => {
    const found = new Set(chips.map(({ kind }) => kind));
    if (releasesOf(chips, known).some(([name]) => name !== "cuda")) found.add("release");
    if (found.has("toolkit") && !found.has("target")) found.add("release");
    if (!found.has("word") && !found.has("unknown")) found.add("bare");
    if (question.narrowest(chips).length === 2) found.add("two");
    if (
      chips.some(
        ({ kind, name }) =>
          !["host", "word"].includes(kind) && known.tools[name]?.some((each) => Object.hasOwn(known.libraries, each)),
      )
    ) {
      found.add("library");
    }
    const own = chips.filter(({ kind }) => kind === "package");
    if (own.length && !own.some(({ name }) => Object.hasOwn(known.tools, name))) found.add("own");
    return found;
  };

  /**
   * @param {Intent} intent
   * @param {Chip[]} chips
   * @param {Record<string, string[]>} tried
   * @param {Vocabulary} known
   */
  const keysOf = ({ name, key }, chips, tried, known) => {
    const real = (/** @type {string} */ each) => each.replace("compute_", "sm_");
    const targets = [...new Set(question.narrowest(chips).map((chip) => real(chip.name)))];
    const releases = releasesOf(chips, known)
      .map(
        ([of, values]) => /** @type {[string, string[]]} */ ([of, values.filter((each) => tried[of]?.includes(each))]),
      )
      .filter(([, values]) => values.length);
    const last = releases.map(([of, values]) => `${of} ${values.at(-1)}`);
    /** @type {string[]} */
    let found = [];
    if (key === "target" || (["each", "target or none"].includes(key) && targets.length)) found = targets;
    else if (key === "target or none") found = ["every"];
    else if (key === "each") found = last;
    else if (key === "package") {
      const all = new Set(question.narrowest(chips).flatMap(({ values }) => values.map(numberOf)));
      if (all.has("110")) all.delete("101");
      const names = chips.filter(({ kind }) => kind === "package").map((chip) => [chip.name, ...chip.values].join("@"));
      found = all.size ? names.flatMap((each) => [...all].map((cc) => `${each} ${cc}`)) : names;
    } else if (key === "code") {
      const both = question.narrowest(chips);
      const plain = both.filter((chip) => /^(sm|compute)_/.test(chip.name));
      const code = plain.length === 1 ? plain[0] : both[0];
      const numbers = new Set(both.filter((chip) => chip !== code).flatMap(({ values }) => values.map(numberOf)));
      found = [...new Set(code.values.map(real))].flatMap((each) => [...numbers].map((cc) => `${each} ${cc}`));
    } else if (key === "host") {
      const [own] = chips.filter(({ kind, values }) => kind === "host" && values.length);
      const cuda = releases.filter(([of]) => of === "cuda").map(([, values]) => values.at(-1));
      if (own) found = [[own.name, own.values.at(-1), ...cuda.slice(0, 1)].join(" ")];
    } else if (key === "pair" && releases.length) {
      found = targets.map((target) => `${target} ${releases[0][1][0]} ${releases[0][1].at(-1)}`);
    } else if (key === "vendor") {
      const backends = new Set(chips.flatMap(({ kind, name: tool }) => (kind !== "word" && known.tools[tool]) || []));
      const of = question.narrowest(chips);
      found = Object.entries(known.builders)
        .filter(([start]) => of.length && of.every(({ values: [first] }) => first.startsWith(start)))
        .filter(([, names]) => !names.some((each) => backends.has(each)))
        .flatMap(([start]) => [...backends].slice(0, 1).map((backend) => `${backend} ${start}`));
    } else if (key === "combination") {
      const names = new Set(
        chips.flatMap(({ name: tool }) => (known.tools[tool] ?? []).flatMap((each) => known.libraries[each] ?? [])),
      );
      const own = new Map(releases);
      const cuda = own.get("cuda");
      const asked = chips.some(({ kind, values }) => kind === "tool" && values.length);
      const [of] = names;
      const release = asked ? own.get(of)?.at(-1) : "*";
      if (names.size === 1 && cuda && release && tried[of]) found = [`${of} ${release} ${cuda[0]} ${cuda.at(-1)}`];
    } else if (key.startsWith("change") && releases.length) {
      const [[of, values]] = releases;
      const both = releases
        .filter(([each]) => each === of)
        .map(([, each]) => each.at(-1) ?? "")
        .slice(0, 2);
      const place = (/** @type {string} */ each) => tried[of].indexOf(each);
      if (key !== "change") both.sort((a, b) => (key === "change down" ? place(b) - place(a) : place(a) - place(b)));
      found = [both.length > 1 ? `${of} ${both.join(" ")}` : `${of} ${values[0]}`];
    } else if (key === "release") found = last.slice(0, 1);
    return found.map((each) => `${name} ${each}`);
  };

  /**
   * Read a question.
   *
   * @param {string} text
   * @param {Chip[]} chips
   * @param {{intents: Intent[], releases: Record<string, string[]>, vocabulary: Vocabulary}} data
   * @returns {QuestionReading}
   */
  const read = (text, chips, { intents: table, releases, vocabulary }) => {
    const lower = text
      .toLowerCase()
      .trim()
      .replace(/\s+/g, " ")
      .replace(/[?!. ]+$/, "");
    const packaged = question.withPackages(text, vocabulary);
    for (const intent of table) {
      if (!new RegExp(intent.pattern).test(lower)) continue;
      // A size in a question about limits is not a feature, nor is a number in a question about drivers.
      const sizes = intent.key === "target or none" || intent.name === "driver";
      const left = (intent.key === "package" ? packaged : chips).filter(
        ({ kind, name, text: word }) =>
          !(
            ["word", "unknown"].includes(kind) &&
            (intent.words.includes(word) || (sizes && (/^\d+$/.test(name) || /^[\d.]+$/.test(word))))
          ),
      );
      const named = namedBy(left, vocabulary);
      if (!intent.needs.every((need) => named.has(need)) || intent.lacks.some((each) => named.has(each))) continue;
      const keys = keysOf(intent, left, releases, vocabulary);
      if (keys.length || !intent.key) return { intent: intent.name, decides: intent.decides, chips: left, keys };
    }
    return { intent: "feature", decides: true, chips, keys: [] };
  };

  const LEAD = /^(Yes|No|In part|No fault is known)\. /;

  /**
   * One reply that combines the replies of some keys, or none without any.
   *
   * @param {string[]} keys
   * @param {RepliesData} data
   * @param {Feature[]} features
   * @param {boolean} decides whether a yes or no leads the answer
   * @returns {Reply | undefined}
   */
  const reply = (keys, data, features, decides) => {
    const found = keys.filter((key) => Object.hasOwn(data.replies, key)).map((key) => data.replies[key]);
    if (!found.length) return undefined;
    const rows = [...new Set(found.flatMap(([, places]) => places))].map((place) => {
      const [feature, kind, text, cells] = data.rows[place];
      return /** @type {ReplyRow} */ ([features[feature]?.case || "", kind, text, cells]);
    });
    const sentences = found.map(([each]) => (decides ? each : each.replace(LEAD, "")));
    const sentence = [...new Set(sentences)].join(" ");
    return { sentence, rows, sources: [...new Set(found.flatMap(([, , sources]) => sources))] };
  };

  const FLAGS = /\(\?([ims]+)\)/g;

  /** @param {string} pattern of RE2, whose inline flags here apply to the whole pattern */
  const regexp = (pattern) => {
    const flags = new Set([...pattern.matchAll(FLAGS)].flatMap(([, letters]) => [...letters]));
    return new RegExp(pattern.replace(FLAGS, ""), [...flags].join(""));
  };

  /**
   * The known cause of a pasted message, from its first line with one. A cause that depends on the cell is no answer.
   *
   * @param {string} text
   * @param {CausesData} data
   * @returns {Reply | undefined}
   */
  const cause = (text, { header, causes }) => {
    for (const line of text.split("\n")) {
      const missing = Object.values(new RegExp(header).exec(line)?.groups ?? {}).find(Boolean) ?? "";
      // The message, without the leading location and the word error.
      const message = line.replace(/^.{0,300}?\berror ?(?:#[-\w]+)?: /, "");
      const has = (/** @type {string} */ pattern) => regexp(pattern).test(message) || regexp(pattern).test(line);
      const fits = causes.filter(
        ([name, pattern, unless, near, , , , , , against, shown]) =>
          (!name || (missing && regexp(name).test(missing))) &&
          (!pattern || has(pattern)) &&
          !(unless && has(unless)) &&
          !(near && !regexp(near).test(text)) &&
          !(against && regexp(against).test(text)) &&
          (!shown || regexp(shown).test(text)),
      );
      const found = fits.find(([, , , , , where]) => !where);
      if (!found) continue;
      // If several tools share a message, the text has to name the tool.
      const speakers = fits[0][8];
      if (speakers.length && !speakers.some((tool) => tool && text.toLowerCase().includes(tool))) return undefined;
      const [, , , , title, , sentences, links] = found;
      const rows = sentences.map((each) => /** @type {ReplyRow} */ (["", "", each, []]));
      return { sentence: `${title}.`, rows, sources: links };
    }
    return undefined;
  };

  return { read, reply, cause };
})();
