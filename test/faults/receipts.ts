import type { HttpReceipt } from '../../bench/client/http-body.ts';

/** What a device was told by answers of 200 over HTTP, in items. */
export type Told = {
  stored: number;
  /** Stored by a request that was not answered, and so counted by no receipt. */
  repeated: number;
  rejected: number;
};

export type Receipts = {
  add(device: number, receipt: HttpReceipt): void;
  /**
   * From now on the database may go away between a commit and its outcome: what is tried again then is found there,
   * and counted as a repetition.
   */
  loseOutcomes(): void;
  /** Of a device; null where it was told nothing. */
  of(device: number): Told | null;
  /** Receipts that cannot be true of what was sent. */
  wrong(): string[];
};

export function createReceipts(): Receipts {
  const told = new Map<number, Told>();
  const wrong: string[] = [];
  let areOutcomesLost = false;
  return {
    loseOutcomes: () => void (areOutcomesLost = true),
    add(device, receipt) {
      if (!isPossible(receipt, areOutcomesLost))
        wrong.push(`device ${device}: ${JSON.stringify(receipt)}`);
      const { known, answer } = receipt;
      const before = told.get(device) ?? { stored: 0, repeated: 0, rejected: 0 };
      told.set(device, {
        stored: before.stored + (answer?.stored ?? 0),
        repeated: before.repeated + (answer?.repeated ?? 0) - known,
        rejected: before.rejected + (answer?.rejected.length ?? 0),
      });
    },
    of: (device) => told.get(device) ?? null,
    wrong: () => wrong,
  };
}

/** Each item is stored, a repetition or rejected; what was acknowledged before is no news, what is new is no repetition. */
function isPossible(receipt: HttpReceipt, areOutcomesLost: boolean): boolean {
  const { first, again, known, wrong, answer } = receipt;
  if (!answer) return false;
  const { stored, repeated, rejected } = answer;
  return (
    stored + repeated === first + again + known &&
    rejected.length === wrong &&
    repeated >= known &&
    (stored >= first || areOutcomesLost)
  );
}

/** What the database has of a device. */
export type InDatabase = { measurements: number; rejections: number };

/** `open`: messages that were sent and never answered, which may be there or not. */
export function agrees(
  told: Told,
  { measurements, rejections }: InDatabase,
  open: number,
): boolean {
  const answered = told.stored + told.repeated;
  // What a request brought that was not answered may have been rejected as well.
  const areRejectionsThere = rejections >= told.rejected;
  return measurements >= answered && measurements <= answered + open && areRejectionsThere;
}
