/** What one sense of one device measures. */
export type Series = { deviceId: number; sId: string };

/** The numbers of series that are in the database, as far as there is room to remember them. */
export type KnownSeries = {
  get(series: Series): number | undefined;
  set(series: Series, id: number): void;
  clear(): void;
};

/** Cleared when it is full: a series that is not here costs a query, nothing more. */
export function createKnownSeries(maxSeries: number = 200_000): KnownSeries {
  const devices = new Map<number, Map<string, number>>();
  let size = 0;
  const clear = () => {
    devices.clear();
    size = 0;
  };
  return {
    get: ({ deviceId, sId }) => devices.get(deviceId)?.get(sId),
    set({ deviceId, sId }, id) {
      if (size >= maxSeries) clear();
      const senses = devices.get(deviceId) ?? new Map<string, number>();
      if (!senses.has(sId)) size += 1;
      devices.set(deviceId, senses.set(sId, id));
    },
    clear,
  };
}
