/** The orders for a consumer under test. Each item's text is its number and the time when it is due, in epoch ms. */
export interface Order {
  url: string;
  path: string;
  lockPath: string;
  concurrency: number;
}

/** When items come due: the first, and the interval of the others. */
export interface Schedule {
  firstMs: number;
  everyMs: number;
  count: number;
}

export function itemText(number: number, dueMs: number): string {
  return `${number} ${dueMs}`;
}

export function readItem(text: string): { number: number; dueMs: number } {
  const [number, dueMs] = text.split(" ").map(Number);
  return { number: number ?? Number.NaN, dueMs: dueMs ?? Number.NaN };
}
