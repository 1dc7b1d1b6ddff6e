/**
 * Leaves room in the primary key's index for the entries that claims add. Numbers rise, so pages were filled completely one after the
 * other, and each claimed run then had a second entry beside its first. So every full page was split, after a search for entries to drop. A
 * page that is half full takes the second entries. In an existing index only new pages have this room.
 */
export const keyRoom = (s: string) => `
alter index ${s}.run_pkey set (fillfactor = 50);
`;
