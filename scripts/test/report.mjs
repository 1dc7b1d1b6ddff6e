/**
 * A Vitest reporter that appends a line of JSON for each event to the file named by CARILLON_TEST_REPORT: first the files that will run,
 * then each file when it ends, then the errors outside of tests. If a run is killed, the file has the lines up to then, so that the tests
 * that did not run can be named.
 */
import { appendFileSync } from "node:fs";

/**
 * @typedef {{ name: string, state: "passed" | "failed" | "skipped" | "pending", why: string }} TestLine
 * @typedef {{ event: "start", files: { project: string, file: string }[] }
 *   | { event: "file", project: string, file: string, ms: number, tests: TestLine[], errors: string[] }
 *   | { event: "end", errors: string[] }} ReportLine
 */

/** @param {{ message?: string } | undefined} error */
const messageOf = (error) => error?.message ?? String(error);

export default class Report {
  /** @param {ReportLine} line */
  #write(line) {
    const path = process.env.CARILLON_TEST_REPORT;
    if (path === undefined) throw new Error("CARILLON_TEST_REPORT names no file: run the tests with `npm test`");
    appendFileSync(path, `${JSON.stringify(line)}\n`);
  }

  /** @param {readonly import("vitest/node").TestSpecification[]} specifications */
  onTestRunStart(specifications) {
    const files = specifications.map(({ project, moduleId }) => ({ project: project.name, file: moduleId }));
    this.#write({ event: "start", files });
  }

  /** @param {import("vitest/node").TestModule} module */
  onTestModuleEnd(module) {
    const tests = [...module.children.allTests()].map((test) => {
      const { state, errors } = test.result();
      return { name: test.fullName, state, why: messageOf(errors?.[0]) };
    });
    const suites = [...module.children.allSuites()].flatMap((suite) => suite.errors());
    const errors = [...module.errors(), ...suites].map(messageOf);
    const { duration } = module.diagnostic();
    this.#write({
      event: "file",
      project: module.project.name,
      file: module.moduleId,
      ms: Math.round(duration),
      tests,
      errors,
    });
  }

  /** @param {readonly unknown[]} _modules @param {readonly { message?: string }[]} unhandled */
  onTestRunEnd(_modules, unhandled) {
    this.#write({ event: "end", errors: unhandled.map(messageOf) });
  }
}
