/** What is worth counting. */
export type IngestObserver = {
  /** A batch is settled, `seconds` after it was taken up. */
  batch(messages: number, seconds: number): void;
  stored(measurements: number): void;
  rejected(reason: string, count: number): void;
};
