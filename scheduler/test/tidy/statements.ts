import { at, isSource, type Rule } from "./tree.ts";

const insertRun = /\binsert\s+into\s+\$\{[^}]*\}\.run\b/g;
const insertRunPlace = "scheduler/src/store/postgres/enqueue/new-run.ts";

/** Rule: all statements that insert runs begin with `insertRunSql`, so that a new column of `run` is added in one file only. */
export const runsMadeInOnePlace: Rule = (files) =>
  files
    .filter((file) => isSource(file) && file.path !== insertRunPlace)
    .flatMap((file) =>
      [...file.text.matchAll(insertRun)].map(({ index }) => at(file, index, "inserts runs: use insertRunSql")),
    );
