/** Rules for the pages of docs/: their length, the translation of the guide, and punctuation in Chinese. */
import { at, type Rule } from "./tree.ts";

/** The maximum number of words of prose on a page. */
export const wordsMost = 1_500;

const fences = /^ *```.*?^ *```$/gms;

/** This page may be longer, because readers come from an error directly to one of its sections; another rule compares it with errors.ts. */
const lookedUp = "docs/reference/errors.md";

/** Rule: a page has at most `wordsMost` words of prose. Code blocks and table rows do not count, because readers look them up. */
export const pagesShort: Rule = (files) =>
  files
    .filter(({ path }) => /^docs\/.*\.md$/.test(path) && path !== lookedUp)
    .flatMap(({ path, text }) => {
      const prose = text.replace(fences, "").replace(/^ *\|.*$/gm, "");
      const words = prose.match(/\S+/g)?.length ?? 0;
      return words > wordsMost
        ? [`${path}:1 has ${words} words of prose, more than ${wordsMost}: split or cut it`]
        : [];
    });

const [english, chinese] = ["docs/guide/", "docs/zh/guide/"];

/** Rule: every page of the guide has a Chinese translation, and every translation has an original. */
export const guideInChinese: Rule = (files) => {
  const namesIn = (folder: string) =>
    files.filter(({ path }) => path.startsWith(folder)).map(({ path }) => path.slice(folder.length));
  const [originals, translations] = [namesIn(english), namesIn(chinese)];
  return [
    ...originals
      .filter((name) => !translations.includes(name))
      .map((name) => `${english}${name}:1 has no page in Chinese`),
    ...translations.filter((name) => !originals.includes(name)).map((name) => `${chinese}${name}:1 has no original`),
  ];
};

/** Matches half-width punctuation next to a Han character; asterisks may come between the two, and a space after the punctuation. */
const halfWidth = /(?<=\p{Script=Han}\**)[,;:?!()]|[,;:?!()](?= ?\p{Script=Han})/gu;

/**
 * Rule: Chinese pages use full-width punctuation. Inline code and link targets count as Han characters; code blocks are not
 * checked.
 */
export const fullWidthInChinese: Rule = (files) =>
  files
    .filter(({ path }) => /^docs\/zh\/.*\.md$/.test(path))
    .flatMap((file) => {
      const prose = file.text
        .replace(fences, (block) => block.replace(/[^\n]/g, " "))
        .replace(/`[^`\n]*`|\]\([^)]*\)/g, (found) => "字".repeat(found.length));
      return [...prose.matchAll(halfWidth)].map((found) =>
        at(file, found.index, `half-width "${found[0]}" in a Chinese sentence`),
      );
    });
