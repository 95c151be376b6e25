// Answers to a question: the matching rows and their findings. The same algorithm as harness/answers/answer.py.
"use strict";

/**
 * `yours` is the verdict on own cells alone; `other` is whether other versions have another outcome.
 *
 * @typedef {{kind: string, text: string, note: string, yours?: string, other?: boolean}} Verdict
 */
/** @typedef {[string[], string[], string]} VersionGrid versions, CUDA releases, and a letter for each pair */
/**
 * The meaning of cells, and kinds of answers, from harness/matrix/marks.py.
 *
 * @typedef {Record<string, {letter: string, word: string, answered: boolean}>} Groups
 * @typedef {Record<string, {sense: string, text: string}>} Kinds
 */
/** @typedef {[string[], string[], string[]]} Words of the name, of title and features, of causes */
/**
 * Words as their numbers in the vocabulary.
 *
 * @typedef {object} Feature
 * @property {string} case
 * @property {string} title
 * @property {string} topic
 * @property {number} rank
 * @property {string} page
 * @property {number[][]} words
 * @property {number[]} messages
 */
/** @typedef {{words: Words, own: string[], messages: string[]}} Spelled `own` are those of its variants */
/**
 * @typedef {object} AnswersData
 * @property {Vocabulary} vocabulary
 * @property {Intent[]} intents
 * @property {Record<string, string[]>} releases tried releases by name
 * @property {[string, string][]} targets with the name of their architecture
 * @property {string} first the initial target
 * @property {Groups} groups
 * @property {Kinds} kinds
 * @property {[string, Record<string, string>][]} hosts the machines' own host compilers, and their versions
 * @property {[string, string, string, string][]} columns key, heading, backend, header library or host compiler
 * @property {{most: number, heading: string, backends: string[]}} shared backends that share a column if there are more
 * @property {Feature[]} features
 */
/** @typedef {[number, number, number, number?][]} Fields column, verdict, grid, and the verdict of own cells alone */
/** @typedef {[number, string, string[], Fields]} FeatureLine feature, label, words */
/**
 * @typedef {object} OnTarget
 * @property {[string, string, string][]} verdicts
 * @property {VersionGrid[]} grids
 * @property {FeatureLine[]} lines
 * @property {Fields} itself results about the architecture itself
 */
/** @typedef {{lines: FeatureLine[], words: string[]}} Reading */
/** @typedef {{line: FeatureLine, fields: Map<number, Verdict>, weight?: number}} Found weight of the row's words */

const answering = (() => {
  /** The case without a requirement except the architecture (harness/answers/answer.py). */
  const SAME = "targets/removed";

  /** @param {AnswersData} data @param {string} kind @returns {Verdict} */
  const plain = ({ kinds }, kind) => ({ kind, text: kinds[kind].text, note: "" });

  /** @param {AnswersData} data @param {string} letters @returns {Verdict} */
  const silent = (data, letters) => {
    const { empty, unavailable, na } = data.groups;
    if (letters.includes(empty.letter)) return { kind: "untried", text: empty.word, note: "" };
    if (letters.includes(unavailable.letter)) return { kind: "untried", text: unavailable.word, note: "" };
    return plain(data, letters.includes(na.letter) ? "na" : "untried");
  };

  /** @param {AnswersData} data @param {{kind: string}} verdict whether no compiler answered */
  const isSilent = ({ kinds }, { kind }) => kinds[kind].sense === "silent";

  /** @param {AnswersData} data @param {{kind: string}} verdict whether it works in no version */
  const isRefused = ({ kinds }, { kind }) => kinds[kind].sense === "refused";

  /**
   * The verdict on some of the versions.
   *
   * @param {AnswersData} data
   * @param {VersionGrid} grid
   * @param {string[] | null} libraries
   * @param {string[] | null} toolkits
   * @returns {Verdict}
   */
  const picked = (data, [versions, releases, letters], libraries, toolkits) => {
    const { groups } = data;
    const untold = Object.values(groups).flatMap(({ letter, answered }) => (answered ? [] : [letter]));
    const found = versions
      .flatMap((library, row) =>
        releases.map((toolkit, at) => ({ of: [library, toolkit], letter: letters[row * releases.length + at] })),
      )
      .filter(({ of }) => (!libraries || libraries.includes(of[0])) && (!toolkits || toolkits.includes(of[1])));
    const answered = found.filter(({ letter }) => !untold.includes(letter));
    if (!answered.length) return silent(data, found.map(({ letter }) => letter).join(""));
    const works = answered.filter(({ letter }) => letter === groups.works.letter);
    if (works.length === answered.length) return plain(data, "works");
    if (!works.length) {
      const fault = answered.every(({ letter }) => letter === groups.fault.letter);
      const text = `${groups.not.word}, 0 of ${answered.length}${fault ? `: a ${groups.fault.word}` : ""}`;
      return { kind: fault ? "fault" : "never", text, note: "" };
    }
    const refused = answered.filter(({ letter }) => letter !== groups.works.letter);
    for (const [axis, prefix] of /** @type {[number, string][]} */ ([
      [0, ""],
      [1, "CUDA "],
    ])) {
      const of = (/** @type {typeof answered} */ cells, /** @type {number} */ at) => [
        ...new Set(cells.map((cell) => cell.of[at])),
      ];
      const [good, bad] = [of(works, axis), of(refused, axis)];
      // A cell of each that differ only in this axis.
      const shared = of(works, 1 - axis).some((name) => of(refused, 1 - axis).includes(name));
      if (shared && !good.some((name) => bad.includes(name))) {
        const text = `builds with ${prefix}${good.join(", ")}; not with ${prefix}${bad.join(", ")}`;
        return { kind: "part", text, note: "" };
      }
    }
    return { kind: "part", text: `builds in ${works.length} of ${answered.length} combinations`, note: "" };
  };

  /** @type {WeakMap<Feature, Spelled>} */
  const spelled = new WeakMap();

  /** @param {AnswersData} data @param {number} place words of a feature, and of compilers' messages about it */
  const spell = (data, place) => {
    const feature = data.features[place];
    let found = spelled.get(feature);
    if (!found) {
      const { words, message_words: messages } = data.vocabulary;
      const spell = (/** @type {number} */ at) => (at < words.length ? words[at] : messages[at - words.length]);
      const [name, title, causes, own] = feature.words.map((group) => group.map(spell));
      found = { words: [name, title, causes], own, messages: feature.messages.map(spell) };
      spelled.set(feature, found);
    }
    return found;
  };

  /**
   * Rows that may match, and words to find them by. The first reading with the fewest missing words counts.
   *
   * @param {AnswersData} data
   * @param {FeatureLine[]} every
   * @param {Requested} of
   * @returns {Reading[]}
   */
  const readings = (data, every, of) => {
    const withAxis = (/** @type {FeatureLine[]} */ some, /** @type {Map<string, string[]>} */ names) =>
      some.filter(([, , , fields]) => fields.some(([column]) => names.has(data.columns[column][3])));
    const ofHeader = withAxis(every, of.headers);
    // Programs that use the library, not programs that mention it. If there are none, programs that mention it: no
    // others answer.
    const speaks = (/** @type {FeatureLine} */ [feature, , own]) =>
      !question.score([...of.headers.keys()], [...spell(data, feature).words.slice(0, 2), [], own], data.vocabulary)
        .missing;
    const lines = ofHeader.length ? ofHeader : of.headers.size ? every.filter(speaks) : every;
    const words = ofHeader.length ? of.words.filter((word) => !of.headers.has(word)) : of.words;
    const free = words.filter((word) => !of.hosts.has(word));
    const ofHost = withAxis(lines, of.hosts);
    return [
      ...(ofHost.length ? [{ lines: ofHost, words: free }] : []),
      { lines, words },
      ...(free.length && free.length < words.length ? [{ lines, words: free }] : []),
    ];
  };

  /** @param {AnswersData} data @param {string[]} words whether a compiler's message has one of them, and no feature */
  const isMessage = ({ vocabulary: { words: known, message_words: messages } }, words) =>
    words.some((word) => messages.includes(word) && !known.some((other) => other.startsWith(word)));

  /**
   * The rows with the most words of a question, and the number of words that they lack.
   *
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {Requested} of
   */
  const scores = (data, part, of) => {
    const read = readings(data, part.lines, of).map(({ lines, words }) => {
      const message = isMessage(data, words);
      const its = (/** @type {FeatureLine} */ [place]) => spell(data, place);
      const scored = lines.map((line, at) => ({
        line,
        at,
        ...question.score(words, [...its(line).words, line[2]], data.vocabulary, message ? its(line).messages : []),
        own: words.filter((word) => line[2].some((each) => question.says(word, each, data.vocabulary))).length,
      }));
      return { words, scored, least: Math.min(...scored.map(({ missing }) => missing)) };
    });
    return read.reduce((best, each) => (each.least < best.least ? each : best));
  };

  /** @param {Requested} of words to search for in every feature */
  const searched = (of) => of.words.filter((word) => !of.headers.has(word) && !of.hosts.has(word));

  /**
   * Words of a question that even the best feature lacks, on every architecture.
   *
   * @param {AnswersData} data
   * @param {Requested} of
   */
  const lacking = (data, of) => {
    const { vocabulary } = data;
    const words = searched(of);
    const message = isMessage(data, words);
    const missing = data.features.map((_, place) => {
      const { words: its, own, messages } = spell(data, place);
      const score = question.score(words, [...its, own], vocabulary, message ? messages : []);
      return {
        ...score,
        without: () => words.filter((word) => question.score([word], [...its, own], vocabulary, messages).missing),
      };
    });
    const best = missing.reduce((most, each) =>
      each.missing < most.missing || (each.missing === most.missing && each.total > most.total) ? each : most,
    );
    const parts = new Set(vocabulary.parts);
    return best.missing ? best.without().filter((word) => !parts.has(word) || words.length === 1) : [];
  };

  /**
   * Whether the features that match a question best have answers only on other architectures.
   *
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {Requested} of
   */
  const isElsewhere = (data, part, of) => {
    const words = searched(of);
    if (!words.length || words.length < of.words.length) return false;
    const scores = data.features.map((_, place) => {
      const { words: its, own } = spell(data, place);
      return question.score(words, [...its, own], data.vocabulary, []);
    });
    const least = Math.min(...scores.map(({ missing }) => missing));
    const most = Math.max(...scores.map(({ missing, total }) => (missing === least ? total : 0)));
    const isBest = (/** @type {number} */ place) => scores[place].missing === least && scores[place].total === most;
    const isAnswered = (/** @type {Fields} */ fields) =>
      fields.some(([, verdict]) => !isSilent(data, { kind: part.verdicts[verdict][0] }));
    return !part.lines.some(([place, , , fields]) => isBest(place) && isAnswered(fields));
  };

  /**
   * The rows that match a question, best first, with the verdict of each field.
   *
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {Requested} of
   * @returns {Found[]}
   */
  const find = (data, part, of) => {
    const { words, scored, least } = scores(data, part, of);
    const good = scored.filter(({ missing }) => missing === least && (missing < words.length || !words.length));
    /** @type {Map<number, number>} */
    const most = new Map();
    for (const { line, own } of good) most.set(line[0], Math.max(most.get(line[0]) || 0, own));
    const some = Boolean(of.toolkits || of.tools || of.headers.size || of.hosts.size);
    const found = good
      .filter(({ line, own }) => own === most.get(line[0]))
      // Rows of equal weight have the order of features; without a question, that of the page.
      .sort((a, b) => b.total - a.total || (words.length || some ? a.line[0] - b.line[0] : 0) || a.at - b.at)
      .map(({ line, total }) => ({ line, fields: fieldsOf(data, part, line, of, some), weight: total }))
      .filter(({ fields }) => fields.size);
    // Tried features come first if the question names versions.
    const untried = (/** @type {Found} */ { fields }) => [...fields.values()].every((each) => isSilent(data, each));
    if (isBestUntried(data, found, words)) return found.filter(untried);
    if (some || words.length) found.sort((a, b) => Number(untried(a)) - Number(untried(b)));
    // Without any other words, breakage that is specific to these versions comes first.
    const broken = (/** @type {Found} */ { fields }) =>
      [...fields.values()].some((each) => each.other && isRefused(data, each));
    if (!words.length && (of.toolkits || of.tools)) found.sort((a, b) => Number(broken(b)) - Number(broken(a)));
    if (!of.targets.length || of.words.length) return found;
    // The architecture itself. A feature without an answer is not applicable, as this implies.
    /** @type {FeatureLine} */
    const line = [-1, "", [], part.itself];
    const itself = { line, fields: fieldsOf(data, part, line, of, some) };
    if (untried(itself)) return found;
    const others = found.filter((each) => data.features[each.line[0]].case !== SAME);
    return [itself, ...(of.toolkits || of.tools ? others.filter((each) => !untried(each)) : others)];
  };

  /**
   * Whether an untried case fits the words clearly better than every tried case: the tried cases do not answer them.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   * @param {string[]} words
   */
  const isBestUntried = (data, found, words) => {
    const [name, title] = data.vocabulary.grammar.weights;
    const tried = found.filter(({ fields }) => [...fields.values()].some((each) => !isSilent(data, each)));
    const most = (/** @type {Found[]} */ some) => Math.max(...some.map(({ weight = 0 }) => weight));
    return words.length > 0 && tried.length > 0 && most(tried) <= most(found) - (name - title);
  };

  /**
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {FeatureLine} line
   * @param {Requested} of
   * @param {boolean} some whether the question may request only some versions
   */
  const fieldsOf = (data, part, line, of, some) => {
    /** @type {Map<number, Verdict>} */
    const found = new Map();
    const compiled = new Set(
      line[3].map(([column]) => data.columns[column]).flatMap(([, , tool, axis]) => (of.hosts.has(axis) ? [tool] : [])),
    );
    for (const [column, verdict, grid, mine] of line[3]) {
      const [, , backend, axis] = data.columns[column];
      if (of.tools && !of.tools.has(backend)) continue;
      const foreign = of.hosts.size && !of.hosts.has(axis) && data.vocabulary.hosted.includes(backend);
      if (foreign && (compiled.has(backend) || isHost(data, axis))) continue;
      const [kind, text, note] = part.verdicts[verdict];
      const yours = mine === undefined ? "" : part.verdicts[mine][1];
      const versions = axis ? of.headers.get(axis) || of.hosts.get(axis) || [] : (of.tools?.get(backend) ?? []);
      const other =
        [...of.headers.values()].some(({ length }) => length) && !of.headers.has(axis) && !of.hosts.has(axis);
      const onOwn = (/** @type {Verdict} */ each) =>
        other ? without(data, of, each) : foreign ? ownHost(data, of, each) : each;
      if (!some || !(versions.length || of.toolkits)) {
        found.set(column, onOwn({ kind, text, note, yours }));
        continue;
      }
      const own = picked(data, part.grids[grid], versions.length ? versions : null, of.toolkits);
      const overall =
        isSilent(data, { kind }) || text === own.text || (isRefused(data, { kind }) && own.kind !== "untried")
          ? ""
          : `with other versions: ${text}`;
      const notes = [overall, note].filter(Boolean).join("; ");
      found.set(column, onOwn({ ...own, note: notes, yours, other: Boolean(overall) }));
    }
    return found;
  };

  /** @param {AnswersData} data @param {string} axis whether its versions are versions of a host compiler */
  const isHost = (data, axis) => axis === "host compiler" || data.vocabulary.hosts.includes(axis);

  /**
   * The verdict on a program without a header library, if the question names a release of one.
   *
   * @param {AnswersData} data
   * @param {Requested} of
   * @param {Verdict} verdict
   * @returns {Verdict}
   */
  const without = (data, of, verdict) => {
    if (isSilent(data, verdict)) return verdict;
    const names = [...of.headers.keys()];
    const name = names.includes("cccl") ? "with the CCCL that CUDA brings" : `without ${names.join(" and ")}`;
    return { ...plain(data, "untried"), note: `${name}: ${verdict.text}`, yours: verdict.yours };
  };

  /**
   * The verdict on the machine's own host compiler, if the question names a host compiler. An own one of the same
   * version counts as the requested one.
   *
   * @param {AnswersData} data
   * @param {Requested} of
   * @param {Verdict} verdict
   * @returns {Verdict}
   */
  const ownHost = (data, of, verdict) => {
    if (isSilent(data, verdict)) return verdict;
    const same =
      data.hosts.length > 0 &&
      data.hosts.every(([, versions]) =>
        [...of.hosts].every(
          ([name, wanted]) =>
            versions[name] && (!wanted.length || wanted.some((each) => question.inSeries(versions[name], each))),
        ),
      );
    const own = data.hosts.map(([host]) => host).join(" or ") || "version unknown";
    const name = `with the machine's own host compiler (${own})`;
    return same
      ? { ...verdict, note: [verdict.note, name].filter(Boolean).join("; ") }
      : { ...plain(data, "untried"), note: `${name}: ${verdict.text}`, yours: verdict.yours };
  };

  /**
   * Whether there is a result for the request. A result that it is not applicable counts.
   *
   * @param {AnswersData} data
   * @param {OnTarget} part
   * @param {Requested} of
   */
  const tells = (data, part, of) =>
    find(data, part, of).some(({ fields }) => [...fields.values()].some(({ kind }) => kind !== "untried"));

  /** The first word of an answer, about all tools together. */
  const LEADS = /** @type {Record<string, string>} */ ({ works: "Yes", part: "In part", refused: "No" });
  const WORDS = /** @type {Record<string, string>} */ ({
    Yes: "Builds",
    "In part": "Builds in part",
    No: "Does not build",
  });
  const isTried = (/** @type {string} */ note) => note.startsWith("tried: ");
  /** The maximum number of variants with full statements in one sentence. */
  const TOLD = 3;

  /**
   * The answer of the first feature in one sentence. Variants with different findings get a part each.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   * @param {string} [intent] of the question: for `since` the release comes first
   * @param {boolean} [decides] whether a yes or no leads the sentence
   */
  const sentence = (data, found, intent = "", decides = true) => {
    const since = intent === "since";
    const its = found
      .filter(({ line }) => line[0] === found[0].line[0])
      .map(({ line, fields }) => {
        const answered = [...fields].filter(([, each]) => !isSilent(data, each));
        const senses = new Set(answered.map(([, { kind }]) => data.kinds[kind].sense));
        const lead = LEADS[senses.size === 1 ? [...senses][0] : "part"];
        const parts = answered.map(([column, { kind, text, note }]) => {
          const [tried = "", ...others] = note.split("; ").sort((a, b) => Number(isTried(b)) - Number(isTried(a)));
          const notes = (isTried(tried) ? others : [tried, ...others]).filter(Boolean).join("; ");
          const every = since && kind === "works" && isTried(tried) ? ` in each release ${tried.replace(":", "")}` : "";
          return `${data.columns[column][1]}: ${text}${every}${notes ? ` (${notes})` : ""}`;
        });
        return { label: line[1], lead, text: parts.join("; "), answered };
      });
    if (!its.length) return "";
    const leads = new Set(its.map(({ lead }) => lead));
    const starts = new Set(
      its.flatMap(({ answered }) => answered.filter(([, { kind }]) => kind === "since").map(([, { text }]) => text)),
    );
    const release = [...starts][0]?.replace(/^builds since /, "");
    const one = leads.size === 1 ? [...leads][0] : "In part";
    // Statements that depend on more than one release name no first one.
    const plain = its.every(({ answered }) =>
      answered.every(([, each]) => isRefused(data, each) || ["since", "works"].includes(each.kind)),
    );
    const lead = !decides ? "" : since && plain && starts.size === 1 ? `Since ${release}. ` : `${one}. `;
    /** @param {"lead" | "text"} by @returns {[string, string[]][]} */
    const grouped = (by) =>
      [...new Set(its.map((each) => each[by]))].map((value) => [
        value,
        its.filter((each) => each[by] === value).map(({ label }) => label),
      ]);
    const but = contrary(data, found, one);
    const texts = grouped("text");
    if (texts.length === 1) return `${lead}${texts[0][0]}. ${but}`;
    if (texts.length <= TOLD)
      return `${lead}${texts.map(([text, labels]) => `${labels.join("; ")}: ${text}. `).join("")}${but}`;
    return `${lead}${grouped("lead")
      .map(([of, labels]) => `${WORDS[of]}: ${labels.join("; ")}. `)
      .join("")}${but}`;
  };

  /**
   * The other matching cases with the opposite answer.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   * @param {string} lead
   */
  const contrary = (data, found, lead) => {
    const opposite = { [LEADS.works]: "refused", [LEADS.refused]: "works" }[lead];
    const [first] = found;
    if (!opposite || first.line[0] < 0) return "";
    /** @type {Map<number, Set<string>>} */
    const senses = new Map();
    for (const { line, fields, weight = 0 } of found) {
      if (line[0] < 0 || line[0] === first.line[0] || weight < (first.weight ?? 0)) continue;
      for (const each of fields.values()) {
        if (isSilent(data, each)) continue;
        senses.set(line[0], (senses.get(line[0]) ?? new Set()).add(data.kinds[each.kind].sense));
      }
    }
    const cases = [...senses]
      .filter(([, of]) => of.size === 1 && of.has(opposite))
      .map(([at]) => data.features[at].case);
    if (!cases.length) return "";
    const more = cases.length > TOLD ? ` and ${cases.length - TOLD} more` : "";
    const [one, many] = opposite === "refused" ? ["does not build", "do not build"] : ["builds", "build"];
    return `But ${cases.slice(0, TOLD).join(", ")}${more} ${cases.length > 1 ? many : one}. `;
  };

  /**
   * Findings that do not build, known faults first.
   *
   * @param {AnswersData} data
   * @param {Found[]} found
   */
  const failing = (data, found) => {
    const refused = (/** @type {Found} */ { fields }) =>
      [...fields.values()].some((each) => !isSilent(data, each) && data.kinds[each.kind].sense !== "works");
    const fault = (/** @type {Found} */ { fields }) => [...fields.values()].some(({ kind }) => kind === "fault");
    return found.filter(refused).sort((a, b) => Number(fault(b)) - Number(fault(a)));
  };

  return { find, isElsewhere, isSilent, sentence, tells, lacking, failing };
})();
