/**
 * Room in the key's index for what a claim adds. Numbers rise, so pages are filled to the full one after the other, and each run
 * that is claimed then has a second entry beside its first: of full pages every one was split, after a search for entries that could be
 * dropped. Pages that are half full take the second entries as they are. Of indexes that are there already new pages have it.
 */
export const keyRoom = (s: string) => `
alter index ${s}.run_pkey set (fillfactor = 50);
`;
