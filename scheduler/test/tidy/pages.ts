/** Rules for the pages of docs/: how long a page is, and that the guide has the same pages in Chinese. */
import { at, type Rule } from "./tree.ts";

/** Most words of prose of a page. */
export const wordsMost = 1_500;

const fences = /^ *```.*?^ *```$/gms;

/** The page that is longer: each section is reached by its address, from an error, and a rule holds the sections to errors.ts. */
const lookedUp = "docs/errors.md";

/** A page says one thing. Code, and the rows of tables, which are looked up and not read, do not count. */
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

/** Every page of the guide has its page in Chinese. */
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

/** Half-width punctuation beside a Han character; asterisks may stand between them, and a space after it. */
const halfWidth = /(?<=\p{Script=Han}\**)[,;:?!()]|[,;:?!()](?= ?\p{Script=Han})/gu;

/** Chinese pages have full-width punctuation. Code and the target of a link count as Han characters of their sentence. */
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
