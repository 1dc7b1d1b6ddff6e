/**
 * Splits items that name claims: the first item of each claim, and all later ones. A claim ends once, so of several verdicts
 * on it the first counts. Both parts keep the order of `given`.
 */
export function firstOfEach<Item extends { readonly runId: number; readonly fence: number }>(
  given: Item[],
): { first: Item[]; later: Item[] } {
  // Two claims never have the same fence, so if there are as many fences as items, no claim is named twice.
  if (new Set(given.map(({ fence }) => fence)).size === given.length) return { first: given, later: [] };
  const first = new Map<string, Item>();
  const later: Item[] = [];
  for (const item of given) {
    const claim = `${item.runId} ${item.fence}`;
    if (first.has(claim)) later.push(item);
    else first.set(claim, item);
  }
  return { first: [...first.values()], later };
}
