// The grammar of questions: the algorithm of harness/answers/question.py; names, patterns and weights come as data.
// tests/answers/questions.toml tests both with the same examples.
"use strict";

/** @typedef {{kind: string, text: string, name: string, values: string[], near: string[]}} Chip */
/** @typedef {{found: Chip[], end: number}} Step */
/**
 * @typedef {object} Grammar
 * @property {Record<string, string>} patterns
 * @property {Record<string, string>} kinds kinds of targets by their letters
 * @property {number[]} weights weights of words in a name, a title, causes and parameters
 * @property {number} prefix minimum length of a matching prefix
 * @property {number} phrase maximum number of words of a name
 * @property {string[]} beyond words before a size that exclude the size itself
 * @property {string[]} below words before an architecture that mean those below it
 * @property {string} from the word before a release of the preceding name
 */
/**
 * @typedef {object} Vocabulary
 * @property {Record<string, string[]>} architectures targets by marketing name
 * @property {Record<string, string>} aliases names that take a version, by alias
 * @property {Record<string, string[]>} tools backends by name of a tool
 * @property {Record<string, string>} libraries library by backend
 * @property {string[]} terms names of tools that are also terms of CUDA
 * @property {string[]} python backends whose programs are Python files
 * @property {Record<string, string[]>} builders backends by prefix of targets
 * @property {string[]} named words of the cases' names
 * @property {string[]} hosts names of host compilers, and of their C library
 * @property {string[]} hosted backends that use a host compiler
 * @property {Record<string, string[]>} versions known versions by name
 * @property {string[]} targets
 * @property {string[]} specific backends that build sm_90a for sm_90
 * @property {string[]} ignored
 * @property {string[][]} synonyms
 * @property {string[][]} rivals words that name different things although they have a common synonym
 * @property {string[]} words
 * @property {string[]} message_words further words, from compiler messages
 * @property {string[]} parts words that a case may lack
 * @property {Record<string, string>} packages
 * @property {Record<string, string>} phrases words by patterns of longer descriptions
 * @property {Grammar} grammar
 */

const question = (() => {
  /** @type {WeakMap<Vocabulary, Record<string, RegExp>>} */
  const compiled = new WeakMap();

  /** @param {Vocabulary} known the patterns of the grammar, each for a whole text */
  const patternsOf = (known) => {
    const found =
      compiled.get(known) ??
      Object.fromEntries(
        Object.entries(known.grammar.patterns).map(([name, text]) => [name, new RegExp(`^(?:${text})$`)]),
      );
    compiled.set(known, found);
    return found;
  };

  /** @param {Record<string, unknown>} table @param {string} key */
  const has = (table, key) => Object.hasOwn(table, key);

  /** @param {string} text @param {string} pattern */
  const all = (text, pattern) => text.toLowerCase().match(new RegExp(pattern, "g")) || [];

  /** @param {string} text @param {Vocabulary} known */
  const tokensOf = (text, { grammar }) =>
    all(text, grammar.patterns.token)
      .map((token) => token.replace(/[.:]+$/, ""))
      .filter(Boolean);

  /** @param {string} text */
  const numbers = (text) => (/^\d{1,9}(\.\d{1,9})*$/.test(text) ? text.split(".").map(Number) : []);

  /** @param {number[]} one @param {number[]} other */
  const compare = (one, other) => {
    for (let at = 0; at < Math.min(one.length, other.length); at++)
      if (one[at] !== other[at]) return one[at] - other[at];
    return one.length - other.length;
  };

  /** @param {string} version @param {string} series */
  const inSeries = (version, series) => {
    const [own, wanted] = [numbers(version), numbers(series)];
    if (!own.length || !wanted.length) return version === series;
    return wanted.every((number, at) => (own[at] ?? 0) === number);
  };

  /** @param {string} version @param {string[]} known */
  const nearestVersions = (version, known) => {
    const wanted = numbers(version);
    const ordered = known.filter((item) => numbers(item).length).sort((a, b) => compare(numbers(a), numbers(b)));
    const below = ordered.filter((item) => compare(numbers(item), wanted) < 0);
    const above = ordered.filter((item) => compare(numbers(item), wanted) >= 0);
    return [...below.slice(-1), ...above.slice(0, 1)];
  };

  /** @param {string} one @param {string} other number of letters to change */
  const distance = (one, other) => {
    /** @type {number[]} */
    let before = [];
    let row = Array.from({ length: other.length + 1 }, (_, at) => at);
    for (let i = 1; i <= one.length; i++) {
      const last = before;
      before = row;
      row = [i];
      for (let j = 1; j <= other.length; j++) {
        let cost = Math.min(before[j] + 1, row[j - 1] + 1, before[j - 1] + Number(one[i - 1] !== other[j - 1]));
        if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
          cost = Math.min(cost, last[j - 2] + 1);
        }
        row.push(cost);
      }
    }
    return row[other.length];
  };

  /** @param {string} word @param {string[]} known */
  const nearestWords = (word, known) => {
    const most = word.length < 5 ? 1 : 2;
    return known
      .filter((item) => Math.abs(item.length - word.length) <= most)
      .map((item) => ({ item, far: distance(word, item) }))
      .filter(({ far }) => far <= most)
      .sort((a, b) => a.far - b.far || (a.item < b.item ? -1 : 1))
      .slice(0, 3)
      .map(({ item }) => item);
  };

  /** @param {string} word @param {string} other @param {Vocabulary} known */
  const says = (word, other, { synonyms, grammar }) =>
    [word, ...synonyms.filter((group) => group.includes(word)).flat()].some((each) => {
      const stem = each.length > 4 && each.endsWith("s") ? each.slice(0, -1) : each;
      if (each === other) return true;
      // A number after the stem makes another word: float4 is not float.
      const begins = other.startsWith(stem) && !/\d/.test(other.charAt(stem.length));
      return begins && stem.length >= grammar.prefix && !/^\d+$/.test(stem);
    });

  /**
   * The number of missing words, and the weight of the others.
   *
   * @param {string[]} words
   * @param {string[][]} fields words of the name, the title, the causes, the parameters
   * @param {Vocabulary} vocabulary
   * @param {string[]} messages words of compilers' messages, for a question that is a message
   */
  const score = (words, fields, vocabulary, messages = []) => {
    const { parts, grammar, named, rivals } = vocabulary;
    const own = fields.filter((_, at) => at !== 2).flat();
    let [missing, total] = [0, 0];
    for (const word of words) {
      const most = Math.max(
        0,
        ...fields.map((known, at) => (known.some((each) => says(word, each, vocabulary)) ? grammar.weights[at] : 0)),
      );
      // The text of a case may name another feature.
      const other = most === grammar.weights[2] && named.includes(word);
      const isRival =
        !own.includes(word) && rivals.some((all) => all.includes(word) && all.some((each) => own.includes(each)));
      const weight = other || isRival ? 0 : most;
      // In a name, the word itself counts more than a synonym.
      const found = weight + Number(fields[0].includes(word)) || Number(messages.includes(word));
      total += found;
      if (!found && (!parts.includes(word) || words.length === 1)) missing += 1;
    }
    return { missing, total };
  };

  /** @param {string} value @param {string} asked @param {Vocabulary} known */
  const fits = (value, asked, known) => {
    const { version, range } = patternsOf(known);
    const own = numbers(value);
    const between = range.exec(asked);
    if (between) {
      const [low, high] = [numbers(between[1]), numbers(between[2])];
      return own.length > 0 && compare(low, own) <= 0 && (compare(own, high) <= 0 || inSeries(value, between[2]));
    }
    const match = version.exec(asked);
    if (!match || !own.length) return false;
    const [sign, wanted] = [match[1] || "", numbers(match[2])];
    if (sign === ">=" || match[3] === "+") return compare(own, wanted) >= 0;
    if (sign === ">") return compare(own, wanted) > 0 && !inSeries(value, match[2]);
    if (sign === "<") return compare(own, wanted) < 0;
    if (sign === "<=") return compare(own, wanted) <= 0 || inSeries(value, match[2]);
    return inSeries(value, match[2]);
  };

  /**
   * @param {string} kind
   * @param {string} text
   * @param {string} name
   * @param {string[]} values
   * @param {string[]} near
   * @returns {Chip}
   */
  const chip = (kind, text, name, values = [], near = []) => ({ kind, text, name, values, near });

  /** @param {string} target @param {string} text @param {Vocabulary} known */
  const targetChip = (target, text, known) => {
    if (known.targets.includes(target)) return chip("target", text, target, [target]);
    const kind = target.replace(/\d.*/, "");
    /** @type {Record<string, string>} */
    const plain = {};
    for (const item of [...known.targets].reverse()) {
      if (item.startsWith(kind)) plain[item.replace(/\D/g, "")] = item;
    }
    const near = nearestVersions(target.replace(/\D/g, ""), Object.keys(plain)).map((item) => plain[item]);
    return chip("unknown", text, "target", [], near);
  };

  /** @param {string} word @param {Vocabulary} known */
  const wordChip = (word, known) =>
    known.words.some((other) => says(word, other, known)) || known.message_words.includes(word)
      ? chip("word", word, word)
      : chip("unknown", word, "word", [], nearestWords(word, known.words));

  /** @param {string} name @param {string} text @param {string} version @param {Vocabulary} known @returns {Chip[]} */
  const chipsOf = (name, text, version, known) => {
    const tool = has(known.tools, name);
    const host = known.hosts.includes(name);
    const of = (known.versions[name] || []).length || name === "cuda" || !tool ? name : "cuda";
    const all = known.versions[of] || [];
    const values = all.filter(
      (value) => fits(value, version, known) || (host && inSeries(version.replace(/^[=@v]+/, ""), value)),
    );
    if (!values.length) {
      const number = (/\d+(?:\.\d+)*/.exec(version) || [""])[0];
      return [chip("unknown", text, of, [], nearestVersions(number, all))];
    }
    if (of === "cuda") {
      const release = chip("toolkit", text, "cuda", values);
      return tool ? [chip("tool", text, name), release] : [release];
    }
    return [chip(tool ? "tool" : host ? "host" : "header", text, name, values)];
  };

  /** @param {string} token @param {Vocabulary} known */
  const isVersion = (token, known) => patternsOf(known).version.test(token) || patternsOf(known).range.test(token);

  /**
   * Chips of a name that a version can follow.
   *
   * @param {string} name
   * @param {string} text
   * @param {string[]} tokens
   * @param {number} at
   * @param {Vocabulary} known
   * @returns {Step}
   */
  const versioned = (name, text, tokens, at, known) => {
    const version = tokens[at] || "";
    const capability = patternsOf(known).capability.exec(version);
    if (name === "cc" && capability) {
      const target = `sm_${capability[1]}${capability[2]}${capability[3]}`;
      return { found: [targetChip(target, `${text} ${version}`, known)], end: at + 1 };
    }
    if (!isVersion(version, known)) {
      if (known.terms.includes(text)) return { found: [wordChip(text, known)], end: at };
      if (has(known.tools, name)) return { found: [chip("tool", text, name)], end: at };
      const kind = known.hosts.includes(name) ? "host" : "header";
      return { found: name === "cuda" || name === "cc" ? [] : [chip(kind, text, name)], end: at };
    }
    const whole = text.endsWith(version) ? text : `${text} ${version}`;
    return { found: chipsOf(name, whole, version, known), end: at + 1 };
  };

  /** @param {string} token @param {Vocabulary} known @param {Chip[]} before @param {string} after the word before it */
  const number = (token, known, before, after) => {
    const last = before.at(-1);
    const released = last && (last.values.length || after === known.grammar.from);
    if (last && released && ["tool", "toolkit", "header", "host"].includes(last.kind)) {
      const found = chipsOf(last.name, `${last.name} ${token}`, token, known);
      if (found.every(({ kind }) => kind !== "unknown")) return found;
    }
    if (token.includes(".") && (known.versions.cuda || []).some((value) => fits(value, token, known))) {
      return chipsOf("cuda", token, token, known);
    }
    if (/^\d+$/.test(token)) return [wordChip(token, known)];
    // numba cooperative launch 0.59.0
    const named = before.filter(({ kind, values }) => ["tool", "header"].includes(kind) && !values.length).reverse();
    const read = named.map(({ name }) => chipsOf(name, `${name} ${token}`, token, known));
    const found = token.includes(".") && read.find((chips) => chips.every(({ kind }) => kind !== "unknown"));
    return found || [chip("unknown", token, "version")];
  };

  /**
   * The next chips, and the position after them.
   *
   * @param {string[]} tokens
   * @param {number} at
   * @param {Vocabulary} known
   * @param {Chip[]} before
   * @returns {Step}
   */
  const next = (tokens, at, known, before) => {
    const patterns = patternsOf(known);
    for (let length = Math.min(known.grammar.phrase, tokens.length - at); length > 0; length--) {
      const text = tokens.slice(at, at + length).join(" ");
      const phrase = text.replaceAll("-", " ");
      if (has(known.architectures, phrase)) {
        return { found: [chip("target", text, phrase, known.architectures[phrase])], end: at + length };
      }
      if (has(known.aliases, phrase)) {
        const { found: read, end } = versioned(known.aliases[phrase], text, tokens, at + length, known);
        const tool = before.at(-1);
        const strange = phrase === "cuda" && tool?.kind === "tool" && read[0]?.kind === "unknown";
        // CUDA has no such release, but the tool before it does: Numba CUDA 0.63.
        const own = strange ? chipsOf(tool.name, `${tool.text} ${read[0].text}`, tokens[at + length], known) : read;
        const found = own[0]?.kind === "tool" ? own : read;
        if (length === 1 || found.every(({ kind }) => kind !== "unknown")) return { found, end };
      }
    }
    const token = tokens[at];
    for (const length of [2, 1]) {
      const text = tokens.slice(at, at + length).join(" ");
      const size = at + length <= tokens.length ? patterns.kib.exec(text) : null;
      if (!size && (length === 2 || !/^\d+$/.test(token))) continue;
      // "more than 4 KiB" is another size than 4 KiB.
      if (known.grammar.beyond.includes(tokens[at - 1])) return { found: [], end: at + length };
      if (size) {
        return { found: [{ ...wordChip(String(1024 * Number(size[1])), known), text, near: [] }], end: at + length };
      }
    }
    // sm 120 is sm_120.
    const both = has(known.grammar.kinds, token) && at + 1 < tokens.length ? `${token}_${tokens[at + 1]}` : "";
    const target = patterns.target.exec(token) || patterns.target.exec(both);
    if (target) {
      const [kind, number] = target.slice(1).filter(Boolean);
      const end = at + (target[0] === both ? 2 : 1);
      return { found: [targetChip(known.grammar.kinds[kind] + number, token, known)], end };
    }
    if (patterns.short.test(token) && known.targets.includes(`sm_${token}`)) {
      return { found: [targetChip(`sm_${token}`, token, known)], end: at + 1 };
    }
    const glued = patterns.glued.exec(token);
    if (glued && has(known.aliases, glued[1])) {
      const { found, end } = versioned(known.aliases[glued[1]], token, [glued[2]], 0, known);
      // The number in triton-8473 is the number of an issue.
      return { found: end ? found : [...found, wordChip(glued[2], known)], end: at + 1 };
    }
    if (isVersion(token, known)) return { found: number(token, known, before, tokens[at - 1]), end: at + 1 };
    if (known.ignored.includes(token)) return { found: [], end: at + 1 };
    const words = all(token, known.grammar.patterns.word).filter((word) => !known.ignored.includes(word));
    // The t of int64_t is ignored.
    const found = words
      .map((word) => wordChip(word, known))
      .filter(({ kind, text }) => kind === "word" || text.length > 1);
    return { found, end: at + 1 };
  };

  /**
   * clang is a host compiler next to nvcc or another host compiler, with major versions, else a backend.
   *
   * @param {Chip} one
   * @param {Vocabulary} known
   * @param {boolean} hosted
   * @returns {Chip}
   */
  const ofTwo = (one, known, hosted) => {
    if (one.kind !== "tool" || !known.hosts.includes(one.name)) return one;
    const whole = one.values.filter((value) => value.includes("."));
    if (hosted || (one.values.length && !whole.length)) {
      return { ...one, kind: "host", values: one.values.filter((value) => !whole.includes(value)) };
    }
    return { ...one, values: whole };
  };

  /**
   * Parse a question.
   *
   * @param {string} text
   * @param {Vocabulary} known
   */
  const parse = (text, known) => {
    const short = Object.entries(known.phrases).reduce(
      (rest, [pattern, words]) => rest.replace(new RegExp(pattern, "g"), words),
      text.toLowerCase(),
    );
    const tokens = tokensOf(short, known);
    /** @type {Chip[]} */
    const chips = [];
    for (let at = 0; at < tokens.length;) {
      const before = ` ${tokens.slice(0, at).join(" ")}`;
      const below = known.grammar.below.some((words) => before.endsWith(` ${words}`));
      const { found, end } = next(tokens, at, known, chips);
      at = end;
      for (const one of found) {
        const item = below ? lower(one, known) : one;
        if (!chips.some((other) => JSON.stringify(other) === JSON.stringify(item))) chips.push(item);
      }
    }
    const backends = chips.flatMap(({ name }) => known.tools[name] || []);
    const hosted =
      chips.some(({ kind, name }) => kind === "host" || name === "host") ||
      backends.some((one) => known.hosted.includes(one));
    const specific = backends.some((one) => known.specific.includes(one));
    return chips.map((one) => ofTwo(specific ? withSpecific(one, known) : one, known, hosted));
  };

  /**
   * The chip of the architectures below a target, nearest first, or the chip itself if there are none.
   *
   * @param {Chip} one
   * @param {Vocabulary} known
   * @returns {Chip}
   */
  const lower = (one, known) => {
    const numberOf = (/** @type {string} */ text) => Number(/^(?:sm|compute)_(\d+)/.exec(text)?.[1] ?? 0);
    const least = one.kind === "target" ? Math.min(...one.values.map(numberOf)) : 0;
    const values = known.targets.filter((each) => /^sm_\d+$/.test(each) && numberOf(each) < least);
    values.sort((a, b) => numberOf(b) - numberOf(a));
    return values.length ? { ...one, name: values[0], values } : one;
  };

  /**
   * A plain target's chip with the architecture-specific target added.
   *
   * @param {Chip} one
   * @param {Vocabulary} known
   * @returns {Chip}
   */
  const withSpecific = (one, known) => {
    const own = `${one.values[0]}a`;
    if (one.kind !== "target" || one.values.length !== 1 || !known.targets.includes(own)) return one;
    return { ...one, values: [...one.values, own] };
  };

  /** @param {string} text that may name packages and their releases @param {Vocabulary} known */
  const withPackages = (text, known) => {
    const { pinned, exact } = patternsOf(known);
    const rest = tokensOf(text, known);
    const found = rest.flatMap((token, at) => {
      const [, name, own] = pinned.exec(token) || [];
      if (!has(known.packages, name)) return [];
      const next = !own && exact.test(rest[at + 1]) ? rest.splice(at + 1, 1) : [];
      rest[at] = "";
      const version = own || next[0]?.replace("v", "");
      return [chip("package", [token, ...next].join(" "), known.packages[name], version ? [version] : [])];
    });
    return [...found, ...parse(rest.join(" "), known)];
  };

  /** @param {Chip[]} chips of the architectures in a question, without a generation if its product is also named */
  const narrowest = (chips) => {
    const found = chips.filter(({ kind }) => kind === "target");
    const inside = (/** @type {string[]} */ some, /** @type {string[]} */ others) =>
      some.length < others.length && some.every((each) => others.includes(each));
    return found.filter((chip) => !found.some((other) => inside(other.values, chip.values)));
  };

  /** @param {AnswersData} data whose vocabulary gets the words of the features' names */
  const addNames = ({ vocabulary, features }) => {
    vocabulary.named = [...new Set(features.flatMap(({ words: [name] }) => name.map((at) => vocabulary.words[at])))];
  };

  return { addNames, parse, withPackages, says, score, inSeries, narrowest };
})();
