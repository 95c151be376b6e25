// Numbers, names and values in readable form.
"use strict";

const text = (() => {
  // One shared formatter: toLocaleString creates a new one each time.
  const numbers = new Intl.NumberFormat("en");

  /**
   * A number with commas between thousands.
   *
   * @param {number} number
   */
  const count = (number) => (number < 1000 ? String(number) : numbers.format(number));

  /**
   * A key of a record as words.
   *
   * @param {string} key
   */
  const words = (key) => key.replaceAll("_", " ");

  /**
   * Any value of a record in one line.
   *
   * @param {unknown} value
   * @returns {string}
   */
  const spell = (value) => {
    if (Array.isArray(value)) return value.map(spell).join(", ");
    if (!value || typeof value !== "object") return String(value);
    return Object.entries(value)
      .map(([key, inner]) => `${key} ${spell(inner)}`)
      .join(", ");
  };

  /**
   * A word quoted for a POSIX shell.
   *
   * @param {string} word
   */
  const shell = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  return { count, words, spell, shell };
})();
