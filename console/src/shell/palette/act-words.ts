/** Splits what is typed in the palette into the words of an act and the name that is searched. */

/**
 * Returns the text without the words of acts, such as "send" for "pause send". If the text has no other words, it is the name.
 * @param verbs the words of acts, in the viewer's language, separated by spaces
 */
export function nameIn(text: string, verbs: string): string {
  const known = verbs.split(" ");
  const words = text.split(/\s+/).filter((word) => word !== "" && !known.includes(word.toLowerCase()));
  // Chinese is written without spaces, so a verb may stand directly before a name: 暂停send.
  const bare = words.map((word) =>
    known.reduce((rest, verb) => (isHan.test(verb) ? rest.replace(verb, "") : rest), word),
  );
  const name = bare.filter((word) => word !== "").join(" ");
  return name === "" ? text.trim() : name;
}

/** True if the text contains a word of an act; a Chinese word also counts within other text. @param verbs as for `nameIn` */
export function hasVerb(text: string, verbs: string): boolean {
  const words = text.toLowerCase().split(/\s+/);
  return verbs.split(" ").some((verb) => (isHan.test(verb) ? text.includes(verb) : words.includes(verb)));
}

/** Returns the number that stands alone in the text, such as 12 in "cancel 12"; "" if there is none. */
export const numberIn = (text: string): string => /(?<![\w-])\d+(?![\w-])/.exec(text)?.[0] ?? "";

const isHan = /\p{Script=Han}/u;

/** True if the entry's text contains every typed word. A run of Chinese characters counts as a word of its own. */
export function hasWords(entry: string, text: string): boolean {
  const said = entry.toLowerCase();
  const words = text.toLowerCase().match(/\p{Script=Han}+|[^\s\p{Script=Han}]+/gu) ?? [];
  return words.every((word) => said.includes(word));
}
