const tickMs = 5;

export type Pacer = {
  start(): void;
  stop(): void;
  /** Whether one more message is due; call `spend` when it is sent. */
  isDue(): boolean;
  spend(): void;
};

/** No pace: as fast as the acknowledgements arrive. */
export const unpaced: Pacer = { start() {}, stop() {}, isDue: () => true, spend() {} };

/**
 * Admits `ratePerSecond` messages, round robin over the devices so that none of them starves. Messages that could not
 * be sent within a tenth of a second are not made up for.
 */
export function createPacer(
  ratePerSecond: number,
  devices: number,
  sendOne: (device: number) => void,
): Pacer {
  let timer: NodeJS.Timeout | undefined;
  let credit = 0;
  let turn = 0;
  let lastMs = 0;

  function tick(): void {
    const monotonicMs = performance.now();
    const due = ((monotonicMs - lastMs) * ratePerSecond) / 1_000;
    lastMs = monotonicMs;
    credit = Math.min(credit + due, Math.max(1, ratePerSecond / 10));
    for (let asked = 0; asked < devices; asked += 1) {
      if (credit < 1) return;
      sendOne(turn++ % devices);
    }
  }

  return {
    start() {
      lastMs = performance.now();
      timer = setInterval(tick, tickMs);
    },
    stop: () => clearInterval(timer),
    isDue: () => credit >= 1,
    spend: () => void (credit -= 1),
  };
}
