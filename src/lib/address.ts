import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';

/** An IPv6 client has a whole /64 to itself (RFC 6177), which counts as one address here. */
export function network(address: string): string {
  if (!address.includes(':')) return address;
  return `${groupsOf(address).slice(0, 4).join(':')}::/64`;
}

/**
 * The networks that one client may have been assigned, largest first: the /48, /56 and /64 of IPv6; an IPv4 address
 * itself.
 */
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

/** Interfaces that only this machine's own containers and virtual machines see. */
const virtual = /^(docker|br-|veth|virbr|cni|flannel|lxc|podman)/;

/** The address at which the local network reaches this machine; 127.0.0.1 if it has none. */
export function findLanAddress(): string {
  for (const [name, addresses] of Object.entries(networkInterfaces())) {
    if (virtual.test(name)) continue;
    const found = addresses?.find(({ family, internal }) => family === 'IPv4' && !internal);
    if (found) return found.address;
  }
  return '127.0.0.1';
}

/** Hosts that ignore dots before the `@`, and the host that each counts as (support.google.com/mail/answer/7436150). */
const dotless: Record<string, string> = { 'gmail.com': 'gmail.com', 'googlemail.com': 'gmail.com' };

/**
 * The mailbox that limits on mails from strangers count by. Most servers deliver "name+anything@host" to one mailbox
 * (RFC 5233 calls that subaddressing), and some ignore dots.
 */
export function mailboxOf(address: string): string {
  const normal = address.toLowerCase();
  const at = normal.lastIndexOf('@');
  const name = normal.slice(0, Math.max(0, at)).replace(/\+.*$/, '');
  const host = normal.slice(at + 1);
  const same = dotless[host];
  return same === undefined ? `${name}@${host}` : `${name.replaceAll('.', '')}@${same}`;
}

/**
 * Networks that lead to this machine, its neighbours or nowhere instead of the internet: IANA's registries of
 * special-purpose addresses (RFC 6890), multicast, and the tunnels whose addresses contain another one.
 */
const privateNetworks = {
  ipv4: [
    '0.0.0.0/8', // this host
    '10.0.0.0/8', // private
    '100.64.0.0/10', // carrier-grade NAT
    '127.0.0.0/8', // loopback
    '169.254.0.0/16', // link-local; metadata of cloud providers
    '172.16.0.0/12', // private
    '192.0.0.0/24', // protocol assignments
    '192.0.2.0/24', // documentation
    '192.88.99.0/24', // 6to4 relays
    '192.168.0.0/16', // private
    '198.18.0.0/15', // benchmarks
    '198.51.100.0/24', // documentation
    '203.0.113.0/24', // documentation
    '224.0.0.0/4', // multicast
    '240.0.0.0/4', // reserved, broadcast
  ],
  ipv6: [
    '::ffff:0:0:0/96', // IPv4-translated (RFC 2765)
    '::/96', // unspecified, loopback, IPv4-compatible
    '64:ff9b:1::/48', // NAT64 of a network's own
    '100::/64', // discard
    '2001::/23', // protocol assignments, Teredo among them
    '2001:db8::/32', // documentation
    '2002::/16', // 6to4
    '3fff::/20', // documentation
    '5f00::/16', // segment routing
    'fc00::/7', // unique local
    'fe80::/10', // link-local
    'fec0::/10', // site-local
    'ff00::/8', // multicast
  ],
};

const blocked = new BlockList();
for (const family of ['ipv4', 'ipv6'] as const)
  for (const network of privateNetworks[family]) {
    const [address = '', prefix] = network.split('/');
    blocked.addSubnet(address, Number(prefix), family);
  }

/** IPv6 prefixes of 96 bits that are followed by an IPv4 address: IPv4-mapped, NAT64 (RFC 6052). */
const embedding = new BlockList();
embedding.addSubnet('::ffff:0:0', 96, 'ipv6');
embedding.addSubnet('64:ff9b::', 96, 'ipv6');

/** Whether an IP address, in any notation, is not on the public internet. Text that is no address counts as private. */
export function isPrivateAddress(text: string): boolean {
  // A zone (`fe80::1%eth0`) names an interface of this machine.
  const address = text.replace(/%.*$/, '');
  if (isIPv4(address)) return blocked.check(address, 'ipv4');
  if (!isIPv6(address)) return true;
  const inner = embeddedIPv4(address);
  return inner === null ? blocked.check(address, 'ipv6') : blocked.check(inner, 'ipv4');
}

/** Whether the host of a URL is an address that is not on the public internet. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) !== 0 && isPrivateAddress(host);
}

function embeddedIPv4(address: string): string | null {
  if (!embedding.check(address, 'ipv6')) return null;
  const dotted = /(?:^|:)(\d+\.\d+\.\d+\.\d+)$/.exec(address)?.[1];
  if (dotted !== undefined) return dotted;
  // The URL parser normalizes every IPv6 address (RFC 5952), with the last 32 bits as two groups.
  const written = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const groups = (written.endsWith('::') ? `${written}0` : written).replace('::', ':').split(':');
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
