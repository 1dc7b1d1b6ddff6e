import { at, isSource, type Rule } from "./tree.ts";

const insertRun = /\binsert\s+into\s+\$\{[^}]*\}\.run\b/g;
const insertRunPlace = "scheduler/src/store/postgres/enqueue/new-run.ts";

/** A new column of `run` is added in one file: every other statement that makes runs begins with its `insertRunSql`. */
export const runsMadeInOnePlace: Rule = (files) =>
  files
    .filter((file) => isSource(file) && file.path !== insertRunPlace)
    .flatMap((file) =>
      [...file.text.matchAll(insertRun)].map(({ index }) => at(file, index, "inserts runs: use insertRunSql")),
    );
