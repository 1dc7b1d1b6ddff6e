/** The configuration of a consumer under test. Each item's text holds its number and its due time in epoch ms. */
export interface Order {
  url: string;
  path: string;
  lockPath: string;
  concurrency: number;
}

/** The due times of `count` items: the first in epoch ms, then one every `everyMs`. */
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
