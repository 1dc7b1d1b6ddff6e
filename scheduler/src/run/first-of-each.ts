/**
 * Splits items that name claims into the first item of each claim and all later items. Because a claim ends only once, only the
 * first of several verdicts on it counts. Each list keeps the order of `given`.
 */
export function firstOfEach<Item extends { readonly runId: number; readonly fence: number }>(
  given: Item[],
): { first: Item[]; later: Item[] } {
  // Fences are unique, so if there are as many fences as items, no claim occurs twice.
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
