/** Reads a run's number; 0 for any other text. */
export const numberOf = (text: string): number => (/^[1-9]\d{0,14}$/.test(text.trim()) ? Number(text) : 0);
