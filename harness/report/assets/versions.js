// Versions, compared according to PEP 440.
"use strict";

/** @typedef {{release: number[], pre: number[], post: number, dev: number, local: string | null}} Version */

const versions = (() => {
  const VERSION = new RegExp(
    [
      /^v?(?:(\d+)!)?(\d+(?:\.\d+)*)/, // epoch and release
      /(?:[-_.]?(a|alpha|b|beta|c|rc|pre|preview)[-_.]?(\d*))?/,
      /(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?/,
      /(?:[-_.]?(dev)[-_.]?(\d*))?/,
      /(?:\+([a-z\d]+(?:[-_.][a-z\d]+)*))?$/, // local
    ]
      .map(({ source }) => source)
      .join(""),
  );
  const PRE = [["a", "alpha"], ["b", "beta"], ["c", "rc", "pre", "preview"]]; // prettier-ignore

  /**
   * Parse a version; null if the text is not a version.
   *
   * @param {string} text
   * @returns {Version | null}
   */
  const parse = (text) => {
    const found = VERSION.exec(text.trim().toLowerCase());
    if (!found) return null;
    const [, epoch, release, pre, preNumber, dash, post, postNumber, dev, devNumber, local] = found;
    return {
      release: [epoch || 0, ...release.split(".")].map(Number),
      pre: pre ? [PRE.findIndex((names) => names.includes(pre)), Number(preNumber)] : [],
      post: post || dash ? Number(dash || postNumber) : -1,
      dev: dev ? Number(devNumber) : Infinity,
      local: local?.replace(/[-_]/g, ".") ?? null,
    };
  };

  /**
   * Compare numbers one by one; a missing one is 0.
   *
   * @param {number[]} a
   * @param {number[]} b
   */
  const byNumbers = (a, b) => {
    const size = Math.max(a.length, b.length);
    for (let at = 0; at < size; at++) {
      const [left, right] = [a[at] ?? 0, b[at] ?? 0];
      if (left !== right) return left < right ? -1 : 1;
    }
    return 0;
  };

  /** @param {Version} version its order within its release: pre-releases come first */
  const phase = ({ pre: [kind, number], post, dev }) => {
    const final = post < 0 && dev < Infinity ? -1 : 3;
    return [kind ?? final, number ?? 0, post, dev];
  };

  /** @param {Version} a @param {Version} b without their local parts */
  const compare = (a, b) => byNumbers(a.release, b.release) || byNumbers(phase(a), phase(b));

  /** @param {Version} version */
  const isPre = ({ pre, dev }) => pre.length > 0 || dev < Infinity;

  /**
   * A test for one comparison: `>=12.4`, `==13.*`; null if the text is not a comparison.
   *
   * @param {string} text
   * @returns {((version: Version) => boolean) | null}
   */
  const clause = (text) => {
    const [, symbol = "", value = ""] = /^\s*([=!<>]=|[<>])\s*(.*?)\s*$/.exec(text) || [];
    const same = symbol === "==" || symbol === "!=";
    const prefix = same && value.endsWith(".*");
    const wanted = parse(prefix ? value.slice(0, -2) : value);
    if (!symbol || !wanted || (wanted.local !== null && (!same || prefix))) return null;
    if (prefix && (isPre(wanted) || wanted.post >= 0)) return null;
    const { release, local } = wanted;
    /** @param {Version} found */
    const isEqual = (found) =>
      prefix
        ? byNumbers(found.release.slice(0, release.length), release) === 0
        : compare(found, wanted) === 0 && (local === null || found.local === local);
    /** @type {Record<string, (found: Version) => boolean>} */
    const tests = {
      "==": isEqual,
      "!=": (found) => !isEqual(found),
      "<=": (found) => compare(found, wanted) <= 0,
      ">=": (found) => compare(found, wanted) >= 0,
      // A pre-release of the limit is not below it, and a post-release or a local build is not above it.
      "<": (found) =>
        compare(found, wanted) < 0 && (isPre(wanted) || !isPre(found) || byNumbers(found.release, release) !== 0),
      ">": (found) =>
        compare(found, wanted) > 0 && (wanted.post >= 0 || found.post < 0 || byNumbers(found.release, release) !== 0),
    };
    return tests[symbol];
  };

  /**
   * A test for a specifier: comparisons with commas, as in `>=12.4,<13`; null if the text is not a specifier.
   *
   * @param {string} text
   * @returns {((version: string) => boolean) | null}
   */
  const specifier = (text) => {
    const clauses = text.split(",").filter((part) => part.trim());
    const tests = clauses.map(clause).filter((test) => test !== null);
    if (tests.length < clauses.length) return null;
    return (version) => {
      const found = parse(version);
      return found !== null && tests.every((test) => test(found));
    };
  };

  return { parse, specifier };
})();
