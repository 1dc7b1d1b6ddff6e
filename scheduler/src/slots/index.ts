/** carillon/slots: judges one slot of a schedule by its calendar and blackouts; pure, also for browsers. */
export { judgedSlot } from "./coming-slots.ts";
