/** One measurement as it was sent, and as it is read back. */
export type Reading = { sId: string; val: number; ts: number };

/** What a device sent: everything, and what of it the service acknowledged. */
export type Ledger = { sent: Reading[]; acknowledged: Reading[] };

/** How what is stored differs from what was acknowledged. Nothing differs when the first three are empty. */
export type Comparison = {
  acknowledged: number;
  found: number;
  /** Acknowledged, and not there. */
  lost: Reading[];
  /** There more than once. */
  doubled: Reading[];
  /** There, and never sent like this. */
  foreign: Reading[];
  /** Stored although its acknowledgement never arrived: allowed, as the acknowledgement may have been lost. */
  unacknowledged: number;
};

/** Compares one device's ledger with what was read back of it, in any order. */
export function compareReadings(ledger: Ledger, stored: Reading[]): Comparison {
  const acknowledged = new Set(ledger.acknowledged.map(keyOf));
  const sent = new Set(ledger.sent.map(keyOf));
  const seen = new Set<string>();
  const doubled: Reading[] = [];
  const foreign: Reading[] = [];
  for (const reading of stored) {
    const key = keyOf(reading);
    if (!sent.has(key)) foreign.push(reading);
    else if (seen.has(key)) doubled.push(reading);
    seen.add(key);
  }
  const lost = ledger.acknowledged.filter((reading) => !seen.has(keyOf(reading)));
  const unacknowledged = [...seen].filter((key) => sent.has(key) && !acknowledged.has(key)).length;
  const found = ledger.acknowledged.length - lost.length;
  return { acknowledged: acknowledged.size, found, lost, doubled, foreign, unacknowledged };
}

/** All devices' comparisons as one. */
export function addComparisons(comparisons: Comparison[]): Comparison {
  return {
    acknowledged: sum(comparisons.map((one) => one.acknowledged)),
    found: sum(comparisons.map((one) => one.found)),
    lost: comparisons.flatMap((one) => one.lost),
    doubled: comparisons.flatMap((one) => one.doubled),
    foreign: comparisons.flatMap((one) => one.foreign),
    unacknowledged: sum(comparisons.map((one) => one.unacknowledged)),
  };
}

function keyOf({ sId, val, ts }: Reading): string {
  return `${sId} ${ts} ${val}`;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
