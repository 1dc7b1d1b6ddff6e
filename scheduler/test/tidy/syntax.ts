import { parseAst } from "vitest/node";
import type { HouseFile } from "./tree.ts";

/** A node of the syntax tree, as ESTree and its TypeScript extension write it. */
export interface SyntaxNode {
  type: string;
  start: number;
  end: number;
  [part: string]: unknown;
}

export const isNode = (value: unknown): value is SyntaxNode =>
  typeof value === "object" && value !== null && typeof (value as SyntaxNode).type === "string";

export function treeOf(file: HouseFile): SyntaxNode {
  return parseAst(file.text, { lang: file.path.endsWith("x") ? "tsx" : "ts" }) as unknown as SyntaxNode;
}

/** The node itself, then everything below it, in the order of the text. */
export function* nodesIn(node: SyntaxNode): Generator<SyntaxNode> {
  yield node;
  for (const part of Object.values(node))
    for (const child of Array.isArray(part) ? part : [part]) if (isNode(child)) yield* nodesIn(child);
}
