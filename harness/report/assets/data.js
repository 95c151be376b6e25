// Data: loaded as scripts, because a page that was opened from disk may load nothing else. docs/page.md tells of the format.
"use strict";

{
  const waiting = new Map();
  const policy = globalThis.trustedTypes?.createPolicy("cumatrix", {
    createScriptURL: (name) => {
      if (!/^data\/[\w.-]+\.js$/.test(name)) throw new TypeError("not a file of data");
      return name;
    },
  });

  /** Called by each file of data with its name and its content as JSON. */
  cumatrix.receive = (name, text) => {
    const value = JSON.parse(text);
    const known = waiting.get(name);
    if (known) known.resolve(value);
    else waiting.set(name, { promise: Promise.resolve(value) });
  };

  /** The content of data/NAME.js, loaded when it is first asked for. */
  cumatrix.load = (name) => {
    if (!waiting.has(name)) {
      const entry = {};
      entry.promise = new Promise((resolve, reject) => {
        entry.resolve = resolve;
        const script = document.createElement("script");
        const address = `data/${name}.js`;
        script.addEventListener("error", () => {
          waiting.delete(name);
          reject(new Error(`${address} cannot be loaded: is the whole folder of the report there?`));
        });
        script.src = policy ? policy.createScriptURL(address) : address;
        document.head.append(script);
      });
      waiting.set(name, entry);
    }
    return waiting.get(name).promise;
  };

  const OF_ROW = ["topic", "case", "variant"];
  const OF_COLUMN = ["backend", "library", "toolkit", "target"];
  const OF_OUTCOME = ["mark", "status", "stage", "verdict", "environment", "run"];

  /** The matrix, with for each cell its row, its column and its outcome as numbers. */
  cumatrix.Matrix = class {
    constructor(raw) {
      Object.assign(this, raw);
      this.marks.forEach((mark) => (mark.style = mark.key.replaceAll("_", "-")));
      this.size = this.cells.length;
      this.rows.topic = this.rows.case.map((place) => this.cases[place].topic);
      this.row = new Uint32Array(this.size);
      this.column = new Uint32Array(this.size);
      this.outcome = Uint32Array.from(this.cells);
      let at = 0;
      this.rows.pattern.forEach((pattern, row) => {
        for (const column of this.patterns[pattern]) {
          this.row[at] = row;
          this.column[at++] = column;
        }
      });
      this.codes = new Map();
      this.more = null;
    }

    /** Where the values of a dimension are: one array of codes, and which code each cell has. */
    source(dimension) {
      if (OF_ROW.includes(dimension)) return { codes: this.rows[dimension], of: this.row };
      if (OF_COLUMN.includes(dimension)) return { codes: this.columns[dimension], of: this.column };
      if (OF_OUTCOME.includes(dimension)) return { codes: this.outcomes[dimension], of: this.outcome };
      return null;
    }

    /** Number of the value of a dimension, for each cell. */
    codesOf(dimension) {
      if (!this.codes.has(dimension)) {
        const { codes, of } = this.source(dimension);
        this.codes.set(dimension, Uint32Array.from(of, (place) => codes[place]));
      }
      return this.codes.get(dimension);
    }

    /** The value of a dimension of a cell. */
    value(cell, dimension) {
      const { codes, of } = this.source(dimension);
      return this.names[dimension][codes[of[cell]]];
    }

    mark(cell) {
      return this.marks[this.outcomes.mark[this.outcome[cell]]];
    }

    /** The file of data that tells of a cell. */
    chunk(cell) {
      return `cells-${Math.floor(cell / this.cellsPerFile)}`;
    }

    /** What a link to a cell says: case, variant, backend, library, toolkit, target. */
    address(cell) {
      return [...["case", "variant"], ...OF_COLUMN].map((key) => this.value(cell, key).replace(/[%;]/g, encodeURIComponent)).join(";");
    }

    /** The cell that a link names, or -1. */
    find(address) {
      const parts = address.split(";").map((part) => {
        try {
          return decodeURIComponent(part);
        } catch {
          return part;
        }
      });
      const codes = [...["case", "variant"], ...OF_COLUMN].map((key, place) => this.names[key].indexOf(parts[place]));
      const row = this.rows.case.findIndex((code, at) => code === codes[0] && this.rows.variant[at] === codes[1]);
      const column = this.columns.backend.findIndex((_, at) => OF_COLUMN.every((key, place) => this.columns[key][at] === codes[place + 2]));
      if (row < 0 || column < 0) return -1;
      let at = 0;
      for (let before = 0; before < row; before++) at += this.patterns[this.rows.pattern[before]].length;
      const place = this.patterns[this.rows.pattern[row]].indexOf(column);
      return place < 0 ? -1 : at + place;
    }

    /** What the compiler said of a cell, once the texts are there. */
    message(cell) {
      return this.more ? this.more.texts[this.more.message[cell]] : "";
    }
  };
}
