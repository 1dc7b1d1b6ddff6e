/** What a consumer under test is to consume. Each item's text is its number and when it is due, in epoch ms. */
export interface Order {
  url: string;
  path: string;
  lockPath: string;
  concurrency: number;
}

/** When items come due: the first, and then one after the other. */
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
