/** What may be written, and how. */
type LimitedLinesOptions<T> = {
  /** In ms. It may move in either direction. */
  clock: () => number;
  /** The period to which the limits apply, in ms. */
  spanMs: number;
  /** Lines per key and period. */
  linesPerKey: number;
  /** Lines of all keys per period; unlimited if absent. */
  linesInAll?: number;
  /** Keys that get lines of their own in a period. The others are counted together. */
  maxKeys: number;
  /** Writes a line now. `before`: how many of its key were not written since the last line. */
  write: (of: T, before: number) => void;
  /** Writes what was only counted: for each key the newest and the number, and the total of all `others`. */
  writeCounted: (counted: { of: T; count: number }[], others: number) => void;
};

type LimitedLines<T> = {
  /** Writes a line now, or counts it. Counts that are a period old are written with the next line. */
  note(key: string, of: T): void;
  /** Writes the counts that are a period old, or all counts if the process ends. */
  flush(options?: { isEnd?: boolean }): void;
};

type Noted<T> = { sinceMs: number; lines: number; unwritten: number; newest: T };

/**
 * Limits lines that others can cause as often as they like, such as refused logins: writes the first lines of each key
 * in a period, and counts the rest. Strangers may choose the keys.
 */
export function createLimitedLines<T>(options: LimitedLinesOptions<T>): LimitedLines<T> {
  const {
    clock,
    spanMs,
    linesPerKey,
    linesInAll = Infinity,
    maxKeys,
    write,
    writeCounted,
  } = options;
  const keys = new Map<string, Noted<T>>();
  let others = 0;
  let inAll = { sinceMs: clock(), lines: 0 };

  const isOver = ({ sinceMs }: { sinceMs: number }, atMs: number) =>
    Math.abs(atMs - sinceMs) >= spanMs;

  function note(key: string, of: T): void {
    const atMs = clock();
    const own = keys.get(key);
    if (own && isOver(own, atMs)) Object.assign(own, { sinceMs: atMs, lines: 0 });
    if (isOver(inAll, atMs)) writeOver(atMs, (noted) => noted !== own && isOver(noted, atMs));
    if (!own && keys.size >= maxKeys) {
      others += 1;
      return;
    }
    const noted = own ?? { sinceMs: atMs, lines: 0, unwritten: 0, newest: of };
    keys.set(key, noted);
    noted.newest = of;
    if (noted.lines >= linesPerKey || inAll.lines >= linesInAll) {
      noted.unwritten += 1;
      return;
    }
    noted.lines += 1;
    inAll.lines += 1;
    write(of, noted.unwritten);
    noted.unwritten = 0;
  }

  /** Writes the counts of due keys, and removes keys without any. */
  function writeOver(atMs: number, isDue: (noted: Noted<T>) => boolean, isEnd = false): void {
    const counted: { of: T; count: number }[] = [];
    for (const [key, noted] of keys) {
      if (!isDue(noted)) continue;
      if (noted.unwritten === 0) {
        keys.delete(key);
        continue;
      }
      counted.push({ of: noted.newest, count: noted.unwritten });
      Object.assign(noted, { sinceMs: atMs, lines: 1, unwritten: 0 });
    }
    const writesOthers = isEnd || isOver(inAll, atMs);
    const countedOthers = writesOthers ? others : 0;
    if (counted.length > 0 || countedOthers > 0) writeCounted(counted, countedOthers);
    if (!writesOthers) return;
    others = 0;
    inAll = { sinceMs: atMs, lines: 0 };
  }

  return {
    note,
    flush({ isEnd = false } = {}) {
      const atMs = clock();
      writeOver(atMs, (noted) => isEnd || isOver(noted, atMs), isEnd);
    },
  };
}
