// What turns the direction of text could make it read as another one.
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

/** Others' text as it may be shown: markup never counts here, and characters that reorder what is read are made visible. */
export const plain = (text: string): string => text.replace(turning, "\ufffd");
