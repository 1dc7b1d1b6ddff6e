/**
 * The last attempt of a named consumer that failed, while the consumer has not handled the event. Older versions do not write the column: a
 * consumer that they serve may show a failure that is over.
 */
export const failingConsumers = (s: string) => `
alter table ${s}.event_consumer add column failing jsonb;
`;
