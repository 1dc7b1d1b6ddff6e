import { SaxesParser } from "saxes";

export interface Element {
  name: string;
  attributes: Record<string, string>;
  children: Element[];
  text: string;
  line: number;
}

/**
 * Parses a small XML document into a tree whose element names have no namespace prefix. Nothing is downloaded, and only the
 * entities of XML itself are expanded, so a document can neither read files nor use entities to fill memory.
 * @throws Error with the line number if the document is not well-formed
 */
export function readXml(text: string): Element {
  const root: Element = { name: "", attributes: {}, children: [], text: "", line: 1 };
  const open = [root];
  const parser = new SaxesParser({ position: true });
  parser.on("error", (error) => {
    throw error;
  });
  parser.on("opentag", ({ name, attributes }) => {
    const element = {
      name: name.slice(name.indexOf(":") + 1),
      attributes: plainOf(attributes),
      children: [],
      text: "",
      line: parser.line,
    };
    (open.at(-1) as Element).children.push(element);
    open.push(element);
  });
  const add = (part: string) => {
    (open.at(-1) as Element).text += part;
  };
  parser.on("text", add);
  parser.on("cdata", add);
  parser.on("closetag", () => {
    open.pop();
  });
  parser.write(text).close();
  return root;
}

/** Returns the attributes as plain texts. The parser runs with its default options, in which it does not resolve namespaces. */
const plainOf = (attributes: object): Record<string, string> =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)]));

export const childrenOf = (element: Element, name: string): Element[] =>
  element.children.filter((child) => child.name === name);

/** Returns the trimmed text of the first child with this name; "" if there is none. */
export const childText = (element: Element, name: string): string => childrenOf(element, name)[0]?.text.trim() ?? "";

/** Returns all descendants with this name, in document order. */
export const everywhere = (element: Element, name: string): Element[] =>
  element.children.flatMap((child) => [...(child.name === name ? [child] : []), ...everywhere(child, name)]);
