/** An IPv6 client has a whole /64 to itself (RFC 6177): that is one address here. */
export function network(address: string): string {
  if (!address.includes(':')) return address;
  return `${groupsOf(address).slice(0, 4).join(':')}::/64`;
}

/** The networks that one client may have been given, the largest first: /48, /56 and /64 of IPv6; an IPv4 address itself. */
export function networks(address: string): string[] {
  if (!address.includes(':')) return [address];
  const groups = groupsOf(address);
  const site = groups.slice(0, 3).join(':');
  const subnet = groups[3] ?? '0';
  const upper = (Number.parseInt(subnet, 16) >> 8).toString(16);
  return [`${site}::/48`, `${site}:${upper}00::/56`, `${site}:${subnet}::/64`];
}

/** The groups of an IPv6 address, without leading zeros. */
function groupsOf(address: string): string[] {
  const [head = '', tail] = address.replace(/%.*/, '').split('::', 2);
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after];
  return groups.map((group) => group.replace(/^0+(?=.)/, ''));
}
