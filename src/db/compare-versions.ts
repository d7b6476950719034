/** Below zero where version `a` came before `b`; both `major.minor.patch`, what follows a `-` left out. */
export function compareVersions(a: string, b: string): number {
  const [one, other] = [partsOf(a), partsOf(b)];
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : (one[at] ?? 0) - (other[at] ?? 0);
}

/** The newest of them. */
export function newestOf(versions: string[]): string {
  return versions.reduce((a, b) => (compareVersions(a, b) < 0 ? b : a));
}

function partsOf(version: string): number[] {
  const [release = ''] = version.split('-');
  return [0, 1, 2].map((index) => Number(release.split('.')[index] ?? 0));
}
