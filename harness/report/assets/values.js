// Tests of one value of a field: whole, in part, by pattern, by order.
"use strict";

const values = (() => {
  /** @typedef {(number | string)[]} Key compared part by part; what is missing counts as 0 */

  /**
   * How values of a field are ordered.
   *
   * @typedef {object} Scale
   * @property {(text: string) => Key} wanted key of what a query says
   * @property {(value: any) => Key} own key of a value of the data
   */

  /** @type {Record<string, (order: number) => boolean>} */
  const SIGNS = {
    "<": (order) => order < 0,
    "<=": (order) => order <= 0,
    ">": (order) => order > 0,
    ">=": (order) => order >= 0,
    "=": (order) => order === 0,
  };

  /** @param {string} text @returns {Key} */
  const targetKey = (text) => {
    const match = /^(sm|compute)_(\d+)([af]?)$/.exec(text);
    if (!match) throw new QueryError(`“${text}” is not a target: write sm_80 or compute_80`);
    return [match[1] === "sm" ? 0 : 1, Number(match[2]), match[3]];
  };

  /** @param {string} text @returns {Key} */
  const versionKey = (text) =>
    text
      .split(/[^\d]+/)
      .filter(Boolean)
      .map(Number);

  /** @param {Key} a @param {Key} b */
  const compare = (a, b) => {
    for (let place = 0; place < Math.max(a.length, b.length); place++) {
      const [left, right] = [a[place] ?? 0, b[place] ?? 0];
      if (left !== right) return left < right ? -1 : 1;
    }
    return 0;
  };

  /**
   * The order of a field's values, or null where they have none.
   *
   * @param {string} field
   * @param {Field} about
   * @param {string[]} names its values, in order where they are `ordered`
   * @returns {Scale | null}
   */
  const scaleOf = (field, about, names) => {
    if (about.number || about.numeric) {
      const wanted = (/** @type {string} */ text) => {
        if (text.trim() === "" || Number.isNaN(Number(text))) throw new QueryError(`“${text}” is not a number`);
        return [Number(text)];
      };
      return { wanted, own: (value) => [Number(value)] };
    }
    if (about.ordered) {
      const wanted = (/** @type {string} */ text) => {
        if (!names.includes(text)) throw new QueryError(`“${text}” is no ${field}`);
        return [names.indexOf(text)];
      };
      return { wanted, own: (value) => [names.indexOf(value)] };
    }
    if (about.target) return { wanted: targetKey, own: targetKey };
    if (!about.version) return null;
    const wanted = (/** @type {string} */ text) => {
      if (!/^\d/.test(text)) throw new QueryError(`“${text}” is not a version such as 12.4`);
      return versionKey(text);
    };
    return { wanted, own: versionKey };
  };

  /**
   * Whether a value is of the kind of a range's end: an architecture without suffix, real or virtual, as on the command
   * line.
   *
   * @param {Field} about
   * @param {any} value
   * @param {string} end
   */
  const alike = (about, value, end) =>
    !about.target || (value.split("_")[0] === end.split("_")[0] && !/[af]$/.test(value));

  /**
   * A test by order, or null where what is wanted is neither a range nor has a sign.
   *
   * @param {string} wanted
   * @param {Field} about
   * @param {Scale} scale
   * @returns {((value: any) => boolean) | null}
   */
  const byOrder = (wanted, about, scale) => {
    const range = /^(.*?)\.\.(.*)$/s.exec(wanted);
    if (range) {
      const [, from, to] = range;
      const [low, high] = [from && scale.wanted(from), to && scale.wanted(to)];
      // 12.0..12 takes in 12.9: an end stands for all that begins with it.
      const cut = about.version && high ? high.length : undefined;
      return (value) =>
        value !== "" &&
        alike(about, value, from || to) &&
        (!low || compare(scale.own(value), low) >= 0) &&
        (!high || compare(scale.own(value).slice(0, cut), high) <= 0);
    }
    const sign = /^([<>]=?|=)(.*)$/s.exec(wanted);
    if (!sign) return null;
    const [, how, to] = sign;
    const end = scale.wanted(to);
    if (how === "=" && !about.number && !about.numeric) return (value) => value === to;
    return (value) => value !== "" && alike(about, value, to) && SIGNS[how](compare(scale.own(value), end));
  };

  /**
   * A pattern in which a star stands for anything.
   *
   * @param {string} text
   */
  const glob = (text) => {
    const parts = text.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${parts.join(".*")}$`, "is");
  };

  /**
   * A test of one value of a field.
   *
   * @param {string} field
   * @param {string} wanted what the query says: a value, a pattern, a range, or a sign and a value
   * @param {string[]} names the values of the field
   * @returns {(value: any) => boolean}
   * @throws {QueryError} when `wanted` is no value of that field's kind
   */
  const tester = (field, wanted, names) => {
    const about = fields.FIELDS[field];
    const scale = scaleOf(field, about, names);
    const ordered = scale && byOrder(wanted, about, scale);
    if (ordered) return ordered;
    if (scale && about.number) {
      const [number] = scale.wanted(wanted);
      return (value) => value === number;
    }
    if (scale && about.numeric && !wanted.includes("*")) {
      const [number] = scale.wanted(wanted);
      // As it is written, or else as the number that it is: 4e4 finds 40000.
      return names.includes(wanted) ? (value) => value === wanted : (value) => value !== "" && Number(value) === number;
    }
    if (wanted.includes("*")) {
      const pattern = glob(wanted);
      return (value) => pattern.test(value);
    }
    if (about.version) {
      // 12 is every 12.x, 12.4 also 12.4@local and 12.4 with other headers.
      return (value) =>
        value === wanted || (wanted !== "" && value.startsWith(wanted) && /^[.+@]/.test(value.slice(wanted.length)));
    }
    const lower = wanted.toLowerCase();
    if (about.exact || about.target) return (value) => value.toLowerCase() === lower;
    return (value) => value.toLowerCase().includes(lower);
  };

  return { tester };
})();
