/** An IPv6 client has a whole /64 to itself (RFC 6177): that is one address here. */
export function network(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.replace(/%.*/, '').split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}
