// The table: only what is in view is in the document, so that 100,000 cells scroll like a hundred.
"use strict";

{
  const { h } = cumatrix;
  const ROW = 28;
  const NARROW = 28;
  const WIDE = 84;
  // What is out of view is drawn a moment later, so that the answer to a filter is seen at once.
  const AHEAD = 10;
  const PAUSE = 200;
  // Fewer cells than this are all put into the document, where the browser's own search and its printer find them.
  const ALL = 3000;

  const BLANK = h("td", { role: "gridcell", tabindex: "-1", class: "c" }, h("span"));

  /** Marks from what eyes should find first to what means nothing. */
  const gravity = (marks) => marks.map((mark, place) => (mark.good ? 200 - place : 100 + place) + (mark.key === "unsupported" ? 500 : 0));

  /** Levels of headings: backend and library in one; what would stand above one column only goes into its own label. */
  const levels = (columns, least) => {
    const found = [];
    columns.dimensions.forEach((key, place) => {
      if (key === "library" && columns.dimensions[place - 1] === "backend") found.at(-1).push(place);
      else found.push([place]);
    });
    const spans = (upto) => new Set(columns.entries.map((entry) => entry.slice(0, upto).join())).size;
    const groups = [];
    while (found.length > 1 && columns.entries.length / spans(found[0].at(-1) + 1) >= least) groups.push(found.shift());
    return { groups, leaf: found.flat() };
  };

  cumatrix.Grid = class {
    /** @param {{onCell, onFold}} actions what to do when cells are chosen and groups opened or closed */
    constructor(viewport, actions) {
      this.viewport = viewport;
      this.actions = actions;
      this.at = { line: 0, column: -1 };
      this.table = h("table", { role: "treegrid", class: "matrix", "aria-label": "Matrix", "aria-describedby": "grid-help" });
      viewport.append(this.table);
      this.extend = cumatrix.later(PAUSE, () => this.draw(false, AHEAD));
      this.counts = new Uint32Array(0);
      viewport.addEventListener("scroll", () => requestAnimationFrame(() => this.draw(false)), { passive: true });
      new ResizeObserver(() => this.lines && this.draw(false)).observe(viewport);
      this.table.addEventListener("click", (event) => this.click(event));
      this.table.addEventListener("keydown", (event) => this.key(event));
      this.table.addEventListener("focusin", (event) => this.focused(event));
      this.table.addEventListener("mouseover", (event) => this.hint(event.target.closest("td[data-column]")));
      addEventListener("beforeprint", () => this.lines && this.draw(true, Infinity));
      addEventListener("afterprint", () => this.lines && this.draw(true));
    }

    /** Show lines and columns of a pivot. */
    show(matrix, pivot, lines, chosen) {
      this.matrix = matrix;
      this.pivot = pivot;
      this.lines = lines;
      this.chosen = chosen;
      if (this.counts.length !== matrix.marks.length) {
        this.counts = new Uint32Array(matrix.marks.length);
        const weights = gravity(matrix.marks);
        this.gravest = matrix.marks.map((_, place) => place).sort((a, b) => weights[a] - weights[b]);
      }
      const across = pivot.columns.dimensions;
      this.width = (across.includes("target") || across.includes("variant")) && across.length > 1 ? NARROW : WIDE;
      this.heads = levels(pivot.columns, this.width === WIDE ? 1.2 : 2.5);
      this.table.classList.toggle("wide", this.width === WIDE);
      this.firsts = pivot.columns.entries.map((_, column) => this.begins(column));
      this.longest = Math.max(4, ...pivot.columns.entries.map((entry) => this.labels(this.heads.leaf, entry).length));
      this.at.line = Math.min(this.at.line, Math.max(0, lines.length - 1));
      this.at.column = Math.min(this.at.column, pivot.columns.entries.length - 1);
      this.table.setAttribute("aria-rowcount", String(lines.length + this.heads.groups.length + 1));
      this.table.setAttribute("aria-colcount", String(pivot.columns.entries.length + 1));
      this.draw(true);
    }

    label(place, code) {
      const key = this.pivot.columns.dimensions[place];
      const name = this.matrix.names[key][code];
      return key === "toolkit" ? `CUDA ${name.replace("+headers", ", headers ")}` : name;
    }

    labels(places, entry) {
      return places.map((place) => this.label(place, entry[place])).filter(Boolean).join(" ");
    }

    /** Draw what is in view and so many lines and columns around it; unless `anew`, only when that is not drawn yet. */
    draw(anew, ahead = 1) {
      const columns = this.pivot.columns.entries.length;
      const box = this.viewport;
      // "narrow" is the width of the screen: the headings of rows shrink with it, as the style sheet has it.
      const heading = box.clientWidth < 640 ? 150 : 300;
      const all = ahead > 1 && this.lines.length * columns <= (ahead === Infinity ? 40000 : ALL);
      const rowAt = Math.floor(box.scrollTop / ROW);
      const columnAt = Math.floor(box.scrollLeft / this.width);
      const tall = Math.ceil(box.clientHeight / ROW);
      const shown = Math.ceil((box.clientWidth - heading) / this.width) + 1;
      const around = all ? Infinity : ahead > 1 ? ahead : 0;
      const window = (at, count, end, margin) => [Math.max(0, Math.min(at, end - 1) - margin), Math.min(end, at + count + margin)];
      const [top, bottom] = window(rowAt, tall, this.lines.length, around);
      const [left, right] = window(columnAt, shown, columns, around);
      const drawn = this.drawn;
      if (!anew && drawn && drawn.top <= top && drawn.bottom >= bottom && drawn.left <= left && drawn.right >= right && drawn.heading === heading) return;
      this.drawn = { top, bottom, left, right, heading };
      if (ahead === 1) this.extend();
      const hadFocus = this.table.contains(document.activeElement);
      const pad = (count) => {
        const row = h("tr", { "aria-hidden": "true", class: "pad" }, h("td", { colspan: right - left + 3 }));
        row.firstChild.style.height = `${count * ROW}px`;
        return row;
      };
      // The rows that are there are filled anew, which takes a fraction of making them.
      const headings = JSON.stringify([left, columns, heading, this.width, this.pivot.columns.dimensions, this.pivot.columns.entries.slice(left, right)]);
      const old = this.headings ? [...this.table.tBodies[0].rows].filter((row) => row.className !== "pad") : [];
      const rows = [];
      for (let line = top; line < bottom; line++) {
        const row = old[line - top] || h("tr", { role: "row" }, h("th"), h("td", { "aria-hidden": "true", class: "gap" }), h("td", { "aria-hidden": "true", class: "gap" }));
        rows.push(this.refill(this.fit(row, left, right), line, left));
      }
      if (top) rows.unshift(pad(top));
      if (bottom < this.lines.length) rows.push(pad(this.lines.length - bottom));
      if (old.length) {
        const body = this.table.tBodies[0];
        const kept = new Set(rows);
        for (const row of [...body.rows]) if (!kept.has(row)) row.remove();
        let after = body.firstChild;
        for (const row of rows) {
          if (row === after) after = after.nextSibling;
          else body.insertBefore(row, after);
        }
      }
      if (headings !== this.headings || !old.length) {
        const widths = [heading, left * this.width, ...Array(Math.max(0, right - left)).fill(this.width), (columns - right) * this.width];
        const group = h("colgroup", {}, widths.map((width) => {
          const column = h("col");
          column.style.width = `${width}px`;
          return column;
        }));
        this.table.style.setProperty("--heading", `${heading}px`);
        this.table.style.width = `${heading + columns * this.width}px`;
        if (old.length) {
          this.table.firstChild.replaceWith(group);
          this.table.tHead.replaceWith(this.head(left, right));
        } else this.table.replaceChildren(group, this.head(left, right), h("tbody", {}, rows));
        this.headings = headings;
      }
      // The element that has it may stand for another cell by now.
      if (hadFocus) this.focus();
    }

    head(left, right) {
      const { entries } = this.pivot.columns;
      const head = h("thead");
      const count = this.heads.groups.length;
      const empty = () => h("td", { "aria-hidden": "true", class: "gap" });
      const corner = h("th", { class: "corner", scope: "col", rowspan: count + 1, role: "columnheader", "aria-colindex": "1" }, this.corner());
      const rows = [...Array(count + 1)].map((_, place) => h("tr", { role: "row", "aria-rowindex": String(place + 1) }));
      rows[0].append(corner);
      this.heads.groups.forEach((places, level) => {
        const row = rows[level];
        row.append(empty());
        const upto = places.at(-1) + 1;
        for (let start = left; start < right; ) {
          let end = start + 1;
          while (end < right && entries[end].slice(0, upto).join() === entries[start].slice(0, upto).join()) end++;
          const text = this.labels(places, entries[start]);
          row.append(h("th", { class: "group", scope: "colgroup", colspan: end - start, role: "columnheader", "aria-colindex": String(start + 2), title: text }, h("span", {}, text)));
          start = end;
        }
        row.append(empty());
      });
      const row = rows[count];
      row.append(empty());
      const texts = entries.slice(left, right).map((entry) => this.labels(this.heads.leaf, entry));
      texts.forEach((text, place) => {
        const begins = this.firsts[left + place];
        row.append(h("th", { class: `leaf${begins ? " begins" : ""}${this.width === NARROW ? " upright" : ""}`, scope: "col", role: "columnheader", "aria-colindex": String(left + place + 2), title: text }, h("span", {}, text)));
      });
      row.append(empty());
      if (this.width === NARROW) row.style.height = `${Math.min(190, this.longest * 6.4 + 14)}px`;
      head.append(...rows);
      return head;
    }

    corner() {
      const names = { topic: "Topic", case: "Case", variant: "variant", backend: "Backend", library: "version", toolkit: "CUDA", target: "target" };
      return this.pivot.rows.dimensions.filter((key) => key !== "topic" || this.pivot.rows.dimensions.length === 1).map((key) => names[key]).join(", ");
    }

    /** Whether a column is the first of its group. */
    begins(column) {
      const upto = (this.heads.groups.at(-1)?.at(-1) ?? -1) + 1;
      const { entries } = this.pivot.columns;
      return upto > 0 && (column === 0 || entries[column].slice(0, upto).join() !== entries[column - 1].slice(0, upto).join());
    }

    /** Give a row the cells of some columns. */
    fit(row, left, right) {
      const last = row.lastChild;
      for (let more = right - left - (row.cells.length - 3); more > 0; more--) last.before(BLANK.cloneNode(true));
      while (row.cells.length - 3 > right - left) last.previousSibling.remove();
      let cell = row.children[2];
      for (let column = left; column < right; column++, cell = cell.nextSibling) {
        if (cell.column === column) continue;
        cell.column = column;
        cell.setAttribute("aria-colindex", column + 2);
        cell.dataset.column = column;
      }
      return row;
    }

    /** Make a row tell of a line. */
    refill(row, number, left) {
      const line = this.lines[number];
      row.setAttribute("aria-rowindex", number + this.heads.groups.length + 2);
      row.setAttribute("aria-level", line.depth + 1);
      if (line.leaf) row.removeAttribute("aria-expanded");
      else row.setAttribute("aria-expanded", line.open);
      row.className = line.leaf ? "leaf" : `group depth${line.depth}`;
      const label = line.label || "(no variant)";
      const title = line.dimension === "case" ? this.matrix.cases[line.code].title : "";
      const inner = h("span", {}, line.leaf ? null : h("i", { class: "fold", "aria-hidden": "true" }, line.open ? "▾" : "▸"), line.dimension === "toolkit" ? `CUDA ${label}` : label, title ? h("small", {}, ` ${title}`) : null);
      inner.style.paddingLeft = `${(line.depth - (this.pivot.rows.dimensions[0] === "topic" ? 1 : 0)) * 12 + (line.leaf ? 12 : 0)}px`;
      row.firstChild.replaceWith(h("th", { scope: "row", role: "rowheader", "aria-colindex": "1", tabindex: this.tab(number, -1), "data-line": number, title: title ? `${label}: ${title}` : label }, inner));
      for (let place = 2; place < row.cells.length - 1; place++) this.fill(row.cells[place], number, line, left + place - 2);
      return row;
    }

    /** What stands where a line and a column meet: how many cells of each mark, the gravest kinds first. */
    sum(line, column) {
      const { counts } = this;
      const marks = this.matrix.outcomes.mark;
      const { outcome } = this.matrix;
      counts.fill(0);
      let count = 0;
      let first = -1;
      this.pivot.cells(line.from, line.to, column, (cell) => {
        counts[marks[outcome[cell]]]++;
        if (first < 0) first = cell;
        count++;
      });
      return { count, first, kinds: count === 1 ? [marks[outcome[first]]] : this.gravest.filter((kind) => counts[kind]) };
    }

    /** Make a cell tell of a line; what it tells already is left alone. */
    fill(cell, number, line, column) {
      if (cell.line !== number) cell.dataset.line = cell.line = number;
      const tab = this.tab(number, column);
      if (cell.tabIndex !== tab) cell.tabIndex = tab;
      if (cell.title) cell.removeAttribute("title");
      const { count, first, kinds } = line.open ? { count: 0, first: -1, kinds: [] } : this.sum(line, column);
      const chosen = count === 1 && first === this.chosen;
      const told = `${line.open} ${this.firsts[column]} ${this.width} ${count} ${chosen} ${kinds.map((kind) => `${kind}=${this.counts[kind]}`)}`;
      if (cell.told === told) return;
      cell.told = told;
      const inside = cell.firstChild;
      if (inside.hasAttribute("style")) inside.removeAttribute("style");
      cell.className = `c${line.open ? " open" : count ? "" : " empty"}${this.firsts[column] ? " begins" : ""}`;
      if (chosen) cell.setAttribute("aria-selected", "true");
      else cell.removeAttribute("aria-selected");
      if (count === 1) {
        const mark = this.matrix.marks[kinds[0]];
        inside.textContent = mark.letter;
        inside.className = `m ${mark.style}`;
        cell.setAttribute("aria-label", mark.word);
      } else if (count) this.many(cell, inside, count, kinds);
      else {
        inside.textContent = inside.className = "";
        // Everything of an open group stands below it.
        cell.setAttribute("aria-label", line.open ? "see below" : "not run");
      }
    }

    /** A cell that stands for several: its letters and numbers, and a bar with the share of each kind. */
    many(cell, inside, count, kinds) {
      const { counts } = this;
      const { marks } = this.matrix;
      const telling = kinds.filter((kind) => marks[kind].key !== "unsupported");
      const bad = telling.reduce((sum, kind) => sum + (marks[kind].good ? 0 : counts[kind]), 0);
      const letters = !telling.length ? kinds : bad ? [kinds[0]] : telling.length > 2 ? [...telling].sort((a, b) => counts[b] - counts[a]).slice(0, 2) : telling;
      let text = letters.map((kind) => marks[kind].letter).join("");
      if (this.width === WIDE && telling.length) {
        const supported = telling.reduce((sum, kind) => sum + counts[kind], 0);
        text += bad ? ` ${cumatrix.count(bad)}/${cumatrix.count(supported)}` : ` ${cumatrix.count(supported)}`;
      }
      inside.textContent = text;
      inside.className = `m many ${letters.length > 1 ? "mixed" : marks[letters[0]].style}`;
      if (kinds.length > 1) {
        let start = 0;
        const stops = kinds.slice().sort((a, b) => a - b).map((kind) => {
          const end = start + (100 * counts[kind]) / count;
          const stop = `var(--${marks[kind].style}-b) ${start.toFixed(1)}% ${end.toFixed(1)}%`;
          start = end;
          return stop;
        });
        inside.style.setProperty("--bar", `linear-gradient(90deg, ${stops.join(", ")})`);
      }
      cell.setAttribute("aria-label", `${cumatrix.count(count)} cells: ${kinds.map((kind) => `${cumatrix.count(counts[kind])} ${marks[kind].word}`).join(", ")}`);
    }

    /** A tooltip, made when the pointer is there. */
    hint(cell) {
      if (!cell || cell.title || this.lines[cell.dataset.line].open) return;
      const line = this.lines[cell.dataset.line];
      const column = Number(cell.dataset.column);
      const { count, first } = this.sum(line, column);
      const across = this.pivot.columns.dimensions.map((_, place) => this.label(place, this.pivot.columns.entries[column][place])).filter(Boolean).join(" ");
      const said = count === 1 ? this.matrix.message(first) : "";
      cell.title = `${line.path.filter(Boolean).join(" ")}\n${across}\n${cell.getAttribute("aria-label")}${said ? `\n${said}` : ""}`;
    }

    tab(line, column) {
      return this.at.line === line && this.at.column === column ? 0 : -1;
    }

    place(event) {
      const cell = event.target.closest("[data-line]");
      return cell && { line: Number(cell.dataset.line), column: Number(cell.dataset.column ?? -1) };
    }

    click(event) {
      const place = this.place(event);
      if (!place) return;
      this.move(place.line, place.column);
      this.choose();
    }

    /** Open what the reader is at. */
    choose() {
      const line = this.lines[this.at.line];
      if (this.at.column < 0) {
        if (!line.leaf) this.actions.onFold(line);
        return;
      }
      if (line.open) return;
      const cells = [];
      this.pivot.cells(line.from, line.to, this.at.column, (cell) => cells.push(cell));
      if (cells.length) this.actions.onCell(cells, line);
    }

    key(event) {
      if (event.altKey || event.metaKey || !this.place(event)) return;
      const { line, column } = this.at;
      const page = Math.max(1, Math.floor((this.viewport.clientHeight - this.table.tHead.offsetHeight) / ROW) - 1);
      const [lastLine, lastColumn] = [this.lines.length - 1, this.pivot.columns.entries.length - 1];
      const here = this.lines[line];
      const to = {
        ArrowDown: [line + 1, column],
        ArrowUp: [line - 1, column],
        ArrowRight: [line, column + 1],
        ArrowLeft: [line, column - 1],
        PageDown: [line + page, column],
        PageUp: [line - page, column],
        Home: event.ctrlKey ? [0, -1] : [line, -1],
        End: event.ctrlKey ? [lastLine, lastColumn] : [line, lastColumn],
      }[event.key];
      if (event.key === "Enter" || event.key === " ") this.choose();
      else if (column === -1 && !here.leaf && ((event.key === "ArrowRight" && !here.open) || (event.key === "ArrowLeft" && here.open))) this.actions.onFold(here);
      else if (to) this.move(Math.max(0, Math.min(lastLine, to[0])), Math.max(-1, Math.min(lastColumn, to[1])));
      else return;
      event.preventDefault();
    }

    focused(event) {
      const place = this.place(event);
      if (place && (place.line !== this.at.line || place.column !== this.at.column)) this.move(place.line, place.column, false);
    }

    /** Go to a place, and bring it into view. */
    move(line, column, focus = true) {
      this.table.querySelector('tbody [tabindex="0"]')?.setAttribute("tabindex", "-1");
      this.at = { line, column };
      const box = this.viewport;
      const headings = this.table.tHead.offsetHeight;
      const [top, left] = [line * ROW, Math.max(0, column) * this.width];
      if (top < box.scrollTop) box.scrollTop = top;
      if (top + ROW > box.scrollTop + box.clientHeight - headings - 16) box.scrollTop = top + ROW - box.clientHeight + headings + 16;
      if (column < 0 || left < box.scrollLeft) box.scrollLeft = left;
      if (left + this.width > box.scrollLeft + box.clientWidth - this.drawn.heading - 16) box.scrollLeft = left + this.width - box.clientWidth + this.drawn.heading + 16;
      this.draw(false);
      this.focus(focus);
    }

    focus(really = true) {
      const { line, column } = this.at;
      const cell = this.table.querySelector(column < 0 ? `tbody th[data-line="${line}"]` : `td[data-line="${line}"][data-column="${column}"]`);
      if (!cell) return;
      cell.tabIndex = 0;
      if (really || document.activeElement === document.body) cell.focus({ preventScroll: true });
    }

    /** Mark a cell as the one that is told of, and bring it into view. */
    select(cell) {
      this.chosen = cell;
      const before = this.table.querySelector('[aria-selected="true"]');
      if (before) {
        before.removeAttribute("aria-selected");
        before.told = "";
      }
      const [row, column] = cell < 0 ? [-1, -1] : [this.pivot.rows.place[cell], this.pivot.columns.place[cell]];
      const line = row < 0 ? -1 : this.lines.findIndex((each) => !each.open && each.from <= row && row < each.to);
      if (line < 0) return;
      this.move(line, column, false);
      this.table.querySelector(`td[data-line="${line}"][data-column="${column}"]`)?.setAttribute("aria-selected", "true");
    }
  };
}
