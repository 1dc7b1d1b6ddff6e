import { at, isTest, type Rule } from "./tree.ts";

/** Pages that refer to tests as evidence for their statements, in the form `file.test.ts › name`. */
const pages = ["docs/explain/threat-model.md", "docs/explain/asvs.md"];

/**
 * Rule: each page of `pages` names tests, and each named test exists in exactly one file whose path has the given ending. No
 * table row of these pages has an open or failed requirement.
 */
export const testsNamed: Rule = (files) => {
  const tests = files.filter(isTest);
  return files
    .filter(({ path }) => pages.includes(path))
    .flatMap((page) => {
      const named = [...page.text.matchAll(/`([\w./-]+\.tsx?) › ([^`]+)`/g)];
      if (named.length === 0) return [`${page.path}:1 names no test`];
      const open = page.text
        .split("\n")
        .flatMap((line, at) =>
          /^\|.*\*\*(?:open|fails)/i.test(line) ? [`${page.path}:${at + 1} has an open requirement`] : [],
        );
      return named
        .flatMap(({ 1: file = "", 2: name = "", index }) => {
          const found = tests.filter(({ path }) => path === file || path.endsWith(`/${file}`));
          const having = found.filter(({ text }) => quotes.some((quote) => text.includes(`${quote}${name}${quote}`)));
          if (found.length === 0) return [at(page, index, `names ${file}, which is not there`)];
          return having.length === 1 ? [] : [at(page, index, `names a test of ${file} that is not there: ${name}`)];
        })
        .concat(open);
    });
};

const quotes = ['"', "`", "'"];
