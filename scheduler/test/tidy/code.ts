/**
 * A file's text, separated for searches. In `code`, all comments and the contents of strings, templates and regular expressions
 * are blanked out; in `comments`, everything except the comments is blanked out. Both have the length and the lines of the text,
 * so that an index is valid in all three. The scanner is no parser: it decides from the text before a slash whether the slash
 * divides or begins a regular expression, which is right for formatted code.
 */
export interface Parts {
  readonly code: string;
  readonly comments: string;
}

const blank = (text: string) => text.replace(/[^\n]/g, " ");

/** Matches a text that ends with a value, so that a slash after it divides. */
const valueEnd = /[\w$)\]}"'`]$/;
const wordBeforeRegex = /(?:^|[^\w$.])(?:return|typeof|case|in|of|do|else|void|await|yield|throw)$/;

const parsed = new Map<string, Parts>();

export function partsOf(text: string): Parts {
  let parts = parsed.get(text);
  if (!parts) {
    parts = scan(text);
    parsed.set(text, parts);
  }
  return parts;
}

function scan(text: string): Parts {
  let code = "";
  let comments = "";
  let index = 0;
  /** For each open `${`, the number of braces that are open inside it. */
  const templates: number[] = [];

  const take = (length: number, kind: "code" | "comment" | "quoted") => {
    const piece = text.slice(index, index + length);
    index += length;
    code += kind === "code" ? piece : kind === "comment" ? blank(piece) : hollow(piece);
    comments += kind === "comment" ? piece : blank(piece);
  };
  const match = (pattern: RegExp) => {
    pattern.lastIndex = index;
    return pattern.exec(text)?.[0].length ?? 0;
  };
  /** Scans from a back-tick, or from the brace that closes `${}`, to the next `${` or the end of the template. */
  const template = () => {
    take(match(/[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{|$)/y), "quoted");
    if (text.slice(index - 2, index) === "${") templates.push(0);
  };

  while (index < text.length) {
    const char = text[index] as string;
    const two = text.slice(index, index + 2);
    if (two === "//" || (index === 0 && two === "#!")) take(match(/[^\n]*/y), "comment");
    else if (two === "/*") take(match(/\/\*[\s\S]*?(?:\*\/|$)/y), "comment");
    else if (char === '"' || char === "'") take(match(/(["'])(?:\\[\s\S]|(?!\1)[^\\\n])*(?:\1|$)/y) || 1, "quoted");
    else if (char === "`") template();
    else if (char === "}" && templates.at(-1) === 0) {
      templates.pop();
      template();
    } else if (char === "/" && opensRegex(code))
      take(match(/\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/\w*/y) || 1, "quoted");
    else {
      const open = templates.length - 1;
      if (open >= 0 && char === "{") templates[open] = (templates[open] as number) + 1;
      if (open >= 0 && char === "}") templates[open] = (templates[open] as number) - 1;
      take(1, "code");
    }
  }
  return { code, comments };
}

function opensRegex(before: string): boolean {
  const near = before.slice(-40).trimEnd();
  return wordBeforeRegex.test(near) || !valueEnd.test(near);
}

/** Blanks out the text but keeps its quotes, so that even an empty string still looks like a value. */
function hollow(quoted: string): string {
  return quoted.length < 2 ? quoted : quoted[0] + blank(quoted.slice(1, -1)) + quoted.at(-1);
}

export interface Import {
  readonly specifier: string;
  readonly index: number;
}

/** Returns every module that a file names: in imports, re-exports, dynamic imports, and types of the form `import("…")`. */
export function importsOf(text: string): readonly Import[] {
  const { code } = partsOf(text);
  const found: Import[] = [];
  for (const match of text.matchAll(/(?<!\.)\b(from|import)\b\s*\(?\s*(["'])([^"'\n]+)\2/g)) {
    const [, word = "", , specifier = ""] = match;
    if (code.startsWith(word, match.index)) found.push({ specifier, index: match.index });
  }
  return found;
}
