export type PulseOptions = {
  /** The socket is not read at the moment: silence says nothing about the broker. */
  isHeldUp: () => boolean;
  /** Nothing was heard for a while: time to ask. */
  onQuiet: () => void;
  /** Nothing was heard for 6 s; again after each further 6 s. */
  onSilent: () => void;
};

const tickMs = 500;
const quietTicks = 4;
/** A broker that says nothing for so long counts as gone: 6 s. */
const silentTicks = 12;

/**
 * Watches whether the broker is heard. Counts ticks rather than time: a process that got no
 * processor finds its timer due once, and what the broker sent meanwhile still unread.
 */
export function startPulse({ isHeldUp, onQuiet, onSilent }: PulseOptions) {
  let ticks = 0;
  const timer = setInterval(() => {
    if (isHeldUp()) return;
    ticks += 1;
    if (ticks === quietTicks) onQuiet();
    if (ticks < silentTicks) return;
    ticks = 0;
    onSilent();
  }, tickMs);
  return {
    heard: (): void => void (ticks = 0),
    end: (): void => clearInterval(timer),
  };
}
