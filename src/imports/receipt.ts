/** A line that was not stored, and why. */
export type LineError = { line: number; reason: string };

const maxErrors = 100;

/** What became of the lines of an import. */
export class Receipt {
  stored = 0;
  /** Were there already. */
  repeated = 0;
  rejected = 0;
  /** The first ones that were found, in the order of their lines. */
  readonly errors: LineError[] = [];

  reject(line: number, reason: string): void {
    this.rejected += 1;
    if (this.errors.length < maxErrors) this.errors.push({ line, reason });
  }

  /** In numbers, for people. */
  describe(): string {
    return `${this.stored} lines are stored, ${this.repeated} were there already, ${this.rejected} are rejected`;
  }
}
