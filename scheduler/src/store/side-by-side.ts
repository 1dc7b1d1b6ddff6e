/**
 * Calls `each` with every item, in order, at most `most` calls at a time.
 * @throws the error of the first call that failed; running calls are not aborted, and remaining items are still processed, unless
 * `most` calls have failed
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
