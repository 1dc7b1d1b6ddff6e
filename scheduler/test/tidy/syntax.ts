import { parseAst } from "vitest/node";
import type { HouseFile } from "./tree.ts";

/** A node of a syntax tree in the format of ESTree with its TypeScript extension. */
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

/** Yields the node and then all nodes below it, each before its own parts. */
export function* nodesIn(node: SyntaxNode): Generator<SyntaxNode> {
  yield node;
  for (const part of Object.values(node))
    for (const child of Array.isArray(part) ? part : [part]) if (isNode(child)) yield* nodesIn(child);
}
