export type Output = { write(text: string): unknown; isTTY?: boolean; columns?: number };

/** Where a run is watched: one line that changes on a terminal, plain lines anywhere else. */
export type Screen = {
  /** How often `live` is worth calling. */
  readonly refreshMs: number;
  /** Text that stays; it takes the place of the line that changes. */
  say(text: string): void;
  /** Replaces the line that changes; where none can, it is a line of its own. */
  live(text: string): void;
  bar(label: string, done: number, total: number): void;
};

const barWidth = 30;

export function createScreen(output: Output): Screen {
  const tty = output.isTTY === true;
  let unfinished = false;
  const replace = (text: string) => {
    // A terminal that does not know its width says 0.
    const room = (output.columns || 80) - 1;
    output.write(`\r${text.slice(0, room)}\u001b[K`);
    unfinished = true;
  };
  const say = (text: string) => {
    output.write(`${unfinished ? '\r\u001b[K' : ''}${text}\n`);
    unfinished = false;
  };
  return {
    refreshMs: tty ? 1_000 : 5_000,
    say,
    live: (text) => (tty ? replace(text) : say(text)),
    bar(label, done, total) {
      if (!tty) {
        if (isQuarter(done, total)) say(`${label}: ${done} of ${total}`);
        return;
      }
      const filled = Math.round((done / total) * barWidth);
      replace(`${label} [${'='.repeat(filled).padEnd(barWidth, ' ')}] ${done} of ${total}`);
      if (done === total) {
        output.write('\n');
        unfinished = false;
      }
    },
  };
}

/** Whether `done` is the first count at or beyond a quarter of `total`. */
function isQuarter(done: number, total: number): boolean {
  return Math.floor((done * 4) / total) > Math.floor(((done - 1) * 4) / total);
}
