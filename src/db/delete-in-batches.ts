/** Rows that one transaction deletes at most, so that nobody waits for it. */
const batchRows = 10_000;

/**
 * Deletes some thousand rows a transaction until none is left, or it is told to stop: `deleteSome` deletes at most
 * `limit` of them. Gives how many went.
 */
export async function deleteInBatches(
  deleteSome: (limit: number) => Promise<{ rowCount: number | null }>,
  { signal, limit = batchRows }: { signal?: AbortSignal | undefined; limit?: number },
): Promise<number> {
  let total = 0;
  while (signal?.aborted !== true) {
    const { rowCount } = await deleteSome(limit);
    total += rowCount ?? 0;
    if ((rowCount ?? 0) < limit) break;
  }
  return total;
}
