/**
 * Leaves space in the primary key's index for the entries that claims add. Run numbers rise, so pages were filled completely, and each
 * claimed run later needed a second entry next to its first one. So every full page was split, after a search for entries to remove. A page
 * that is half full has space for the second entries. In an existing index only new pages have this space.
 */
export const keyRoom = (s: string) => `
alter index ${s}.run_pkey set (fillfactor = 50);
`;
