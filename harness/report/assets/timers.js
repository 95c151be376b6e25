// Delayed actions.
"use strict";

const timers = (() => {
  const own = {
    /** Number of pending actions. Without any, the page stays the same until the user acts. */
    pending: 0,

    /**
     * Run an action later, once for several calls in a row.
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
