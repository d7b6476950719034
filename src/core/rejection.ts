/**
 * Something a device sent that is kept but not taken for what it claims to be.
 * `reason` is a stable word for programs, `message` a sentence for people,
 * `path` a JSON Pointer into the payload.
 */
export type Rejection = { reason: RejectionReason; message: string; path?: string };

export type RejectionReason =
  | 'invalid-json'
  | 'invalid-payload'
  | 'unknown-topic'
  | 'unknown-sense'
  | 'out-of-range'
  | 'future-timestamp'
  | 'expired-timestamp'
  | 'unknown-state'
  | 'unknown-profile'
  | 'too-many-connects'
  | 'unstorable';
