// Data, loaded as scripts, because a page opened from disk can load nothing else. docs/page.md describes the format.
"use strict";

/** The files of data call it, each with its name and content. */
const cumatrix = (() => {
  /** @typedef {{promise: Promise<any>, resolve: (value: any) => void}} Waiting */

  /** @type {Map<string, Waiting>} */
  const waiting = new Map();
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("cumatrix", {
    /** @param {string} name */
    createScriptURL: (name) => {
      if (!/^data\/[\w.-]+\.js$/.test(name)) throw new TypeError("not a file of data");
      return name;
    },
  });

  /**
   * @param {string} packed compressed JSON, in base64
   * @returns {Promise<any>}
   */
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const text = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(text).json();
  };

  /**
   * Called by each file of data.
   *
   * @param {string} name
   * @param {string} packed
   */
  const receive = (name, packed) => {
    const promise = unpack(packed);
    const known = waiting.get(name);
    if (known) known.resolve(promise);
    else waiting.set(name, { promise, resolve: () => {} });
  };

  /**
   * The content of data/NAME.js, loaded on first use.
   *
   * @param {string} name
   * @returns {Promise<any>} rejected with a sentence for the reader if the file does not exist
   */
  const load = (name) => {
    const known = waiting.get(name);
    if (known) return known.promise;
    /** @type {Waiting["resolve"]} */
    let resolve = () => {};
    const promise = new Promise((done, reject) => {
      resolve = done;
      const script = document.createElement("script");
      const address = `data/${name}.js`;
      script.addEventListener("error", () => {
        waiting.delete(name);
        reject(new Error(`${address} cannot be loaded: is the whole folder of the report there?`));
      });
      script.src = policy ? policy.createScriptURL(address) : address;
      document.head.append(script);
    });
    waiting.set(name, { promise, resolve });
    return promise;
  };

  return { receive, load };
})();
