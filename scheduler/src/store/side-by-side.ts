/**
 * Does this with each item, in their order, so many at a time.
 * @throws what the first that failed threw; others that are under way, and those after them, are done all the same
 */
export async function sideBySide<Item>(
  items: readonly Item[],
  most: number,
  each: (item: Item) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const lane = async () => {
    for (const item of left) await each(item);
  };
  await Promise.all(Array.from({ length: most }, lane));
}
