/** What may be written, and how. */
type LimitedLinesOptions<T> = {
  /** In ms. Lines never depend on which way it went. */
  clock: () => number;
  /** What a limit holds for, in ms. */
  spanMs: number;
  /** Lines of one key in a span. */
  linesPerKey: number;
  /** Lines of all keys in a span; without a bound if absent. */
  linesInAll?: number;
  /** Keys that have lines of their own in a span; what others do is counted together. */
  maxKeys: number;
  /** Writes a line now. `before`: how many of its key came since the last line and have none. */
  write: (of: T, before: number) => void;
  /** Writes what was counted and followed by no line: of each key the newest, and the number of all `others`. */
  writeCounted: (counted: { of: T; count: number }[], others: number) => void;
};

type LimitedLines<T> = {
  /** A line now, or counted. Counts that are a span old are written with the first line after them. */
  note(key: string, of: T): void;
  /** Writes the counts that are a span old, or all where the process ends. */
  flush(options?: { isEnd?: boolean }): void;
};

type Noted<T> = { sinceMs: number; lines: number; unwritten: number; newest: T };

/**
 * Lines that others can cause as often as they like, such as refused logins: the first of each key in a span, and all
 * further ones as counts. Keys may be chosen by strangers.
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

  /** Writes what was counted of keys, and forgets those that had no more than their lines. */
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
    const isOthersTurn = isEnd || isOver(inAll, atMs);
    const countedOthers = isOthersTurn ? others : 0;
    if (counted.length > 0 || countedOthers > 0) writeCounted(counted, countedOthers);
    if (!isOthersTurn) return;
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
