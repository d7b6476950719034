/** How far a copy has come: rows of all tables together, of about so many (0: not known). */
export type RowsCopied = { table: string; rows: number; expected: number };
export type OnRows = (copied: RowsCopied) => void;

const newline = 0x0a;

/** Counts the rows that pass, in COPY's text format: within a row a new line is written as `\n`. */
export function countRows(onRows: (rows: number) => void): {
  pass(pieces: AsyncIterable<Buffer>): AsyncIterable<Buffer>;
  count(): number;
} {
  let rows = 0;
  return {
    async *pass(pieces) {
      for await (const piece of pieces) {
        let at = piece.indexOf(newline);
        for (; at !== -1; at = piece.indexOf(newline, at + 1)) rows += 1;
        onRows(rows);
        yield piece;
      }
    },
    count: () => rows,
  };
}
