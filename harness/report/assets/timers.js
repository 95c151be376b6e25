// What happens a moment later.
"use strict";

const timers = (() => {
  const own = {
    /** How many things are to happen soon; when there are none, what is shown stays until the user does something. */
    pending: 0,

    /**
     * Run something soon, but once for many calls in a row.
     *
     * @template {unknown[]} T
     * @param {number} milliseconds
     * @param {(...values: T) => void} action
     * @returns {(...values: T) => void}
     */
    later: (milliseconds, action) => {
      let timer = 0;
      return (...values) => {
        if (timer) clearTimeout(timer);
        else own.pending++;
        timer = window.setTimeout(() => {
          timer = 0;
          own.pending--;
          action(...values);
        }, milliseconds);
      };
    },
  };
  return own;
})();
