/** Tells aedes that it may go on with a packet. */
export type Proceed = (error?: Error | null) => void;

/** What is kept of a PUBLISH until it is stored, and acknowledged in its turn. */
export type Received = {
  /** 0: nobody will send it again. */
  readonly qos: number;
  readonly messageId: number;
  /** About what it takes of the memory until it is stored. */
  readonly bytes: number;
  /** When it arrived. */
  readonly sinceMs: number;
  /** Null where aedes does not know of the message. */
  readonly proceed: Proceed | null;
};
