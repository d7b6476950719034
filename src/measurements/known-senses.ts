/** Senses that are known to be in the database, as far as there is room to remember them. */
export type KnownSenses = {
  has(deviceId: number, sId: string): boolean;
  add(deviceId: number, sId: string): void;
};

/** Forgets everything once it is full: what is forgotten costs a look, nothing more. */
export function createKnownSenses(maxSenses: number = 200_000): KnownSenses {
  const devices = new Map<number, Set<string>>();
  let size = 0;
  return {
    has: (deviceId, sId) => devices.get(deviceId)?.has(sId) === true,
    add(deviceId, sId) {
      if (size >= maxSenses) {
        devices.clear();
        size = 0;
      }
      const senses = devices.get(deviceId) ?? new Set();
      if (senses.has(sId)) return;
      devices.set(deviceId, senses.add(sId));
      size += 1;
    },
  };
}
