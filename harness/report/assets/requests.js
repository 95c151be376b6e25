// The request of a question, and the command that tries it. The same as harness/answers/query.py and answer.py.
"use strict";

/**
 * @typedef {object} Requested
 * @property {string[]} targets
 * @property {string[] | null} toolkits
 * @property {Map<string, string[] | null> | null} tools versions by backend, null for all
 * @property {Map<string, string[]>} headers
 * @property {Map<string, string[]>} hosts
 * @property {string[]} words
 */

const requests = (() => {
  /**
   * The request of a question.
   *
   * @param {Chip[]} chips
   * @param {Vocabulary} known
   * @returns {Requested}
   */
  const read = (chips, known) => {
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
    const named = (/** @type {string} */ kind) => {
      /** @type {Map<string, string[]>} */
      const found = new Map();
      for (const chip of chips.filter((each) => each.kind === kind)) {
        found.set(chip.name, [...(found.get(chip.name) || []), ...chip.values]);
      }
      return found;
    };
    const [headers, hosts] = [named("header"), named("host")];
    const free = chips.filter(({ kind }) => ["word", "header", "host"].includes(kind));
    // Without a named tool, a host compiler selects the tools that use one.
    if (!tools.size && hosts.size) for (const backend of known.hosted) tools.set(backend, null);
    const narrow = question.narrowest(chips).flatMap((chip) => chip.values);
    return {
      targets: values("target").filter((each) => narrow.includes(each)),
      toolkits: toolkits.length ? toolkits : null,
      tools: tools.size ? tools : null,
      headers,
      hosts,
      words: [...new Set(free.map(({ name }) => name))],
    };
  };

  /**
   * The command that tries an untried combination. The same as harness/answers/answer.py.
   *
   * @param {Requested} of
   * @param {Chip[]} chips
   * @param {Vocabulary} known
   * @param {string} target
   * @param {string} name of the case, if there is one
   */
  const command = (of, chips, known, target, name) => {
    const first = new Map(known.hosted.slice(0, 1).map((backend) => [backend, null]));
    const tools = chips.some(({ kind }) => kind === "tool") || !of.hosts.size ? of.tools : first;
    const others = Object.entries(known.builders).flatMap(([start, names]) => (target.startsWith(start) ? names : []));
    /** @type {[string, string[] | null][]} */
    const backends = tools?.size ? [...tools] : others.slice(0, 1).map((name) => [name, null]);
    const python = backends.length > 0 && backends.every(([backend]) => known.python.includes(backend));
    const program = python ? "kernel.py" : "kernel.cu";
    const parts = [name ? `cumatrix run ${name.replace(/(.)@[^@]*$/, "$1")}` : `cumatrix try ${program}`];
    for (const [backend, versions] of backends) {
      const library = known.libraries[backend];
      const option = library ? `--with ${library}=${versions?.at(-1) || "all"}` : `-b ${backend}`;
      if (!parts.includes(option)) parts.push(option);
    }
    for (const [library, versions] of of.headers) parts.push(`--library ${library}=${versions.join() || "all"}`);
    const hosts = [...of.hosts].flatMap(([host, versions]) => versions.map((version) => `${host}-${version}`));
    const programs = hosts.map((host) => (/^(gcc|clang)-\d{1,2}$/.test(host) ? host : `${host}=/path/to/g++`));
    if (programs.length) parts.push(`--host-compiler ${programs.join()}`);
    if (of.toolkits) parts.push(`-t ${of.toolkits.join()}`);
    return [...parts, `-a ${target}`].join(" ");
  };

  return { read, command };
})();
