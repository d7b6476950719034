/** Opens queued connections, at most `atOnce` at the same time. */
export function createOpener(atOnce: number, open: (index: number) => void) {
  const line: number[] = [];
  let head = 0;
  let opening = 0;
  let stopped = false;

  function advance(): void {
    while (opening < atOnce) {
      const index = stopped ? undefined : line[head];
      if (index === undefined) return;
      head += 1;
      opening += 1;
      open(index);
    }
  }

  return {
    add(...indexes: number[]): void {
      line.push(...indexes);
      advance();
    },
    /** A connection was opened, or failed. */
    settled(): void {
      opening -= 1;
      advance();
    },
    opening: () => opening,
    stop: () => void (stopped = true),
  };
}
