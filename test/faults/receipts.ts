import type { Sql } from '../../src/db/sql.ts';
import type { HttpReceipt } from '../../bench/client/http-body.ts';

/** What 200 answers over HTTP told a device, in items. */
export type Told = {
  stored: number;
  /** Stored by a request that was not answered, and so counted in no receipt. */
  repeated: number;
  rejected: number;
};

export type Receipts = {
  add(device: number, receipt: HttpReceipt): void;
  /** From now on the database may go away between a commit and its outcome: a retry may count items as repeated. */
  loseOutcomes(): void;
  /** Of a device; null if it was told nothing. */
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

/** Each item is stored, repeated or rejected. An acknowledged one is not stored anew, a new one not repeated. */
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

/**
 * How many items of a device were rejected. The first ones of a message and of a minute are kept individually, the
 * others as a number in one row (`src/ingest/rules/rejections.ts`). Valid for up to 1,000 rows; older ones are removed.
 */
export async function countRejections(db: Pick<Sql, 'query'>, uuid: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select coalesce(sum(coalesce(r.more, 1)), 0)::integer as count
       from rejection r join device d on d.id = r.device_id where d.uuid = $1`,
    [uuid],
  );
  return rows[0]?.count ?? 0;
}

/** What the database has of a device. */
export type InDatabase = { measurements: number; rejections: number };

/** `open`: messages that were sent and never answered, which may be stored or not. */
export function agrees(
  told: Told,
  { measurements, rejections }: InDatabase,
  open: number,
): boolean {
  const answered = told.stored + told.repeated;
  // Items of a request that was not answered may have been rejected too.
  const areRejectionsThere = rejections >= told.rejected;
  return measurements >= answered && measurements <= answered + open && areRejectionsThere;
}
