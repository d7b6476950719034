/**
 * Something a device sent that is kept but not taken for what it claims to be.
 * `reason` is a stable word for programs, `message` a sentence for people,
 * `path` a JSON Pointer into the payload. `more`: it stands for that many of the same message, or of the
 * device's same minute, that are counted only. `details`: the values that `message` names, for who says it
 * in another language.
 */
export type Rejection = {
  reason: RejectionReason;
  message: string;
  path?: string;
  more?: number;
  details?: RejectionDetails;
};

/** Times in ms. `min` and `max` are what was allowed when it was refused. */
export type RejectionDetails = {
  sId?: string;
  val?: number;
  min?: number;
  max?: number;
  ts?: number;
  /** The most that a time may be ahead of its arrival, or before it. */
  maxAheadMs?: number;
  maxAgeMs?: number;
};

export type RejectionReason =
  | 'invalid-json'
  | 'invalid-payload'
  | 'unknown-topic'
  | 'foreign-topic'
  | 'unknown-sense'
  | 'out-of-range'
  | 'future-timestamp'
  | 'expired-timestamp'
  | 'unknown-state'
  | 'unknown-profile'
  | 'unknown-member'
  | 'too-many-connects'
  | 'too-many-connections'
  | 'session-taken-over'
  | 'message-not-acknowledged'
  | 'packet-too-large'
  | 'quota-exceeded'
  | 'unstorable'
  | 'events-not-recorded'
  | 'more-of-message'
  | 'more-of-minute';

/** Stands for what is wrong with a message beyond the rejections that are kept one by one. */
export function countedOnly(more: number): Rejection {
  const message = `And ${more} more of this message.`;
  return { reason: 'more-of-message', message, more };
}

/** Stands for what was wrong in one minute beyond the rejections of a device that are kept one by one. */
export function furtherOfMinute(more: number): Rejection {
  return {
    reason: 'more-of-minute',
    message: 'Further ones of this minute are counted only.',
    more,
  };
}
