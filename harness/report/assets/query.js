// The query language: `backend:numba,nvrtc target:sm_80..sm_90 -status:built "incomplete type"`. docs/page.md tells of it.
"use strict";

{
  /** Fields by name. `exact`: values are matched whole; `version`: they have an order, and 12 stands for 12.x. */
  const FIELDS = {
    case: { about: "name of the case" },
    topic: { exact: true, about: "topic of the case" },
    feature: { about: "feature of CUDA that the case shows" },
    variant: { about: "the case's parameters" },
    title: { about: "title of the case" },
    backend: { exact: true, about: "way to compile" },
    library: { version: true, about: "version of the library behind the backend" },
    toolkit: { version: true, about: "CUDA release" },
    target: { version: true, about: "architecture, such as sm_80" },
    status: { exact: true, about: "what happened" },
    verdict: { exact: true, about: "what it means against the expectation" },
    stage: { exact: true, ordered: true, about: "how far it got" },
    mark: { exact: true, about: "what the cell shows" },
    is: { exact: true, about: "unexpected, expected, missing, run" },
    environment: { about: "environment that it ran in" },
    run: { about: "name of the run" },
    message: { more: true, about: "text of the first diagnostic, or the reason" },
    registers: { more: true, number: "registers", about: "most registers of its kernels" },
    shared: { more: true, number: "shared", about: "most static shared memory, in bytes" },
    spills: { more: true, number: "spills", about: "most spilled bytes" },
    seconds: { more: true, number: "seconds", about: "time to compile" },
  };
  const ALIASES = { cuda: "toolkit", arch: "target", version: "library", lib: "library", says: "message", env: "environment", regs: "registers", feat: "feature" };
  const IS = ["unexpected", "expected", "missing", "run"];

  class QueryError extends Error {}

  /** Words of a query: parentheses, or terms of a sign, a field, and values. */
  const words = (text) => {
    const found = [];
    const pattern = /\s*(?:([()])|(-?)((?:[a-z]+:)?)((?:"[^"]*"?|[^\s()"])*))/gy;
    while (pattern.lastIndex < text.length) {
      const start = pattern.lastIndex;
      const match = pattern.exec(text);
      if (!match || !match[0].length) break;
      const at = start + match[0].length - match[0].trimStart().length;
      if (match[1]) found.push({ kind: match[1], start: at, end: pattern.lastIndex });
      else if (match[3] || match[4]) {
        const plain = !match[2] && !match[3] && !match[4].includes('"') ? match[4].toLowerCase() : "";
        const kind = ["or", "and", "not"].includes(plain) ? plain : "term";
        found.push({ kind, negated: Boolean(match[2]), field: match[3].slice(0, -1), text: match[4], start: at, end: pattern.lastIndex });
      }
    }
    return found;
  };

  /** Alternatives between commas that are not within quotes. */
  const alternatives = (text) => (text.match(/(?:"[^"]*"?|[^,"])+/g) || []).map((part) => part.replaceAll('"', ""));

  const near = (word, known) => known.find((name) => name.startsWith(word) || word.startsWith(name)) || known.find((name) => [...word].filter((letter) => name.includes(letter)).length >= word.length - 1 && Math.abs(name.length - word.length) < 2);

  /** A query as a tree: {op: "and"|"or"|"not"|"term", …}. */
  const parse = (text) => {
    const items = words(text);
    let at = 0;
    const or = () => {
      const parts = [and()];
      while (items[at]?.kind === "or") {
        at++;
        parts.push(and());
      }
      if (parts.length === 1) return parts[0];
      const empty = parts.findIndex((part) => !part.parts.length);
      if (empty >= 0) throw new QueryError(`“or” has nothing ${empty ? "after" : "before"} it`);
      return { op: "or", parts };
    };
    const and = () => {
      const parts = [];
      while (at < items.length && items[at].kind !== ")" && items[at].kind !== "or") {
        if (items[at].kind === "and") at++;
        else parts.push(one());
      }
      return { op: "and", parts };
    };
    const one = () => {
      const item = items[at++];
      if (!item) throw new QueryError("the query ends after “not”");
      if (item.kind === "not") return { op: "not", part: one() };
      if (item.kind === "(") {
        const inner = or();
        if (items[at]?.kind !== ")") throw new QueryError("a parenthesis is not closed");
        at++;
        return inner;
      }
      if (item.kind !== "term") throw new QueryError(`“${item.kind}” has nothing before it`);
      return term(item);
    };
    const tree = or();
    if (at < items.length) throw new QueryError("a parenthesis is closed that was never opened");
    return tree.op === "and" ? tree : { op: "and", parts: [tree] };
  };

  const term = (item) => {
    let field = item.field && (ALIASES[item.field] || item.field);
    let text = item.text;
    if (field && !Object.hasOwn(FIELDS, field)) {
      // A colon within a message (std::size_t) is no field.
      if (text.startsWith(":")) {
        text = `${item.field}:${text}`;
        field = "";
      } else {
        const other = near(field, Object.keys(FIELDS));
        throw new QueryError(`there is no field “${field}”${other ? ` (did you mean “${other}”?)` : ""}`);
      }
    }
    const values = field ? alternatives(text) : [text.replaceAll('"', "")].filter(Boolean);
    const node = { op: "term", field, values, start: item.start, end: item.end, negated: item.negated };
    return item.negated ? { op: "not", part: node } : node;
  };

  /** What a version, a target or a number is compared by. */
  const key = (field, text) => {
    if (field === "target") {
      const match = /^(sm|compute)_(\d+)([af]?)$/.exec(text);
      if (!match) throw new QueryError(`“${text}” is not a target: write sm_80 or compute_80`);
      return [match[1] === "sm" ? 0 : 1, Number(match[2]), match[3]];
    }
    return text.split(/[^\d]+/).filter(Boolean).map(Number);
  };

  const compare = (a, b) => {
    for (let place = 0; place < Math.max(a.length, b.length); place++) {
      const [left, right] = [a[place] ?? 0, b[place] ?? 0];
      if (left !== right) return left < right ? -1 : 1;
    }
    return 0;
  };

  const glob = (text) => new RegExp(`^${text.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`, "is");

  /** A test of one value of a field. */
  const tester = (field, wanted, about, order) => {
    const ordered = about.version || about.ordered || about.number;
    const range = ordered && /^(.*?)\.\.(.*)$/s.exec(wanted);
    const sign = ordered && /^([<>]=?|=)(.*)$/s.exec(wanted);
    const keyed = (text) => {
      if (about.ordered) {
        const place = order.indexOf(text);
        if (place < 0) throw new QueryError(`“${text}” is no ${field}`);
        return [place];
      }
      if (about.number) {
        if (text.trim() === "" || Number.isNaN(Number(text))) throw new QueryError(`“${text}” is not a number`);
        return [Number(text)];
      }
      if (field !== "target" && !/^\d/.test(text)) throw new QueryError(`“${text}” is not a version such as 12.4`);
      return key(field, text);
    };
    const valued = (value) => (about.number ? [value] : about.ordered ? [order.indexOf(value)] : key(field, value));
    // A range of architectures takes in the plain ones of its kind, as on the command line.
    const alike = (value, end) => field !== "target" || (value.split("_")[0] === end.split("_")[0] && !/[af]$/.test(value));
    if (range) {
      const [low, high] = [range[1] && keyed(range[1]), range[2] && keyed(range[2])];
      // 12.0..12 takes in 12.9: an end stands for all that begins with it.
      const within = (value) => compare(about.version && field !== "target" && high ? value.slice(0, high.length) : value, high) <= 0;
      return (value) => value !== "" && alike(value, range[1] || range[2]) && (!low || compare(valued(value), low) >= 0) && (!high || within(valued(value)));
    }
    if (sign) {
      const end = keyed(sign[2]);
      const holds = { "<": (n) => n < 0, "<=": (n) => n <= 0, ">": (n) => n > 0, ">=": (n) => n >= 0, "=": (n) => n === 0 }[sign[1]];
      if (sign[1] === "=" && !about.number) return (value) => value === sign[2];
      return (value) => value !== "" && alike(value, sign[2]) && holds(compare(valued(value), end));
    }
    if (about.number) return (value) => value === keyed(wanted)[0];
    if (wanted.includes("*")) {
      const pattern = glob(wanted);
      return (value) => pattern.test(value);
    }
    if (field === "library" || field === "toolkit") return (value) => value === wanted || (value.startsWith(wanted) && /^[.+@]/.test(value.slice(wanted.length)) && wanted !== "");
    const lower = wanted.toLowerCase();
    if (about.exact || field === "target") return (value) => value.toLowerCase() === lower;
    return (value) => value.toLowerCase().includes(lower);
  };

  /** Which cells a term lets through. */
  const termMask = (matrix, node) => {
    const mask = new Uint8Array(matrix.size);
    const about = FIELDS[node.field] || {};
    const anyOf = (names) => {
      const tests = node.values.map((value) => tester(node.field, value, about, matrix.names[node.field]));
      return Uint8Array.from(names, (name) => tests.some((test) => test(name)));
    };
    if (!node.field) return textMask(matrix, node.values[0] || "", mask);
    if (!node.values.length) return mask.fill(1);
    if (about.more && !matrix.more) return mask.fill(1);
    if (about.number) {
      const tests = node.values.map((value) => tester(node.field, value, about));
      const numbers = matrix.more.numbers[about.number];
      const known = new Map();
      for (let cell = 0; cell < mask.length; cell++) {
        const value = numbers[cell];
        if (value === null) continue;
        let holds = known.get(value);
        if (holds === undefined) known.set(value, (holds = tests.some((test) => test(value)) ? 1 : 0));
        mask[cell] = holds;
      }
    } else if (node.field === "message") {
      const let_through = anyOf(matrix.more.texts);
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = let_through[matrix.more.message[cell]];
    } else if (node.field === "is") {
      const unknown = node.values.find((value) => !IS.includes(value));
      if (unknown !== undefined) throw new QueryError(`is:${unknown} means nothing; there are ${IS.map((word) => `is:${word}`).join(", ")}`);
      const kinds = matrix.marks.map((mark) => node.values.some((value) => ({ unexpected: !mark.good, expected: mark.good, missing: mark.key === "missing", run: !["missing", "unsupported", "unavailable"].includes(mark.key) })[value]));
      const codes = matrix.codesOf("mark");
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = kinds[codes[cell]] ? 1 : 0;
    } else if (node.field === "feature" || node.field === "title") {
      const cases = matrix.cases.map((item) => anyOf([item[node.field === "feature" ? "features" : "title"]].flat()).includes(1));
      const codes = matrix.codesOf("case");
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = cases[codes[cell]] ? 1 : 0;
    } else {
      const let_through = anyOf(matrix.names[node.field]);
      const { codes, of } = matrix.source(node.field);
      const by_place = Uint8Array.from(codes, (code) => let_through[code]);
      for (let cell = 0; cell < mask.length; cell++) mask[cell] = by_place[of[cell]];
    }
    return mask;
  };

  /** Free text is looked for in what a reader sees of a cell. */
  const textMask = (matrix, text, mask) => {
    const lower = text.toLowerCase();
    const has = (name) => name.toLowerCase().includes(lower);
    const cases = matrix.cases.map((item, place) => has(matrix.names.case[place]) || has(item.title) || item.features.some(has));
    const variants = matrix.names.variant.map(has);
    const rows = matrix.rows.case.map((place, row) => cases[place] || variants[matrix.rows.variant[row]]);
    const named = ["backend", "library", "toolkit", "target"].map((key) => [matrix.names[key].map(has), matrix.columns[key]]);
    const columns = matrix.columns.backend.map((_, column) => named.some(([names, codes]) => names[codes[column]]));
    const texts = matrix.more ? matrix.more.texts.map(has) : [];
    for (let cell = 0; cell < mask.length; cell++) {
      mask[cell] = rows[matrix.row[cell]] || columns[matrix.column[cell]] || (matrix.more && texts[matrix.more.message[cell]]) ? 1 : 0;
    }
    return mask;
  };

  const maskOf = (matrix, node) => {
    if (node.op === "term") return termMask(matrix, node);
    if (node.op === "not") {
      const mask = maskOf(matrix, node.part);
      for (let cell = 0; cell < mask.length; cell++) mask[cell] ^= 1;
      return mask;
    }
    if (!node.parts.length) return new Uint8Array(matrix.size).fill(1);
    // Each mask is its maker's own, so that the first one can take in the others.
    const [result, ...others] = node.parts.map((part) => maskOf(matrix, part));
    for (const part of others) {
      if (node.op === "and") for (let cell = 0; cell < result.length; cell++) result[cell] &= part[cell];
      else for (let cell = 0; cell < result.length; cell++) result[cell] |= part[cell];
    }
    return result;
  };

  const needsMore = (node) => (node.op === "term" ? !node.field || FIELDS[node.field].more : node.op === "not" ? needsMore(node.part) : node.parts.some(needsMore));

  /**
   * Put a query to the matrix.
   *
   * `mask` says which cells it lets through, `misses` by how many of its terms each cell fails, and `missed` by which one, so that
   * the counts beside a filter can be those that choosing it would give.
   */
  const ask = (matrix, text) => {
    const tree = parse(text);
    if (tree.parts.length > 200) throw new QueryError("the query has more than 200 terms");
    const misses = new Uint8Array(matrix.size);
    const missed = new Uint8Array(matrix.size);
    tree.parts.forEach((part, place) => {
      const mask = maskOf(matrix, part);
      for (let cell = 0; cell < mask.length; cell++) {
        if (!mask[cell]) {
          misses[cell]++;
          missed[cell] = place;
        }
      }
    });
    const mask = new Uint8Array(matrix.size);
    for (let cell = 0; cell < mask.length; cell++) mask[cell] = misses[cell] ? 0 : 1;
    return { tree, mask, misses, missed, needsMore: tree.parts.some(needsMore) };
  };

  const quoted = (value) => (/[\s,()"]/.test(value) || value === "" ? `"${value.replaceAll('"', "")}"` : value);

  /** The term of a filter: `field:a,b` on the first level, without a sign and without patterns. */
  const filterTerm = (tree, field) => tree.parts.find((part) => part.op === "term" && part.field === field && part.values.every((value) => !/^[<>=]|\.\.|\*/.test(value)));

  /** The query with a value of a field chosen, or no longer chosen. */
  const toggle = (text, field, value) => {
    const term = filterTerm(parse(text), field);
    const values = term ? term.values : [];
    const next = values.includes(value) ? values.filter((item) => item !== value) : [...values, value];
    const written = next.length ? `${field}:${next.map(quoted).join(",")}` : "";
    const whole = term ? text.slice(0, term.start) + written + text.slice(term.end) : `${text} ${written}`;
    return whole.replace(/ {2,}/g, " ").trim();
  };

  /** What could stand where the caret is: {start, end, options: [{text, about}]}. */
  const complete = (matrix, text, caret) => {
    const item = words(text).find((word) => word.kind === "term" && word.start <= caret && caret <= word.end) || { start: caret, end: caret, field: "", text: "", negated: false };
    const sign = item.negated ? "-" : "";
    const name = ALIASES[item.field] || item.field;
    let options = [];
    if (!name) {
      const typed = item.text.replaceAll('"', "").toLowerCase();
      options = Object.entries(FIELDS).filter(([field]) => field.startsWith(typed)).map(([field, { about }]) => ({ text: `${sign}${field}:`, about }));
      if (typed) options.push(...matrix.names.case.filter((value) => value.toLowerCase().includes(typed)).map((value) => ({ text: `${sign}case:${quoted(value)} `, about: "case" })));
    } else if (Object.hasOwn(FIELDS, name)) {
      const before = item.text.slice(0, item.text.lastIndexOf(",") + 1);
      const typed = item.text.slice(before.length).replaceAll('"', "").toLowerCase();
      const values = name === "is" ? IS : name === "feature" ? [...new Set(matrix.cases.flatMap((each) => each.features))].sort() : name === "title" ? matrix.cases.map((each) => each.title) : matrix.names[name] || [];
      options = values.filter((value) => value && value.toLowerCase().includes(typed)).map((value) => ({ text: `${sign}${item.field}:${before}${quoted(value)} `, about: "" }));
    }
    return { start: item.start, end: item.end, options: options.slice(0, 12) };
  };

  cumatrix.query = { FIELDS, QueryError, parse, ask, toggle, complete, filterTerm };
}
