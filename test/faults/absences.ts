/** The longest absences of any device, in milliseconds. */
export type Absence = {
  /** Without a connection. */
  connectionMs: number;
  /** Between two acknowledgements, or since the last one. */
  acknowledgementMs: number;
};

/** Measures how long devices are without a connection, and without an acknowledgement. */
export function watchAbsences(devices: number) {
  const goneAtMs: (number | null)[] = Array.from({ length: devices }, () => null);
  const ackedAtMs: (number | null)[] = Array.from({ length: devices }, () => null);
  const longest: Absence = { connectionMs: 0, acknowledgementMs: 0 };
  const note = (what: keyof Absence, sinceMs: number | null | undefined) => {
    if (typeof sinceMs !== 'number') return;
    longest[what] = Math.max(longest[what], Math.round(performance.now() - sinceMs));
  };
  return {
    /** From now on every device should be connected and acknowledged. */
    start: () => void ackedAtMs.fill(performance.now()),
    online(device: number): void {
      note('connectionMs', goneAtMs[device]);
      goneAtMs[device] = null;
    },
    offline: (device: number) => void (goneAtMs[device] ??= performance.now()),
    acknowledged(device: number): void {
      note('acknowledgementMs', ackedAtMs[device]);
      ackedAtMs[device] = performance.now();
    },
    longest(): Absence {
      for (const sinceMs of goneAtMs) note('connectionMs', sinceMs);
      for (const sinceMs of ackedAtMs) note('acknowledgementMs', sinceMs);
      return { ...longest };
    },
  };
}
