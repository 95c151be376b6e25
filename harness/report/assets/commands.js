// Commands that run one cell again.
"use strict";

/**
 * Everything known about a cell: the keys in docs/records.md, and its history, known causes and other runs.
 *
 * @typedef {Record<string, any>} CellRecord
 */

const commands = (() => {
  /**
   * The requirements of a cell's environment.
   *
   * @param {CellRecord} record
   */
  const requirements = (record) => {
    const asked = Object.entries(record.toolchain?.requested?.packages || {});
    // Some libraries have a wheel for each CUDA, such as cupy-cuda12x. "cupy" next to it is only the import name.
    const imported = new Set(asked.map(([name]) => /^(.+)-cuda\d+x$/.exec(name)?.[1]));
    return asked
      .filter(([name]) => name !== "python" && !imported.has(name))
      .map(([name, version]) => `${name}==${version}`);
  };

  /**
   * Commands that run a cell again, one per line.
   *
   * @param {(key: string) => string} value the cell's value of an axis
   * @param {CellRecord} record
   */
  const reproduce = (value, record) => {
    const variant = value("variant");
    const toolkit = value("toolkit");
    const lines = [];
    const packages = value("library") ? requirements(record) : [];
    if (packages.length) lines.push(["pip", "install", ...packages].map(text.shell).join(" "));
    // A toolkit of the machine is already installed.
    if (!toolkit.includes("@")) {
      const releases = toolkit.split("+headers").map(text.shell).join(",");
      lines.push(`cumatrix toolkits install ${releases}`);
    }
    const where = ["-b", value("backend"), "-t", toolkit, "-a", value("target"), "--no-cache"].map(text.shell);
    where.push(...host(value).map(text.shell));
    if (record.program) {
      // For a program without a case, the variant contains its options in shell syntax.
      const program = text.shell(caseOf(value, record));
      lines.push(["cumatrix", "try", program, variant, ...where].filter(Boolean).join(" "));
    } else {
      const chosen = variant ? ["--where", text.shell(`variant == ${JSON.stringify(variant)}`)] : [];
      lines.push(["cumatrix", "run", text.shell(caseOf(value, record)), ...where, ...chosen].join(" "));
    }
    return lines.join("\n");
  };

  /**
   * The name of a cell's case or program in commands: without the project or digest that makes it unique here.
   *
   * @param {(key: string) => string} value the cell's value of an axis
   * @param {CellRecord} record
   */
  const caseOf = (value, record) => {
    const mark = `@${record.program?.slice(0, 6) || record.project || ""}`;
    return value("case").endsWith(mark) ? value("case").slice(0, -mark.length) : value("case");
  };

  /**
   * The option for a cell's host compiler, or none without a requested one. The record lacks the path of a host
   * compiler that the user named by path.
   *
   * @param {(key: string) => string} value the cell's value of an axis
   */
  const host = (value) => {
    const name = value("host_compiler");
    return name ? ["--host-compiler", /^(gcc|clang)-\d{1,2}$/.test(name) ? name : `${name}=/path/to/g++`] : [];
  };

  return { reproduce, host, caseOf };
})();
