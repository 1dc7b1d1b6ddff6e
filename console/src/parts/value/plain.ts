// Characters that change the direction of text, with which a text could be disguised as another.
const turning = /[\u202a-\u202e\u2066-\u2069]/g;

/** Text from other users, safe to show: markup has no effect, and characters that reorder text are made visible. */
export const plain = (text: string): string => text.replace(turning, "\ufffd");
